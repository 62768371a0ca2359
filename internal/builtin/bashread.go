package builtin

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/turnwright/turnwright/tool"
	"mvdan.cc/sh/v3/syntax"
)

// readCommand is a command that shows one file, and so counts as a read of it
// (T-77). The zero value is none.
type readCommand struct {
	path   string
	before os.FileInfo // as it was when the command started
}

// viewers are the commands that count, with their options that take the next
// word as value. An option that is not known to take none makes a command not
// count.
var viewers = map[string]struct {
	valued  string // letters of options with a value
	flags   string // and of those without
	pattern bool   // the first operand is no file
}{
	"cat":    {"", "AbeEnstTuv", false},
	"nl":     {"bdfhilnsvw", "p", false},
	"head":   {"cn", "qvz", false},
	"tail":   {"cn", "qvz", false},
	"bat":    {"rlH", "npPA", false},
	"batcat": {"rlH", "npPA", false},
	"grep":   {"ABCm", "EFGPainHhloqsvwxcbTUyz", true},
	"egrep":  {"ABCm", "EFGPainHhloqsvwxcbTUyz", true},
	"fgrep":  {"ABCm", "EFGPainHhloqsvwxcbTUyz", true},
	"rg":     {"ABCm", "FPSINHinlovwxcqsaU", true},
}

var (
	sedRange  = regexp.MustCompile(`^[0-9]+(,([0-9]+|\$))?p;?$`)
	countForm = regexp.MustCompile(`^[-+][0-9]+$`)
	plainLong = regexp.MustCompile(`^--(number|plain|color=never|paging=never|style=[a-z,]+|line-number|ignore-case|lines=[-+]?[0-9]+|bytes=[-+]?[0-9]+|context=[0-9]+)$`)
)

// readOf returns the file that a command shows, if it does nothing else: one
// simple command without pipe, redirection and anything that the shell would
// expand.
func readOf(shell, dir, command string) (r readCommand) {
	lang := syntax.LangBash
	if shellName(shell) == "zsh" {
		lang = syntax.LangZsh
	}
	file, err := parseShell(lang, command)
	if err != nil || len(file.Stmts) != 1 {
		return r
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(stmt.Redirs) > 0 || stmt.Background || stmt.Negated || stmt.Coprocess || len(call.Assigns) > 0 {
		return r
	}
	args, known := words(call)
	for _, k := range known {
		if !k {
			return r
		}
	}
	name, ok := shownFile(args)
	if !ok {
		return r
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return readCommand{filepath.Clean(name), info}
	}
	return r
}

// shownFile returns the one file among the arguments of a viewer.
func shownFile(args []string) (string, bool) {
	if len(args) < 2 {
		return "", false
	}
	if args[0] == "sed" {
		if len(args) == 4 && args[1] == "-n" && sedRange.MatchString(args[2]) && !strings.HasPrefix(args[3], "-") {
			return args[3], true
		}
		return "", false
	}
	v, ok := viewers[args[0]]
	if !ok {
		return "", false
	}
	var operands []string
	hasPattern := !v.pattern
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			operands = append(operands, args[i+1:]...)
			i = len(args)
		case a == "-" || a == "":
			return "", false // standard input, or nothing
		case a[0] != '-' && (a[0] != '+' || args[0] != "tail"):
			operands = append(operands, a)
		case countForm.MatchString(a) || plainLong.MatchString(a):
		case strings.HasPrefix(a, "--"):
			return "", false
		default:
			value, ok := shortOptions(a[1:], v.valued, v.flags, v.pattern)
			if !ok {
				return "", false
			}
			hasPattern = hasPattern || strings.HasPrefix(a, "-e")
			if value {
				i++
			}
		}
	}
	if !hasPattern && len(operands) > 0 {
		operands = operands[1:]
	}
	if len(operands) != 1 || operands[0] == "-" {
		return "", false
	}
	return operands[0], true
}

// shortOptions reads a cluster of one-letter options. value says that the next
// word is the value of the last.
func shortOptions(cluster, valued, flags string, pattern bool) (value, ok bool) {
	for i, c := range cluster {
		switch {
		case strings.ContainsRune(valued, c), pattern && c == 'e' && i == 0:
			return i == len(cluster)-1, true
		case !strings.ContainsRune(flags, c):
			return false, false
		}
	}
	return false, true
}

// record notes that the file has been read, unless it was changed meanwhile.
func (r readCommand) record(env *tool.Env) {
	if r.path == "" {
		return
	}
	now, err := os.Stat(r.path)
	if err != nil || !os.SameFile(now, r.before) || now.Size() != r.before.Size() || !now.ModTime().Equal(r.before.ModTime()) {
		return
	}
	_ = recordRead(env, r.path) // what cannot be recorded has to be read again
}
