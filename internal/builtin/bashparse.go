package builtin

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parseShell parses a command. A panic of the parser counts as a command that
// cannot be parsed.
func parseShell(lang syntax.LangVariant, command string) (file *syntax.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("the shell parser failed: %v", p)
		}
	}()
	if len(command) > 128<<10 {
		return nil, errors.New("too long") // no system runs it either
	}
	return syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(command), "")
}

// literal returns the text of a word that no expansion changes.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	if w != nil && w.Lit() == "[" {
		return "[", true // the command, no pattern
	}
	if w == nil || !literalParts(&b, w.Parts, false) {
		return "", false
	}
	return b.String(), true
}

func literalParts(b *strings.Builder, parts []syntax.WordPart, quoted bool) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			for i := 0; i < len(p.Value); i++ {
				c := p.Value[i]
				switch {
				case c == '\\' && i+1 < len(p.Value):
					next := p.Value[i+1]
					if quoted && !strings.ContainsRune("$`\"\\\n", rune(next)) {
						b.WriteByte(c) // a backslash like any other character
						continue
					}
					i++
					if next != '\n' {
						b.WriteByte(next)
					}
				case !quoted && strings.IndexByte("*?[{~!^#=", c) >= 0 && (c != '~' && c != '=' && c != '#' || b.Len() == 0):
					return false // a pattern, or what some shell expands
				default:
					b.WriteByte(c)
				}
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				return false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar || !literalParts(b, p.Parts, true) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// words returns the words of a simple command after its assignments; a word
// that is not literal is "" with known false.
func words(call *syntax.CallExpr) (out []string, known []bool) {
	for _, w := range call.Args {
		s, ok := literal(w)
		out, known = append(out, s), append(known, ok)
	}
	return out, known
}

// calls yields every simple command in the tree.
func calls(node syntax.Node, yield func(args []string, known []bool)) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			yield(words(c))
		}
		return true
	})
}

// movable reports whether a command that has reached its time limit may go on
// in the background: not one that starts with sleep, runs git anywhere, or
// cannot be parsed (T-132).
func movable(command string) bool {
	file, err := parseShell(syntax.LangBash, command)
	if err != nil {
		return false
	}
	first, ok := true, true
	calls(file, func(args []string, known []bool) {
		if first && known[0] && path.Base(args[0]) == "sleep" {
			ok = false
		}
		first = false
		for i, a := range args {
			// git itself, what another program runs ("sudo git"), and a command
			// in a word of its own ("sh -c 'git pull'").
			if i == 0 && path.Base(a) == "git" || a == "git" || strings.HasSuffix(a, "/bin/git") || runsGit(a) {
				ok = false
			}
		}
	})
	return ok
}

func runsGit(word string) bool {
	if !strings.ContainsAny(word, " \t\n;&|") {
		return false
	}
	return slices.ContainsFunc(strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\n;&|(){}`\"'$", r) }),
		func(s string) bool { return path.Base(s) == "git" })
}

// quietOne lists programs whose exit code 1 is an answer and no failure
// (T-115), with what it means.
var quietOne = map[string]string{
	"grep": "No matches found", "rg": "No matches found", "egrep": "No matches found", "fgrep": "No matches found",
	"find": "Some directories were not accessible",
	"diff": "Files differ", "git diff": "Files differ", "git grep": "No matches found",
	"test": "Condition is false", "[": "Condition is false",
}

// meaningOfOne returns what exit code 1 of the command means where that is no
// failure. The last command of a list or pipeline gives the exit code; where
// another may have given it (&&, ||, exit, set -e, a command that cannot be
// parsed), the code counts as a failure.
func meaningOfOne(command string) (string, bool) {
	file, err := parseShell(syntax.LangBash, command)
	if err != nil || len(file.Stmts) == 0 {
		return "", false
	}
	ends := false
	calls(file, func(args []string, _ []bool) {
		switch args[0] {
		case "exit", "set", "exec", "trap", "return", "eval", ".", "source", "shopt", "setopt":
			ends = true
		}
	})
	stmt := file.Stmts[len(file.Stmts)-1]
	for !ends && !stmt.Negated && !stmt.Background && !stmt.Coprocess {
		switch cmd := stmt.Cmd.(type) {
		case *syntax.BinaryCmd:
			if cmd.Op != syntax.Pipe && cmd.Op != syntax.PipeAll {
				return "", false
			}
			stmt = cmd.Y
		case *syntax.TestClause: // [[
			return quietOne["["], true
		case *syntax.CallExpr:
			args, known := words(cmd)
			if len(args) == 0 || !known[0] || slices.ContainsFunc(cmd.Args, substitutes) {
				return "", false
			}
			name := filepath.Base(args[0])
			if name == "git" && len(args) > 1 {
				name += " " + args[1]
			}
			meaning, ok := quietOne[name]
			return meaning, ok
		default:
			return "", false
		}
	}
	return "", false
}

// substitutes reports whether another command runs inside of a word.
func substitutes(w *syntax.Word) (found bool) {
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}
