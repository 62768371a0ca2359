package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Nested is a text that a part of a command hands to a shell, or may hand to
// one.
type Nested struct {
	Text    string
	Literal bool // what stands in it is all that the shell gets
	Sure    bool // a shell reads it; otherwise it may be any argument of a program that runs others
	fed     bool // P-72 is about it: a here-document or here-string
}

// Parse reads the script. In one that is not literal, words with expansions
// count as not literal whatever quotes are around them, and a command word that
// only expands is no construct to ask about.
func (n Nested) Parse() (Script, error) {
	s, err := Parse(n.Text)
	if err != nil || n.Literal {
		return s, err
	}
	for i := range s.Parts {
		for j := range s.Parts[i].Words {
			if w := &s.Parts[i].Words[j]; w.Literal && strings.ContainsAny(w.Text, "$`") {
				w.Literal, w.Source, s.Parts[i].text = false, w.Text, ""
			}
		}
	}
	s.Ask = slices.DeleteFunc(s.Ask, func(a string) bool { return strings.HasPrefix(a, commandWord) })
	return s, err
}

// commandWord begins what Script.Ask says of a command word that is not literal.
const commandWord = "the command word "

// script is the word as a shell reads it that gets it as a script.
func (w Word) script() string {
	if w.Literal {
		return w.Text
	}
	return w.spliced
}

// withArgs returns the commands of xargs and its kin with the arguments that the
// text gives them: echo a | xargs rm.
func (p Part) withArgs() (out []Nested) {
	from := slices.IndexFunc(p.Words, func(w Word) bool { return Feeds([]Word{w}) })
	for _, args := range p.args {
		tried := 0
		for i := from + 1; i < len(p.Words) && tried < 3; i++ { // a word may be the value of an option
			if strings.HasPrefix(p.Words[i].Source, "-") {
				continue
			}
			tried++
			n := Nested{Literal: args.Literal}
			for _, w := range p.Words[i:] {
				n.Text += w.Source + " "
			}
			n.Text += strings.ReplaceAll(args.Text, "\n", " ")
			out = append(out, n)
		}
	}
	return out
}

// scriptLike are characters that make an argument more than one word.
const scriptLike = " \t\n;&|$`(<>"

// MaxScripts is how many scripts a command may hold so that all of them are
// found: of more, the rest is left out.
const MaxScripts = 100

// Scripts returns the texts that a shell may read when a part runs: what it is
// fed, and arguments of shells and of programs that run other commands. Some of
// them may be none.
func Scripts(p Part) []Nested {
	out := append(slices.Clone(p.fed), p.withArgs()...)
	if len(p.Words) == 0 {
		return out
	}
	name, words := base(p.Words[0].Text), p.Words
	if !p.Words[0].Literal {
		return out
	}
	if name == "command" || name == "builtin" {
		if rest, ok := Unwrap(words); ok {
			name, words = base(rest[0].Text), rest
		}
	}
	if name == "eval" {
		return append(out, joined(words[1:], true))
	}
	isShell := shells.has(name)
	if !isShell && !runners.has(name) {
		return out
	}
	flagged := false // an option of a shell that takes a script stands before
	for i, w := range words[1:] {
		if len(out) > MaxScripts {
			break
		}
		text, rest := w.script(), words[i+2:]
		if name == "env" && i > 0 && strings.HasPrefix(words[i].Text, "-") { // env -S '-i ls', env -S 'ls\_-l'
			text = envOptions.ReplaceAllString(envEscapes.Replace(text), "")
		}
		switch {
		case shells.has(lastName(text)):
			isShell = true
		case isShell && flagged && !strings.HasPrefix(text, "-"):
			out = append(out, Nested{Text: text, Literal: w.Literal, Sure: true})
			flagged = false
			continue
		}
		option := strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+")
		flagged = flagged || isShell && option && !strings.HasPrefix(text, "--") && strings.Contains(text, "c")
		if option { // a value that is attached: env -S'…', su -c'…', --command=…
			var values []string
			if _, v, ok := strings.Cut(text, "="); ok {
				values = append(values, v)
			}
			for _, c := range "Sc" {
				if _, v, ok := strings.Cut(text, string(c)); ok && !strings.HasPrefix(text, "--") {
					values = append(values, v)
				}
			}
			for _, v := range values {
				if strings.TrimSpace(v) != "" {
					out = append(out, Nested{Text: v, Literal: w.Literal}, glued(v, w.Literal, rest))
				}
			}
			continue
		}
		if strings.ContainsAny(text, scriptLike) && strings.ContainsFunc(text, func(r rune) bool { return r >= 'a' && r <= 'z' }) {
			out = append(out, Nested{Text: text, Literal: w.Literal, Sure: name == "trap"})
			if !isShell && len(rest) > 0 {
				out = append(out, glued(text, w.Literal, rest))
			}
		}
	}
	return out
}

// envEscapes are escapes of "env -S" that stand for blanks.
var envEscapes = strings.NewReplacer(`\_`, " ", `\t`, " ", `\n`, " ", `\v`, " ", `\f`, " ", `\r`, " ")

// envOptions are options of env itself before the command of "env -S".
var envOptions = regexp.MustCompile(`^(?:-\S+\s+)+`)

// glued is a text whose last command gets further words.
func glued(text string, literal bool, rest []Word) Nested {
	out := Nested{Text: envEscapes.Replace(text), Literal: literal}
	for _, w := range rest {
		out.Text += " " + w.Source
	}
	return out
}

// joined is the script that eval makes of its words.
func joined(words []Word, sure bool) Nested {
	out := Nested{Literal: true, Sure: sure}
	for _, w := range words {
		out.Text += w.script() + " "
		out.Literal = out.Literal && w.Literal
	}
	return out
}

// namesShell finds the name of a shell in an argument.
var namesShell = regexp.MustCompile(`(?:^|[\s/;&|(=]|^-[A-Za-z]*S)(?:` + strings.ReplaceAll(shellList, " ", "|") + `)(?:$|[\s;&|)])`)

// asShell are programs that start a shell when no command is given.
var asShell = namesOf("su runuser script unshare nsenter chroot sudo doas newgrp")

// readsInput reports whether a command may run what it reads from its standard
// input.
func readsInput(words []Word) bool {
	if len(words) == 0 {
		return false
	}
	name := base(words[0].Text)
	switch {
	case !words[0].Literal, evaluators.has(name), shells.has(name):
		return true
	case asShell.has(name) && !slices.ContainsFunc(words[1:], func(w Word) bool { return !strings.HasPrefix(w.Text, "-") }):
		return true
	}
	return runners.has(name) && slices.ContainsFunc(words[1:], func(w Word) bool { return !w.Literal || namesShell.MatchString(w.Text) || w.Text == "su" })
}

// feeds returns the here-documents and here-strings among redirections.
func (r *reader) feeds(redirs []*syntax.Redirect) (out []Nested) {
	for _, d := range redirs {
		if d.Word == nil {
			continue
		}
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			n := Nested{Sure: true, fed: true, Literal: true}
			if d.Hdoc != nil {
				n.Text = r.source(d.Hdoc)
				n.Text = n.Text[:strings.LastIndexByte(n.Text, '\n')+1] // without the delimiter
				for _, p := range d.Hdoc.Parts {
					if _, ok := p.(*syntax.Lit); !ok {
						n.Literal = false
					}
				}
			}
			out = append(out, n)
		case syntax.WordHdoc:
			w := r.word(d.Word)
			out = append(out, Nested{Text: w.script(), Literal: w.Literal, Sure: true, fed: true})
		}
	}
	return out
}

// printed returns what may come out of a statement that is read by the next one
// of a pipeline: its here-documents and what it echoes. It is remembered, because
// what stands before one "|" stands before the next one, too.
func (r *reader) printed(s *syntax.Stmt) (out []Nested) {
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if known, ok := r.echoed[n]; ok {
				out = append(out, known...)
				return false
			}
			out = append(out, r.feeds(n.Redirs)...)
		case *syntax.CallExpr:
			if len(n.Args) > 1 && slices.Contains([]string{"echo", "printf"}, n.Args[0].Lit()) {
				var words []Word
				for _, w := range n.Args[1:] {
					words = append(words, r.word(w))
					out = append(out, joined(words[len(words)-1:], false))
				}
				out = append(out, joined(words, false))
			}
		}
		return true
	})
	if _, long := s.Cmd.(*syntax.BinaryCmd); long {
		if r.echoed == nil {
			r.echoed = map[*syntax.Stmt][]Nested{}
		}
		r.echoed[s] = out
	}
	return out
}

// called returns what functions may be fed: where a text defines one, whatever
// is called may be it.
func (r *reader) called(file *syntax.File) (out []Nested) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if s, ok := n.(*syntax.Stmt); ok {
			out = append(out, r.feeds(s.Redirs)...)
		}
		return true
	})
	return out
}
