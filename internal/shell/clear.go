package shell

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Texts that the parser and bash divide differently. They count as not parsed
// (P-70).
var (
	errComment = errors.New("the command cannot be parsed: a comment ends in a backslash")
	errCloses  = errors.New("the command cannot be parsed: a word follows a redirection between descriptors without a blank")
	errProcess = errors.New("the command cannot be parsed: an expansion may hold a process substitution")
	errAssign  = errors.New("the command cannot be parsed: it sets what is no variable")
	errEnd     = errors.New("the command cannot be parsed: it ends in a backslash")
	errHereDoc = errors.New("the command cannot be parsed: where a here-document ends is not clear")
	errQuotes  = errors.New("the command cannot be parsed: quotes stand where shells may not take them for quotes")
	errJoined  = errors.New("the command cannot be parsed: an expansion is broken by a backslash at the end of a line")
	errBack    = errors.New("the command cannot be parsed: where a substitution with backquotes ends is not clear")
	errPattern = errors.New("the command cannot be parsed: a pattern with parentheses holds more than text")
	errName    = errors.New("the command cannot be parsed: a redirection sets an element of an array")
	errDashes  = errors.New("the command cannot be parsed: \"--\" stands in place of a command")
	errIndex   = errors.New("the command cannot be parsed: bash and zsh read a subscript without braces differently")
)

var (
	// continuedComment is what may be a comment that goes on in the next line for
	// the parser; shells end it there. A quoted text may look like it, too.
	continuedComment = regexp.MustCompile("(?m)(?:^|[\\s;&|()<>`])#.*\\\\\n")
	// elementName is the end of "{a[i]}>", a name for a descriptor that bash
	// expands; the parser takes it for a word.
	elementName = regexp.MustCompile("\\]\\}(?:\\\\\n)*[<>]")
	// zshIndex is a subscript behind the forms of "$name" that zsh has beyond
	// those of bash.
	zshIndex = regexp.MustCompile(`\$[=~^+#]{1,2}\w*\[[^\]\s]*['"$\\` + "`]")
	// twice is a word that stays the same when it is expanded once more, as bash
	// does behind ">&".
	twice = regexp.MustCompile(`^[A-Za-z0-9_./,:@%+=-]+$`)
	// alternatives are the patterns with parentheses that are no qualifiers in
	// zsh, which may run commands: "*(e:ls:)".
	alternatives = regexp.MustCompile(`^[A-Za-z0-9_.,*?/|-]*$`)
	// descriptor is what stands behind "<&" and ">&" for a descriptor.
	descriptor = regexp.MustCompile(`^(?:[0-9]+-?|-)$`)
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// delimiter is that of a here-document, quoted as a whole or not at all.
	delimiter = regexp.MustCompile(`^(?:'([A-Za-z0-9_.!-]+)'|"([A-Za-z0-9_.!-]+)"|(\\?[A-Za-z0-9_.!]+))$`)
)

// survey is a look at the whole of a text.
type survey struct {
	src        string
	statements int  // how many there are
	calls      int  // simple commands among them
	functions  bool // it defines one
	ands       bool // it has a list with "&&"
	err        error

	docs    []hereDoc
	hasDocs bool          // it may have some
	stack   []syntax.Node // where the look is; only with hasDocs
}

// surveyed looks at all of a text. The error is for one in which the parser may
// see other commands than bash.
func surveyed(src string, file *syntax.File) (*survey, error) {
	if strings.Contains(src, "#") && continuedComment.MatchString(src) {
		return nil, errComment
	}
	if strings.HasSuffix(src, `\`) {
		return nil, errEnd
	}
	switch {
	case strings.Contains(src, "$\\\n"):
		return nil, errJoined
	case strings.Contains(src, "]}") && elementName.MatchString(src):
		return nil, errName
	case strings.Contains(src, "[") && zshIndex.MatchString(src):
		return nil, errIndex
	}
	s := &survey{src: src, hasDocs: strings.Count(src, "<") > 1}
	syntax.Walk(file, s.look)
	if s.err == nil && !sameDocs(src, s.docs) {
		s.err = errHereDoc
	}
	return s, s.err
}

func (s *survey) look(n syntax.Node) bool {
	switch {
	case !s.hasDocs:
	case n == nil:
		s.stack = s.stack[:len(s.stack)-1]
	default:
		s.stack = append(s.stack, n)
	}
	switch n := n.(type) {
	case *syntax.Stmt:
		s.statements++
	case *syntax.CallExpr:
		s.calls++
		if len(n.Args) > 0 && n.Args[0].Lit() == "--" { // "time -- ls" runs ls
			s.err = errDashes
		}
	case *syntax.DblQuoted:
		if likeQuoted(n.Parts) {
			s.err = errQuotes
		}
	case *syntax.CmdSubst:
		if n.Backquotes && !s.endsThere(n) {
			s.err = errBack
		}
	case *syntax.FuncDecl:
		s.functions = true
	case *syntax.BinaryCmd:
		s.ands = s.ands || n.Op == syntax.AndStmt
	case *syntax.Assign:
		if n.Name != nil && !variable.MatchString(n.Name.Value) {
			s.err = errAssign
		}
	case *syntax.ParamExp, *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.ExtGlob:
		switch n := n.(type) {
		case *syntax.ExtGlob:
			text := n.Pattern.Value
			if !alternatives.MatchString(text) || strings.Contains(text, "e") && !strings.Contains(text, "|") && n.Op != syntax.GlobOne && n.Op != syntax.GlobExcept {
				s.err = errPattern
			}
		case *syntax.ParamExp:
			if n.Short && s.indexed(int(n.End().Offset())) {
				s.err = errIndex
			}
			if n.Index != nil && misread(n.Index) || n.Slice != nil && misread(n.Slice.Offset, n.Slice.Length) {
				s.err = errQuotes
			}
		case *syntax.ArithmExp:
			if misread(n.X) {
				s.err = errQuotes
			}
		case *syntax.ArithmCmd:
			if misread(n.X) {
				s.err = errQuotes
			}
		}
		if text := slice(s.src, n); strings.Contains(text, "<(") || strings.Contains(text, ">(") || text == "" {
			s.err = errProcess
		}
	case *syntax.Redirect:
		if n.Word != nil {
			s.redirect(n)
		}
	}
	return true
}

// likeQuoted reports whether expansions in a text that counts as quoted hold
// quotes that shells read as they stand there: in "${x:-'$(ls)'}" ls runs.
func likeQuoted(parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p.(type) {
		case *syntax.ParamExp, *syntax.ArithmExp:
			if misread(p) {
				return true
			}
		}
	}
	return false
}

// misread reports whether nodes hold single quotes around what would not be text
// without them. Substitutions begin anew.
func misread[N syntax.Node](nodes ...N) (found bool) {
	for _, n := range nodes {
		if any(n) == nil {
			continue
		}
		syntax.Walk(n, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst, *syntax.ProcSubst:
				return false
			case *syntax.SglQuoted:
				found = found || strings.ContainsAny(n.Value, "$`\"}\\")
			}
			return !found
		})
	}
	return found
}

// endsThere reports whether a substitution in backquotes ends where shells end
// it: at the next backquote, whatever quotes and comments are open.
func (s *survey) endsThere(n *syntax.CmdSubst) bool {
	from := int(n.Pos().Offset())
	text := slice(s.src, n)
	if len(text) < 2 {
		return false
	}
	if before := s.src[:from]; text[0] != '`' || (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1 {
		return true // inside of another one, which is looked at
	}
	text = text[1 : len(text)-1]
	if strings.Contains(text, "\\`") && strings.ContainsAny(text, "'\"#") {
		return false
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '`':
			return false
		}
	}
	return true
}

// indexed reports whether a subscript stands at a place that zsh would expand,
// quotes in it or not.
func (s *survey) indexed(at int) bool {
	if at >= len(s.src) || s.src[at] != '[' {
		return false
	}
	text, _, _ := strings.Cut(s.src[at:], "]")
	return strings.ContainsAny(text, "'\"$`\\")
}

func (s *survey) redirect(d *syntax.Redirect) {
	word := slice(s.src, d.Word)
	if d.Hdoc != nil && likeQuoted(d.Hdoc.Parts) {
		s.err = errQuotes
	}
	switch d.Op {
	case syntax.DplIn, syntax.DplOut:
		if !descriptor.MatchString(word) && !twice.MatchString(word) {
			s.err = errQuotes
		}
		if strings.ContainsAny(word[:min(1, len(word))], `-\0123456789`) && !descriptor.MatchString(word) || strings.Contains(word, "\\\n") {
			s.err = errCloses
		}
	case syntax.Hdoc, syntax.DashHdoc:
		doc := hereDoc{at: int(d.Word.End().Offset()), word: word, tabs: d.Op == syntax.DashHdoc, body: d.Hdoc}
		for _, n := range s.stack {
			switch n := n.(type) {
			case *syntax.CmdSubst:
				doc.inside = true
				if n.Backquotes {
					s.err = errHereDoc
				}
			case *syntax.ProcSubst:
				doc.inside = true
			}
		}
		s.docs = append(s.docs, doc)
	}
}

// hereDoc is a here-document as the parser sees it.
type hereDoc struct {
	at     int // where its operator's word ends
	word   string
	tabs   bool // "<<-"
	inside bool // a substitution, which some shells end at a line such as "E)"
	body   *syntax.Word
}

// sameDocs reads the here-documents of a text line by line, as shells do, and
// reports whether the parser found the same bodies.
func sameDocs(src string, docs []hereDoc) bool {
	slices.SortFunc(docs, func(a, b hereDoc) int { return a.at - b.at })
	var line, next int // the end of the line of the last operator, and of its bodies
	for _, d := range docs {
		m := delimiter.FindStringSubmatch(d.word)
		nl := strings.IndexByte(src[min(d.at, len(src)):], '\n')
		if m == nil || nl < 0 {
			return false
		}
		word := m[1] + m[2] + strings.TrimPrefix(m[3], `\`)
		quoted := word != d.word
		nl += d.at
		rest := src[d.at:nl] // of the line; the newline must not be quoted
		if nl != line && d.at < next || rest != "" && !strings.ContainsRune(" \t;&|()<>", rune(rest[0])) || strings.HasSuffix(rest, `\`) || strings.Count(rest, `"`)%2 != 0 || strings.Count(rest, "'")%2 != 0 {
			return false
		}
		start := nl + 1
		if nl == line {
			start = next
		}
		end, found := start, false
		for from := start; from <= len(src); {
			text, _, more := strings.Cut(src[from:], "\n")
			end = from + len(text)
			if d.tabs {
				text = strings.TrimLeft(text, "\t")
			}
			if found = text == word; found || !more || d.inside && strings.HasPrefix(text, word) {
				break
			}
			from = end + 1
		}
		if !found || !quoted && strings.Contains(src[d.at:end], "\\\n") {
			return false
		}
		if d.body != nil && (int(d.body.Pos().Offset()) != start || int(d.body.End().Offset()) != end) ||
			d.body == nil && strings.Contains(src[start:end], "\n") {
			return false
		}
		line, next = nl, min(end+1, len(src))
	}
	return true
}

// slice is the source of a node.
func slice(src string, n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(src) {
		return ""
	}
	return src[from:to]
}
