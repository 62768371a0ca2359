package shell

import (
	"slices"
	"strings"
)

// editors are the commands that acceptEdits runs on files in the working
// directories, with the options that do nothing else (P-8).
var editors = map[string]spec{
	"mkdir": {operands: asPaths, short: "pv", shortArg: "m", long: "parents verbose mode="},
	"touch": {operands: asPaths, short: "acmh", shortArg: "dt", long: "no-create date="},
	"rm":    {operands: asPaths, short: "rRfvdiI", long: "recursive force verbose dir"},
	"rmdir": {operands: asPaths, short: "v", long: "ignore-fail-on-non-empty verbose"},
	"mv":    {operands: asPaths, short: "finvuT", long: "force interactive no-clobber verbose update"},
	"cp":    {operands: asPaths, short: "rRapfinvuTd", long: "recursive archive force interactive no-clobber verbose update"},
	"sed":   {operands: afterText, textBy: "e", short: "niErsuz", shortArg: "e", long: "quiet silent in-place regexp-extended expression= separate", check: sedScripts},
}

// Edit is what a file command of acceptEdits changes.
type Edit struct {
	Name  string
	Paths []Word // all of them literal; of cp and mv the last is the destination
	Tree  bool   // cp and mv: directories and links are taken as they are
}

// Copies reports whether the command puts files in another place.
func (e Edit) Copies() bool { return e.Name == "cp" || e.Name == "mv" }

// Edits reports whether a command, wrappers taken off, changes only the files
// that its words name, and which they are.
func Edits(words []Word) (e Edit, ok bool) {
	if len(words) == 0 || !words[0].Literal {
		return e, false
	}
	s, known := editors[words[0].Text]
	if !known || s.check != nil && !s.check(words[1:]) {
		return e, false
	}
	if slices.ContainsFunc(words[1:], func(w Word) bool { return !w.Literal }) {
		return e, false
	}
	ops, text, opts, ok := s.split(words[1:])
	if !ok {
		return e, false
	}
	if s.operands == afterText && !text {
		if len(ops) == 0 {
			return e, false
		}
		ops = ops[1:]
	}
	e = Edit{Name: words[0].Text, Paths: ops}
	e.Tree = e.Name == "mv" || e.Name == "cp" && slices.ContainsFunc(opts, func(o string) bool {
		return o == "--recursive" || o == "--archive" || !strings.HasPrefix(o, "--") && strings.ContainsAny(o, "rRad")
	})
	return e, len(ops) > 0
}

// The commands whose file arguments are known, for rules that forbid (P-75).
var (
	fileReaders = namesOf("cat head tail nl tac rev fold expand unexpand column b2sum fmt pr split csplit shuf tsort iconv sed grep egrep fgrep rg sort uniq cut paste join diff cmp comm wc less more strings od hexdump xxd base64 file stat awk gawk jq bat md5sum sha1sum sha256sum sha512sum cksum tee dd install ln cp mv touch mkdir rm rmdir truncate chmod chown chgrp shred unlink link rsync scp tar zip unzip gzip gunzip bzip2 bunzip2 xz unxz zstd patch ed ex mktemp mkfifo mknod fallocate")
	fileWriters = namesOf("sed sort tee dd install ln cp mv touch mkdir rm rmdir truncate chmod chown chgrp shred unlink link rsync scp xxd uniq split csplit shuf gzip gunzip bzip2 bunzip2 xz unxz zstd patch ed ex mktemp mkfifo mknod fallocate")
	movers      = namesOf("cp install ln mv rsync scp")
	lastWrites  = namesOf("cp install ln rsync scp") // only the last operand is written
)

// Files is what a command may read and write by the names in its words.
type Files struct {
	Reads, Writes []Word
	Operands      int  // words that are no options; Reads may hold more
	Recursive     bool // directories among them count with all that is in them
	Follows       bool // and links in them
	Into          []Into
}

// Into is a file that a copy makes when its destination is a directory. File is
// not literal where its name is not known.
type Into struct{ Dir, File Word }

// NamedFiles returns the files that a command on the list of P-75 names. It
// takes every word for a file that may be one, so it is for rules that forbid
// only. ok is false for other commands.
func NamedFiles(words []Word) (f Files, ok bool) {
	if len(words) > 0 && words[0].Text == "find" {
		return findFiles(words[1:])
	}
	if len(words) > 0 && words[0].Text == "git" {
		return gitOutput(words)
	}
	if len(words) == 0 || !fileReaders.has(words[0].Text) {
		return f, false
	}
	name := words[0].Text
	opts := dashed(words[1:])
	f.Recursive = readsTrees(name, opts)
	f.Follows = name == "diff" || slices.ContainsFunc(opts, func(o string) bool {
		if strings.HasPrefix(o, "--") {
			return strings.HasPrefix(o, "--d") || strings.HasPrefix(o, "--fo") || strings.HasPrefix(o, "--copy")
		}
		return strings.ContainsAny(o, "RL") || name == "tar" && strings.Contains(o, "h")
	})
	into := false                        // an option names the directory that is written to
	ops := make([]Word, 0, len(words)-1) // operands
	var dashes []Word                    // files that options may name, or be
	ended := false                       // by "--"
	for i, w := range words[1:] {
		if strings.HasPrefix(w.Source, "-") && !ended {
			// It may be the value of the option before it: sort -o -x, cp -S --.
			value := i > 0 && strings.HasPrefix(words[i].Text, "-")
			if value || strings.Contains(w.Text, "/") {
				dashes = append(dashes, w)
			}
			if ended = w.Text == "--" && !value; w.Text == "--" {
				continue
			}
			if w.Literal && !strings.HasPrefix(w.Text, "--") && strings.ContainsRune(w.Text, 'a') {
				f.Recursive = true
			}
			names := false // the word names the directory that is written to
			if strings.HasPrefix(w.Text, "--t") || movers.has(name) && !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "t") {
				into, names = true, true
				if _, v, ok := strings.Cut(w.Text[2:], "t"); ok && v != "" && !strings.HasPrefix(w.Text, "--") {
					ops = append(ops, Word{Text: v, Source: v, Literal: w.Literal, Glob: w.Glob}) // -vtdir
				}
			}
			// The value of an option may be a file too: --file=x, -fx.
			_, v, ok := strings.Cut(w.Text, "=")
			if !ok && len(w.Text) > 2 && w.Text[1] != '-' {
				v = w.Text[2:]
			}
			switch value := (Word{Text: v, Source: v, Literal: w.Literal, Glob: w.Glob}); {
			case v == "":
			case names:
				ops = append(ops, value)
			default:
				dashes = append(dashes, value)
			}
			continue
		}
		if k, v, ok := strings.Cut(w.Text, "="); name == "dd" && ok {
			v := Word{Text: v, Source: v, Literal: w.Literal, Glob: w.Glob}
			if k == "of" {
				f.Writes = append(f.Writes, v)
			}
			ops = append(ops, v)
			continue
		}
		ops = append(ops, w)
	}
	f.Reads, f.Operands = ops, len(ops)
	switch {
	case name == "dd":
	case lastWrites.has(name) && !into:
		if len(ops) > 0 {
			f.Writes = append(f.Writes, ops[len(ops)-1])
		}
	case fileWriters.has(name):
		f.Writes = ops
	}
	if movers.has(name) {
		f.into(ops, into)
	}
	if f.Reads = append(slices.Clip(f.Reads), dashes...); fileWriters.has(name) {
		f.Writes = append(slices.Clip(f.Writes), dashes...)
	}
	switch name {
	case "sed":
		f.sedFiles(words[1:])
	case "tar", "zip", "unzip":
		f.archive(name, opts, ops)
	}
	return f, true
}

// archive adds what a program for archives writes: the archive, or what it holds,
// here or where an option says.
func (f *Files) archive(name string, opts []string, ops []Word) {
	has := func(letters, word string) bool {
		return slices.ContainsFunc(opts, func(o string) bool {
			return strings.HasPrefix(o, word) || !strings.HasPrefix(o, "--") && strings.ContainsAny(o, letters)
		}) ||
			name == "tar" && len(ops) > 0 && !strings.Contains(ops[0].Text, "/") && strings.ContainsAny(ops[0].Text, letters) // tar xf
	}
	switch {
	case name == "unzip", name == "tar" && has("x", "--e"), name == "tar" && has("x", "--g"):
		f.Recursive = true
		f.Writes = append(slices.Clone(ops), Word{Text: ".", Source: ".", Literal: true})
	case name == "zip" && has("m", "--m"), name == "tar" && has("", "--remove"):
		f.Writes = ops
	case len(ops) > 0:
		f.Writes = ops[:min(2, len(ops))] // tar cf x: the first one may be the options
	}
}

// findFiles are the files that find changes; of those that it names it shows
// nothing.
func findFiles(args []Word) (f Files, ok bool) {
	for i, w := range args {
		switch w.Text {
		case "-delete":
			f.Reads, f.Recursive = findRoots(args), true // a Read rule forbids changes too (P-86)
			f.Writes = append(f.Writes, f.Reads...)
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(args) {
				f.Writes = append(f.Writes, args[i+1])
			}
		case "-L", "-follow":
			f.Follows = true
		}
	}
	return f, len(f.Writes) > 0
}

// MakesLinks reports whether a command makes symbolic links.
func MakesLinks(words []Word) bool {
	return len(words) > 0 && (words[0].Text == "ln" || words[0].Text == "cp") && mayHave(words[1:], "s", "--s")
}

// mayHave reports whether an option with one of the letters, or one that begins
// like one of the long ones, may be among the words.
func mayHave(args []Word, letters string, long ...string) bool {
	return slices.ContainsFunc(args, func(w Word) bool {
		if !w.Literal { // what it expands to may be an option
			return !w.Glob || w.Prefix == "" || w.Prefix[0] == '-'
		}
		if strings.HasPrefix(w.Text, "--") {
			return slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(w.Text, l) })
		}
		return strings.HasPrefix(w.Text, "-") && strings.ContainsAny(w.Text, letters)
	})
}

// Carried returns what a command moves, gives a second name, or copies with links
// as links.
func Carried(words []Word) (sources []Word) {
	if len(words) == 0 {
		return nil
	}
	args := words[1:]
	switch name := words[0].Text; {
	case name == "mv", name == "ln", name == "link": // a second name of a link is one, too
	case name == "cp" && mayHave(args, "adlPRr", "--a", "--l", "--no-d", "--r"):
	case name == "rsync" && mayHave(args, "al", "--a", "--l"):
	default:
		return nil
	}
	ended := false
	for _, w := range args {
		switch {
		case !ended && w.Text == "--":
			ended = true
		case !ended && strings.HasPrefix(w.Source, "-"):
		default:
			sources = append(sources, w)
		}
	}
	if len(sources) > 1 && !mayHave(args, "t", "--t") {
		sources = sources[:len(sources)-1] // the last one is where they go
	}
	return sources
}

// Repeats reports whether a command runs another one again and again.
func Repeats(words []Word) bool {
	return slices.ContainsFunc(words, func(w Word) bool { return lastName(w.Text) == "watch" || lastName(w.Text) == "repeat" })
}

// into adds what a copy makes in a directory: the last operand, or, when an
// option names it, any operand.
func (f *Files) into(ops []Word, any bool) {
	dirs := ops
	switch {
	case len(ops) == 0:
		return
	case len(ops) == 1: // ln x makes it in the working directory
		dirs = []Word{{Text: ".", Source: ".", Literal: true}}
	case !any:
		dirs = ops[len(ops)-1:]
	}
	if len(dirs) > 1 && len(ops) > 64 { // too many pairs
		for _, dir := range dirs {
			f.Into = append(f.Into, Into{Dir: dir})
		}
		return
	}
	for i, dir := range dirs {
		if len(dirs) < len(ops) {
			i = len(ops) - 1 // its place among the operands; "." has none
		}
		for j, from := range ops {
			if i == j && len(ops) > 1 {
				continue
			}
			file := Word{Source: from.Source}
			if dir.Literal && from.Literal {
				file.Text = dir.Text + "/" + base(strings.TrimRight(from.Text, "/"))
				file.Source, file.Literal = file.Text, true
			}
			f.Into = append(f.Into, Into{dir, file})
		}
	}
}

// sedFiles adds the files that a script of sed may read or write: what follows
// the letters of those commands up to the end of the line, wherever they stand.
func (f *Files) sedFiles(args []Word) {
	for _, w := range args {
		if !w.Literal || safeSed(w.Text) {
			continue
		}
		for _, line := range strings.Split(w.Text, "\n") {
			for i, c := range line {
				if !strings.ContainsRune("wWrR", c) {
					continue
				}
				if name := strings.TrimLeft(line[i+1:], " \t"); name != "" {
					word := Word{Text: name, Source: name, Literal: true}
					f.Reads = append(f.Reads, word)
					if c == 'w' || c == 'W' {
						f.Writes = append(f.Writes, word)
					}
				}
			}
		}
	}
}

// Removed returns the targets of rm and rmdir.
func Removed(words []Word) (targets []Word) {
	if len(words) == 0 || words[0].Text != "rm" && words[0].Text != "rmdir" {
		return nil
	}
	ended := false
	for _, w := range words[1:] {
		switch {
		case !ended && w.Text == "--":
			ended = true
		case !ended && strings.HasPrefix(w.Text, "-"):
		default:
			targets = append(targets, w)
		}
	}
	return targets
}

// exactOnly are commands that no rule with a wildcard approves (P-65): they run
// another command, or are builtins that run what stands in an argument (an index
// such as a[$(cmd)], a callback) or change what later names and commands mean.
var exactOnly = namesOf("watch setsid ionice flock " +
	"test [ let read mapfile readarray declare typeset local readonly export unset getopts printf " +
	"compgen complete compopt jobs wait hash set shopt setopt alias unalias enable trap bind exec eval source . builtin coproc zmodload autoload")

// plainValue holds what a value consists of that nothing is done with.
const plainValue = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,-"

// setsNothing reports whether one of those builtins only does what its name says:
// it prints, or sets variables that change nothing (P-63).
func setsNothing(name string, args []Word) bool {
	literal := !slices.ContainsFunc(args, func(w Word) bool { return !w.Literal })
	switch name {
	case "printf": // a format that is known, so that it is no -v
		return len(args) > 0 && args[0].Literal && !strings.HasPrefix(args[0].Text, "-")
	case "export", "readonly", "declare", "typeset", "local":
		return !slices.ContainsFunc(args, func(w Word) bool {
			variable, value, _ := strings.Cut(w.Source, "=")
			return !SafeVariable(variable) || strings.Trim(value, plainValue) != ""
		})
	case "set":
		return literal && !slices.ContainsFunc(args, func(w Word) bool { return strings.Trim(w.Text, "-+euo") != "" && w.Text != "pipefail" })
	case "wait", "jobs":
		return literal && !slices.ContainsFunc(args, func(w Word) bool { return strings.HasPrefix(w.Text, "-") })
	}
	return false
}

// gitShows are the subcommands that write what they show to a file with
// --output.
var gitShows = namesOf("log diff show whatchanged reflog stash shortlog range-diff diff-tree diff-index diff-files format-patch archive")

// gitMayWrite reports whether git may write to a file that its arguments name.
func gitMayWrite(words []Word) bool {
	return slices.ContainsFunc(words, func(w Word) bool { return gitShows.has(w.Text) }) && slices.ContainsFunc(words[1:], func(w Word) bool {
		return strings.HasPrefix(w.Text, "--ou") || !w.Literal && strings.ContainsAny(strings.TrimLeft(w.Source, `"`)[:1], "$`{*?[-")
	})
}

// gitOutput are the files that options of git name to be written.
func gitOutput(words []Word) (f Files, ok bool) {
	for i, w := range words {
		if !strings.HasPrefix(w.Text, "--ou") {
			continue
		}
		if _, v, ok := strings.Cut(w.Text, "="); ok {
			f.Writes = append(f.Writes, Word{Text: v, Source: v, Literal: w.Literal, Glob: w.Glob})
		} else if i+1 < len(words) {
			f.Writes = append(f.Writes, words[i+1])
		}
	}
	return f, len(f.Writes) > 0
}

// ExactOnly reports whether only an exact rule may approve a command (P-65).
func ExactOnly(words []Word) bool {
	if len(words) == 0 {
		return false
	}
	name := base(words[0].Text)
	switch name {
	case "find":
	case "git":
		return gitMayWrite(words)
	default:
		return exactOnly.has(name) && !setsNothing(name, words[1:])
	}
	args := slices.Clone(words[1:])
	for i, w := range args {
		if !w.Literal && !strings.HasPrefix(w.Source, "-") {
			args[i] = Word{Text: "x", Literal: true} // a directory or a value
		}
	}
	return !findReads(args)
}

// SafeVariable reports whether an assignment to a variable changes nothing of
// what a command does to files or runs (P-63).
func SafeVariable(name string) bool {
	return slices.Contains([]string{"NODE_ENV", "LANG", "TZ", "NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "CI", "DEBUG"}, name) ||
		strings.HasPrefix(name, "LC_")
}
