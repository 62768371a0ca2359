package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// parsers can be used again, and making one costs as much as reading a command.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// Parse reads a command. An error says why it cannot be read; then nothing is
// known of what it runs (P-70).
func Parse(command string) (s Script, err error) {
	defer func() {
		if p := recover(); p != nil { // the parser is not ours
			s, err = Script{}, fmt.Errorf("the command cannot be parsed: %v", p)
		}
	}()
	if len(command) > MaxLength {
		return Script{}, fmt.Errorf("the command is longer than %d characters", MaxLength)
	}
	// Shells and the parser disagree about carriage returns and other control
	// characters in words.
	for i := range len(command) {
		if c := command[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return Script{}, fmt.Errorf("the command holds the control character %q", c)
		}
	}
	parser := parsers.Get().(*syntax.Parser)
	file, err := parser.Parse(strings.NewReader(command), "")
	parsers.Put(parser) // not after a panic
	if err != nil {
		return Script{}, fmt.Errorf("the command cannot be parsed: %w", err)
	}
	found, err := surveyed(command, file)
	if err != nil {
		return Script{}, err
	}
	r := &reader{src: command, even: even(command)}
	r.out.Statements = make([]string, 0, found.statements)
	r.out.Parts = make([]Part, 0, found.calls)
	if found.functions {
		r.fed = r.called(file)
	}
	if found.ands {
		r.index = map[*syntax.CallExpr]int{}
	}
	r.stmts(file.Stmts)
	if r.tooMany {
		return Script{}, ErrTooMany
	}
	return r.out, nil
}

// ErrTooMany is the error for a program that runs others and has so many words
// that it would take too long to look for the command among them.
var ErrTooMany = fmt.Errorf("a program that runs others has more than %d words", maxRunnerWords)

const maxRunnerWords = 200

func runsOthers(name string) bool {
	return runners.has(name) || shells.has(name)
}

// reader collects the parts of a script.
type reader struct {
	src   string
	out   Script
	loops int
	after []int                    // not changed in place: the parts keep it
	index map[*syntax.CallExpr]int // of the parts; nil where nobody asks
	fed   []Nested                 // what the standard input may be here, as far as it is in the text
	// opened is the same for the rest of the text: by exec.
	opened  []Nested
	tooMany bool // ErrTooMany
	even    bool // src is collapsed as it is, wherever one begins to read it
	rest    []collapsed
	echoed  map[*syntax.Stmt][]Nested // of printed
	passed  map[*syntax.Stmt][]int    // of succeeded
}

// collapsed is the rest of a text from a place on, collapsed, so that the
// statements in it need not be collapsed one by one.
type collapsed struct {
	from int
	text string
	at   []mark // for each byte of the rest
}

// maxRests bounds what is kept: where quotes stand in quotes, a text that is read
// from another place on is another one.
const maxRests = 4

// statement is the text of a statement as rules see it.
func (r *reader) statement(s *syntax.Stmt) string {
	from, to := int(s.Pos().Offset()), int(s.End().Offset())
	if from > to || to > len(r.src) {
		return r.source(s) // says that it is unsure
	}
	for to > from && strings.IndexByte(";&\n \t", r.src[to-1]) >= 0 {
		to--
	}
	switch {
	case from == to || isBlank(r.src[from]):
		return Collapse(r.src[from:to])
	case r.even:
		return trimBlanks(r.src[from:to])
	}
	for _, c := range r.rest {
		// Where no quote is open, reading goes on as it begins.
		if c.from <= from && c.at[from-c.from].open {
			return trimBlanks(c.text[c.at[from-c.from].n:c.at[to-c.from].n])
		}
	}
	c := collapsed{from: from}
	c.text, c.at = collapse(r.src[from:])
	if len(r.rest) == maxRests {
		r.rest = r.rest[1:]
	}
	r.rest = append(r.rest, c)
	return trimBlanks(c.text[:c.at[to-from].n])
}

func (r *reader) ask(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.out.Ask, text) {
		r.out.Ask = append(r.out.Ask, text)
	}
}

func (r *reader) unsure(text string) {
	if !slices.Contains(r.out.Unsure, text) {
		r.out.Unsure = append(r.out.Unsure, text)
	}
}

func (r *reader) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(r.src) {
		r.unsure("a text that cannot be located")
		return ""
	}
	return r.src[from:to]
}

func (r *reader) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		r.stmt(s)
	}
}

func (r *reader) stmt(s *syntax.Stmt) {
	if s == nil {
		return
	}
	r.out.Statements = append(r.out.Statements, r.statement(s))
	part := Part{Loop: r.loops > 0, After: r.after}
	before := len(r.fed)
	r.fed = append(r.fed, r.feeds(s.Redirs)...)
	defer func() { r.fed = r.fed[:before] }()
	for _, d := range s.Redirs {
		if d.Hdoc != nil {
			r.nested(d.Hdoc)
		}
		if d.Word == nil {
			continue
		}
		r.nested(d.Word)
		if d.N != nil && strings.Trim(d.N.Value, "0123456789") != "" {
			r.unsure("a redirection that sets a variable")
		}
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			continue
		case syntax.DplIn, syntax.DplOut:
			if to := d.Word.Lit(); to != "" && strings.Trim(to, "0123456789-") == "" {
				continue
			}
		}
		target := r.word(d.Word)
		if strings.HasPrefix(target.Source, "!") { // ">! file" of zsh
			r.unsure("a redirection that bash and zsh read differently")
		}
		red := Redirect{Target: target}
		switch d.Op {
		case syntax.RdrIn, syntax.DplIn:
			red.Read = true
		case syntax.RdrInOut:
			red.Read, red.Write = true, true
		default: // an unknown one writes
			red.Write = true
		}
		part.Redirects = append(part.Redirects, red)
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		if len(s.Redirs) > 0 && slices.ContainsFunc(call.Args, r.descriptorName) {
			r.unsure("a redirection that sets a variable")
		}
		r.call(call, part)
		return
	}
	if len(part.Redirects) > 0 {
		r.out.Parts = append(r.out.Parts, part)
	}
	r.command(s.Cmd)
}

// descriptorName reports whether a word is the name of a descriptor in zsh, "{x}
// >file", or in bash where the line ends in it.
func (r *reader) descriptorName(w *syntax.Word) bool {
	text := strings.ReplaceAll(r.source(w), "\\\n", "")
	return strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") && variable.MatchString(text[1:len(text)-1])
}

// call adds a simple command.
func (r *reader) call(c *syntax.CallExpr, part Part) {
	part.Words = slices.Grow(part.Words, len(c.Args))
	for _, a := range c.Assigns {
		r.nested(a)
		part.Assigns = append(part.Assigns, r.assign(a))
	}
	for _, w := range c.Args {
		r.nested(w)
		part.Words = append(part.Words, r.word(w))
	}
	if readsInput(part.Words) {
		if part.fed = slices.Concat(r.opened, r.fed); base(part.Words[0].Text) == "exec" {
			r.opened = append(r.opened, r.fed...)
		}
	}
	if Feeds(part.Words) {
		part.args = slices.Concat(r.opened, r.fed)
	}
	r.tooMany = r.tooMany || len(part.Words) > maxRunnerWords && runsOthers(base(part.Words[0].Text))
	if r.index != nil {
		r.index[c] = len(r.out.Parts)
	}
	part.text = r.spaced(c.Args, part.Words)
	r.out.Parts = append(r.out.Parts, part)
	for words := part.Words; len(words) > 0; {
		if !words[0].Literal && !(words[0].Tilde && words[0].Glob && words[0].Prefix == words[0].Flat && strings.HasPrefix(words[0].Flat, "~/")) {
			r.ask(commandWord+"%s, which is known only when it runs", words[0].Source)
		}
		name := base(words[0].Text)
		switch {
		case evaluators.has(name):
			r.ask("%q, which runs what it is given", name)
		case readsInput(words) && slices.ContainsFunc(r.fed, func(n Nested) bool { return n.fed }):
			r.ask("a here-document that %q runs", name)
		}
		if name == "printf" && len(words) > 1 {
			r.prints(words[1:])
		}
		rest, ok := Unwrap(words)
		if !ok {
			break
		}
		words = rest
	}
}

// prints notes a variable that printf -v sets.
func (r *reader) prints(args []Word) {
	switch first := args[0]; {
	case first.Literal && !strings.HasPrefix(first.Text, "-v"):
	case !first.Literal && strings.HasPrefix(first.Source, `"`) && !strings.Contains(first.Source, "-"):
	case first.Text == "-v" && len(args) > 1 && args[1].Literal:
		r.sets(&syntax.Lit{Value: args[1].Text})
	default:
		r.sets(nil)
	}
	// zsh takes the arguments for numbers as arithmetic, which may set variables.
	if numbers.MatchString(args[0].Text) && slices.ContainsFunc(args[1:], func(w Word) bool { return w.Literal && strings.ContainsAny(w.Text, "=[") }) {
		r.unsure("arithmetic, which evaluates the values of variables")
	}
}

// numbers are the conversions of printf that take a number, or set one.
var numbers = regexp.MustCompile(`%[^%a-zA-Z]*[diouxXeEfFgGaAn]|%[^%a-zA-Z]*\*`)

// spaced is the text of words that stand in the source as Text makes it of them;
// otherwise "".
func (r *reader) spaced(args []*syntax.Word, words []Word) string {
	if len(args) == 0 || words[0].Text != words[0].Source || !words[0].Literal || !plain(words[0].Text) {
		return ""
	}
	for i, w := range args[1:] {
		if from, to := int(args[i].End().Offset()), int(w.Pos().Offset()); to-from != 1 || to > len(r.src) || r.src[from] != ' ' {
			return ""
		}
	}
	from, to := int(args[0].Pos().Offset()), int(args[len(args)-1].End().Offset())
	if from > to || to > len(r.src) {
		return ""
	}
	return r.src[from:to]
}

// evaluators run or replace commands in the shell itself (P-72).
var evaluators = namesOf("eval source . exec trap alias")

// shells run what they read.
const shellList = "sh bash rbash dash zsh ksh mksh ash fish csh tcsh"

var shells = namesOf(shellList)

func (r *reader) assign(a *syntax.Assign) Assign {
	out := Assign{Source: r.source(a)}
	if a.Name != nil {
		out.Name = a.Name.Value
	}
	if a.Index != nil && !numeric(a.Index) {
		r.unsure("arithmetic, which evaluates the values of variables")
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil && !numeric(e.Index) {
				r.unsure("arithmetic, which evaluates the values of variables")
			}
		}
	}
	if lit := ""; out.Name == "COLUMNS" || out.Name == "LINES" { // zsh evaluates what they are set to
		if a.Value != nil {
			lit = a.Value.Lit()
		}
		if strings.Trim(lit, "0123456789") != "" || a.Value != nil && lit == "" && len(a.Value.Parts) > 0 {
			r.unsure("arithmetic, which evaluates the values of variables")
		}
	}
	switch {
	case a.Value != nil:
		out.Value = r.word(a.Value)
	case a.Array != nil || a.Index != nil:
		out.Value = Word{Text: out.Source, Source: out.Source}
	default:
		out.Value = Word{Literal: true}
	}
	return out
}

// command goes into a compound command.
func (r *reader) command(c syntax.Command) {
	switch c := c.(type) {
	case nil:
	case *syntax.Block:
		r.stmts(c.Stmts)
	case *syntax.Subshell:
		r.stmts(c.Stmts)
	case *syntax.BinaryCmd:
		r.stmt(c.X)
		after, fed := r.after, len(r.fed)
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			r.fed = append(r.fed, r.printed(c.X)...)
		}
		if c.Op == syntax.AndStmt {
			if r.after = r.succeeded(c.X); len(after) > 0 {
				r.after = slices.Concat(after, r.after)
			}
		}
		r.stmt(c.Y)
		r.after, r.fed = after, r.fed[:fed]
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			r.stmts(c.Cond)
			r.stmts(c.Then)
		}
	case *syntax.WhileClause:
		r.loop(func() { r.stmts(c.Cond); r.stmts(c.Do) })
	case *syntax.ForClause:
		r.nested(c.Loop)
		if it, ok := c.Loop.(*syntax.WordIter); ok {
			r.sets(it.Name)
		} else {
			r.unsure("arithmetic, which evaluates the values of variables")
		}
		r.loop(func() { r.stmts(c.Do) })
	case *syntax.CaseClause:
		r.nested(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				r.nested(p)
			}
			r.stmts(item.Stmts)
		}
	case *syntax.TimeClause:
		r.stmt(c.Stmt)
	case *syntax.TestClause:
		r.test(c)
	case *syntax.DeclClause:
		part := Part{Loop: r.loops > 0, Words: []Word{{Text: c.Variant.Value, Source: c.Variant.Value, Literal: true}}}
		for _, a := range c.Args {
			r.nested(a)
			part.Words = append(part.Words, Word{Text: r.source(a), Source: r.source(a)})
		}
		r.out.Parts = append(r.out.Parts, part)
	case *syntax.FuncDecl:
		r.ask("the definition of a function")
		r.loop(func() { r.stmt(c.Body) }) // it may be called more than once
	case *syntax.CoprocClause:
		r.unsure("a coprocess")
		r.stmt(c.Stmt)
	case *syntax.ArithmCmd, *syntax.LetClause:
		r.nested(c)
		r.unsure("arithmetic, which evaluates the values of variables")
	default:
		r.ask("a construct that is not known here (%T)", c)
	}
}

// maxAfter bounds Part.After. What is left out counts as not known.
const maxAfter = 32

// succeeded are the simple commands that have succeeded when the statement,
// which was read already, has; of many the last ones. It is remembered, because
// what stands before one "&&" stands before the next one, too.
func (r *reader) succeeded(s *syntax.Stmt) (found []int) {
	if s.Negated || s.Background || s.Coprocess || s.Disown {
		return nil
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if i, ok := r.index[c]; ok {
			return []int{i}
		}
	case *syntax.BinaryCmd:
		if c.Op != syntax.AndStmt {
			return nil
		}
		if known, ok := r.passed[s]; ok {
			return known
		}
		found = slices.Concat(r.succeeded(c.Y), r.succeeded(c.X))
		found = slices.Clip(found[:min(len(found), maxAfter)])
		if r.passed == nil {
			r.passed = map[*syntax.Stmt][]int{}
		}
		r.passed[s] = found
	}
	return found
}

func (r *reader) loop(do func()) {
	r.loops++
	defer func() { r.loops-- }()
	do()
}

// test goes into [[ … ]]: comparing numbers evaluates arithmetic, which can run
// commands.
func (r *reader) test(c *syntax.TestClause) {
	r.nested(c)
	syntax.Walk(c, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryTest:
			if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr {
				r.unsure("arithmetic, which evaluates the values of variables")
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				r.unsure("a test that evaluates the name of a variable")
			}
		}
		return true
	})
}

// nested adds the commands inside the substitutions of a node (P-60).
func (r *reader) nested(n syntax.Node) {
	if n == nil {
		return
	}
	if w, ok := n.(*syntax.Word); ok {
		r.nestedParts(w.Parts)
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			r.substitution(n)
			return false
		case *syntax.ProcSubst:
			r.stmts(n.Stmts)
			return false
		case *syntax.ExtGlob:
			r.unsure("a pattern with parentheses, which can run commands in zsh")
		case *syntax.ArithmExp:
			if !numeric(n.X) {
				r.unsure("arithmetic, which evaluates the values of variables")
			}
		case *syntax.ParamExp:
			r.param(n)
		case *syntax.CallExpr: // only inside what was not expected
			r.unsure("a command where none is expected")
		}
		return true
	})
}

// nestedParts is nested for the parts of a word, most of which are plain text or
// substitutions.
func (r *reader) nestedParts(parts []syntax.WordPart) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			r.nestedParts(p.Parts)
		case *syntax.CmdSubst:
			r.substitution(p)
		default:
			r.nested(p)
		}
	}
}

func (r *reader) substitution(s *syntax.CmdSubst) {
	if s.TempFile || s.ReplyVar {
		r.unsure("a substitution that bash and zsh read differently")
	}
	r.stmts(s.Stmts)
}

// expanding reports whether a part of a word is more than text and quotes.
func expanding(p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.Lit, *syntax.SglQuoted:
		return false
	case *syntax.DblQuoted:
		return slices.ContainsFunc(p.Parts, expanding)
	}
	return true
}

// param looks for expansions that evaluate more than a variable's value.
func (r *reader) param(p *syntax.ParamExp) {
	switch {
	case p.Index != nil && !numeric(p.Index), p.Slice != nil && !(numeric(p.Slice.Offset) && numeric(p.Slice.Length)):
		r.unsure("arithmetic, which evaluates the values of variables")
	case p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull):
		r.sets(p.Param)
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps:
		r.unsure("an expansion with @, which can run commands")
	case p.Flags != nil, p.NestedParam != nil, len(p.Modifiers) > 0, p.Excl,
		p.Split != syntax.OptUnset, p.GlobSubst != syntax.OptUnset, p.RcExpand != syntax.OptUnset:
		r.unsure("an expansion that bash and zsh read differently")
	}
}

// plainNames are variables that no shell and no common program looks at. Others
// are spelled with capitals.
var plainNames = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// shellNames are the exceptions from that, in zsh.
var shellNames = []string{"path", "cdpath", "fpath", "mailpath", "manpath", "module_path", "fignore", "argv", "aliases", "functions", "commands", "options", "prompt", "psvar", "status", "home", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"}

// sets notes a variable that is set by something else than an assignment, which
// may change what runs, or where, as an assignment may (P-62).
func (r *reader) sets(name *syntax.Lit) {
	if name == nil || !plainNames.MatchString(name.Value) || slices.Contains(shellNames, name.Value) {
		r.unsure("a loop or an expansion that sets a variable which may change what runs")
	}
}

// numeric reports whether an arithmetic expression is of numbers only.
func numeric(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case nil:
		return true
	case *syntax.Word:
		lit := x.Lit()
		return lit == "@" || lit == "*" || lit != "" && strings.Trim(lit, "0123456789") == ""
	case *syntax.BinaryArithm:
		return numeric(x.X) && numeric(x.Y)
	case *syntax.UnaryArithm:
		return numeric(x.X)
	case *syntax.ParenArithm:
		return numeric(x.X)
	}
	return false
}
