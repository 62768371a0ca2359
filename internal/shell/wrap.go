package shell

import (
	"regexp"
	"slices"
	"strings"
)

// wrapper says how the options of a program end that runs the command which
// follows them.
type wrapper struct {
	alone    []string // options without a value
	value    []string // options whose value is the next word, or attached
	operands int      // words before the command
	digits   bool     // an option such as -10
}

// wrappers are looked through before a command is matched (P-61). Anything else
// among their options keeps them unread.
var wrappers = map[string]wrapper{
	"timeout": {alone: []string{"--foreground", "--preserve-status", "-v", "--verbose", "-f", "-p"}, value: []string{"-k", "--kill-after", "-s", "--signal"}, operands: 1},
	"time":    {alone: []string{"-p"}},
	"nice":    {value: []string{"-n", "--adjustment"}, digits: true},
	"nohup":   {},
	"stdbuf":  {value: []string{"-i", "-o", "-e", "--input", "--output", "--error"}},
	"command": {},
	"builtin": {},
	"noglob":  {},
	"xargs":   {},
}

// Unwrap takes one wrapper off a command. ok is false when the command is not
// wrapped or the wrapper has options that are not known.
func Unwrap(words []Word) (rest []Word, ok bool) {
	if len(words) < 2 || !words[0].Literal {
		return nil, false
	}
	w, known := wrappers[words[0].Text]
	if !known {
		return nil, false
	}
	i := 1
	for ; i < len(words); i++ {
		opt := words[i]
		if !strings.HasPrefix(opt.Text, "-") {
			break
		}
		if !opt.Literal {
			return nil, false
		}
		name, _, attached := strings.Cut(opt.Text, "=")
		switch {
		case slices.Contains(w.alone, opt.Text):
		case slices.Contains(w.value, opt.Text):
			if i++; i >= len(words) || !words[i].Literal {
				return nil, false
			}
		case attached && strings.HasPrefix(name, "--") && slices.Contains(w.value, name):
		case len(opt.Text) > 2 && opt.Text[1] != '-' && slices.Contains(w.value, opt.Text[:2]):
		case w.digits && len(opt.Text) > 1 && strings.Trim(opt.Text[1:], "0123456789") == "":
		default:
			return nil, false
		}
	}
	for range w.operands {
		if i >= len(words) || !words[i].Literal {
			return nil, false
		}
		i++
	}
	if i >= len(words) {
		return nil, false
	}
	return words[i:], true
}

// Stripped takes all wrappers off a command. ok is false when one of them could
// not be read, so that it is not known which command it runs.
func Stripped(words []Word) (rest []Word, ok bool) {
	for len(words) > 0 && words[0].Literal {
		if _, wraps := wrappers[words[0].Text]; !wraps {
			break
		}
		inside, known := Unwrap(words)
		if !known {
			return words, len(words) == 3 && words[0].Text == "command" && (words[1].Text == "-v" || words[1].Text == "-V")
		}
		words = inside
	}
	return words, true
}

// Fed reports whether a wrapper that Stripped takes off adds arguments to the
// command: then the words are not all that it gets.
func Fed(words []Word) bool {
	for len(words) > 0 {
		if words[0].Text == "xargs" {
			return true
		}
		rest, ok := Unwrap(words)
		if !ok {
			break
		}
		words = rest
	}
	return false
}

// Feeds reports whether a command hands names to another one that are not in
// the text: xargs, parallel, find -exec.
func Feeds(words []Word) bool {
	return slices.ContainsFunc(words, func(w Word) bool {
		switch lastName(w.Text) {
		case "xargs", "parallel", "-exec", "-execdir", "-ok", "-okdir", "fd":
			return true
		}
		return false
	})
}

// Elsewhere reports whether a command may run another one in a directory of its
// own: env -C, sudo -D.
func Elsewhere(words []Word) bool {
	if len(words) == 0 || !runners.has(base(words[0].Text)) {
		return false
	}
	for _, w := range words[1:] {
		switch {
		case strings.HasPrefix(w.Text, "--chdir"), strings.HasPrefix(w.Text, "-C"), strings.HasPrefix(w.Text, "-D"):
			return true
		case slices.Contains([]string{"rm", "rmdir"}, base(w.Text)):
			return false
		}
	}
	return false
}

// movingOptions are those with which a program runs another one in a directory
// that is not its own: another one, or another root. Some stand for all programs
// of that kind.
var movingOptions = map[string]*regexp.Regexp{
	"env":      regexp.MustCompile(`^(?:-[A-Za-z0]*C|--c)`),
	"sudo":     regexp.MustCompile(`^(?:-[A-Za-z]*[DiR]|--ch|--l)`),
	"su":       regexp.MustCompile(`^(?:-$|-[A-Za-z]*l|--l)`),
	"runuser":  regexp.MustCompile(`^(?:-$|-[A-Za-z]*l|--l)`),
	"unshare":  regexp.MustCompile(`^(?:-[A-Za-z]*[Rw]|--ro|--w)`),
	"nsenter":  regexp.MustCompile(`^(?:-[A-Za-z]*[rw]|--ro|--w)`),
	"parallel": regexp.MustCompile(`^--w`),
	"find":     regexp.MustCompile(`^-(?:exec|ok)dir$`),
	"chroot":   regexp.MustCompile(``),
	"ssh":      regexp.MustCompile(``),
}

// Moves reports whether a command may run another one in another directory: env
// -C, sudo -D, chroot. It errs by finding too many.
func Moves(words []Word) bool {
	for i, w := range words {
		name := lastName(w.Text)
		if option := movingOptions[name]; option != nil && slices.ContainsFunc(ownOptions(name, words[i+1:]), func(w Word) bool { return option.MatchString(w.Text) }) {
			return true
		}
		if i == 0 && !runners.has(name) {
			return false
		}
	}
	return false
}

// ownOptions are the words that may be options of a program itself, and not of
// the command that it runs: those before it.
func ownOptions(name string, words []Word) []Word {
	if !slices.Contains([]string{"env", "sudo", "unshare", "nsenter"}, name) {
		return words
	}
	for i, w := range words {
		option := strings.HasPrefix(w.Source, "-") || strings.Contains(w.Text, "=")
		value := i > 0 && strings.HasPrefix(words[i-1].Source, "-")
		if !option && !value {
			return words[:i]
		}
	}
	return words
}

// runners are programs that run what stands in their arguments. Rules that
// forbid look through them (P-61), whatever their options.
var runners = namesOf("timeout time nice nohup stdbuf command builtin noglob nocorrect xargs" +
	" env sudo doas busybox toybox su runuser setsid flock watch script parallel nsenter" +
	" unshare chroot ionice chrt taskset strace ltrace unbuffer exec eval trap coproc repeat" +
	" prlimit setarch linux32 linux64 choom uclampset numactl setpriv capsh runcon" +
	" dbus-run-session dbus-launch sg pkexec fakeroot faketime valgrind perf memusage" +
	" systemd-run systemd-cat systemd-inhibit rlwrap proxychains torsocks xvfb-run tini dumb-init" +
	" find fd ssh -")

// maxDepth bounds the commands inside the arguments of commands.
const maxDepth = 5

// Inner returns the commands that may run for these words, as rules that forbid
// see them: the command itself, what stands behind programs that run other
// commands, and the parts of scripts in arguments. The command word of each is
// without its directory. Some of them may never run.
func Inner(words []Word) [][]Word { return inner(words, 0) }

func inner(words []Word, depth int) (out [][]Word) {
	if len(words) == 0 {
		return nil
	}
	first := words[0]
	if first.Tilde && first.Glob && first.Prefix == first.Flat { // a path from the home directory
		first.Text, first.Source, first.Literal = first.Flat, first.Flat, true
		words = append([]Word{first}, words[1:]...)
	}
	if b := base(first.Text); first.Literal && b != "" && b != first.Text {
		first.Text, first.Source = b, b
		words = append([]Word{first}, words[1:]...)
	}
	out = append(out, words)
	if depth >= maxDepth || !first.Literal {
		return out
	}
	isShell := shells.has(first.Text)
	if !isShell && !runners.has(first.Text) {
		return out
	}
	for i := 1; i < len(words); i++ {
		w := words[i]
		if !isShell {
			rest := words[i:]
			if end := slices.IndexFunc(rest, func(w Word) bool { return w.Text == ";" || w.Text == "+" }); end > 0 && first.Text == "find" {
				rest = rest[:end]
			}
			out = append(out, rest)
			if b := base(w.Text); w.Literal && b != "" && b != w.Text {
				w.Text, w.Source = b, b
				rest = append([]Word{w}, rest[1:]...)
				out = append(out, rest)
			}
		}
		// An argument that is more than one word may be a script: sh -c '…',
		// or a nested runner may take it.
		if w.Literal && strings.ContainsAny(w.Text, " \t\n;&|$`(") {
			if s, err := Parse(w.Text); err == nil {
				for _, p := range s.Parts {
					out = append(out, inner(p.Words, depth+1)...)
				}
			} else {
				out = append(out, []Word{{Text: w.Text, Source: w.Text}})
			}
		} else if isShell && w.Literal && !strings.HasPrefix(w.Text, "-") {
			out = append(out, []Word{w})
		}
	}
	if !isShell { // a shell behind a runner: sudo sh -c '…'
		for i := 1; i < len(words); i++ {
			if w := words[i]; w.Literal && shells.has(base(w.Text)) {
				out = append(out, inner(words[i:], depth+1)...)
				break
			}
		}
	}
	return out
}
