package shell

import (
	"slices"
	"strings"
)

// The tests and actions of find that only read; the first list takes no value,
// the second one.
var (
	findAlone = strings.Fields("-print -print0 -ls -prune -quit -true -false -empty -depth -d -xdev -mount -daystart -noleaf -readable -writable -executable -nouser -nogroup ! -not -a -and -o -or ( ) ,")
	findValue = strings.Fields("-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin -atime -amin -ctime -cmin -newer -anewer -cnewer -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -samefile -fstype -printf -lname -ilname -used")
)

// findReads reports whether find only looks. Every word must be literal: a glob
// or a variable may become an action (P-68).
func findReads(args []Word) bool {
	expression := false
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.Literal {
			return false
		}
		switch {
		case !expression && (w.Text == "-P" || w.Text == "-H"):
		case slices.Contains(findAlone, w.Text):
			expression = true
		case slices.Contains(findValue, w.Text):
			expression = true
			if i++; i >= len(args) || !args[i].Literal {
				return false
			}
		case expression, strings.HasPrefix(w.Text, "-"):
			return false
		}
	}
	return true
}

// findRoots are the directories that find looks through.
func findRoots(args []Word) (roots []Word) {
	for _, w := range args {
		switch {
		case w.Text == "-P" || w.Text == "-H":
			continue
		case strings.HasPrefix(w.Text, "-"), w.Text == "!", w.Text == "(":
		default:
			roots = append(roots, w)
			continue
		}
		break
	}
	if len(roots) == 0 {
		roots = []Word{{Text: ".", Source: ".", Literal: true}}
	}
	return roots
}

var (
	testFile   = strings.Fields("-e -f -d -r -w -x -s -L -h -b -c -p -S -g -u -k -O -G")
	testText   = strings.Fields("-n -z = == != ! -a -o ( ) ] -nt -ot -ef")
	testNumber = strings.Fields("-eq -ne -lt -le -gt -ge")
)

// testReads accepts tests of files, texts and literal numbers: other tests
// evaluate what stands in variables.
func testReads(args []Word) bool {
	for i, w := range args {
		if !w.Literal {
			return false
		}
		switch {
		case slices.Contains(testNumber, w.Text):
			if i == 0 || i+1 >= len(args) || !number(args[i-1].Text) || !number(args[i+1].Text) {
				return false
			}
		case slices.Contains(testFile, w.Text), slices.Contains(testText, w.Text):
		case strings.HasPrefix(w.Text, "-"):
			return false
		}
	}
	return true
}

func number(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// testPaths are the operands of tests of files.
func testPaths(args []Word) (paths []Word) {
	for i := 1; i < len(args); i++ {
		if slices.Contains(testFile, args[i-1].Text) || slices.Contains([]string{"-nt", "-ot", "-ef"}, args[i-1].Text) {
			paths = append(paths, args[i])
		}
		if i+1 < len(args) && slices.Contains([]string{"-nt", "-ot", "-ef"}, args[i].Text) {
			paths = append(paths, args[i-1])
		}
	}
	return paths
}

// sedScripts reports whether the scripts of a sed command only print, delete
// and substitute.
func sedScripts(args []Word) bool {
	given := false
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.Literal {
			return false // P-68
		}
		script := ""
		switch {
		case w.Text == "-e" || w.Text == "--expression":
			if i++; i >= len(args) || !args[i].Literal {
				return false
			}
			script = args[i].Text
		case strings.HasPrefix(w.Text, "--expression="):
			script = w.Text[len("--expression="):]
		case strings.HasPrefix(w.Text, "--"):
			continue
		case strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "e"):
			return false // merged with others
		case strings.HasPrefix(w.Text, "-"), given:
			continue
		default:
			script = w.Text
		}
		given = true
		if script == "" || !safeSed(script) { // "sed -i ''" of BSD
			return false
		}
	}
	return given
}

// safeSed accepts a small part of sed's language, in which nothing is written
// or run: addresses, then p, d, q, = or s without the flags e and w.
func safeSed(s string) bool {
	for {
		s = strings.TrimLeft(s, " \t\n;")
		if s == "" {
			return true
		}
		for range 2 { // addr[,addr]
			switch {
			case s[0] >= '0' && s[0] <= '9':
				s = strings.TrimLeft(s, "0123456789")
			case s[0] == '$':
				s = s[1:]
			case s[0] == '/':
				rest, ok := sedUntil(s[1:], '/')
				if !ok {
					return false
				}
				s = rest
			}
			if !strings.HasPrefix(s, ",") || len(s) < 2 {
				break
			}
			s = s[1:]
		}
		s = strings.TrimLeft(s, " !")
		if s == "" {
			return false
		}
		c := s[0]
		s = s[1:]
		switch c {
		case 'p', 'd', 'q', '=':
		case 's':
			if s == "" || s[0] == '\n' || s[0] == '\\' || s[0] >= 0x80 {
				return false
			}
			sep := s[0]
			s = s[1:]
			for range 2 {
				rest, ok := sedUntil(s, sep)
				if !ok {
					return false
				}
				s = rest
			}
			s = strings.TrimLeft(s, "gpiI0123456789")
		default:
			return false
		}
		if s = strings.TrimLeft(s, " \t"); s != "" && s[0] != ';' && s[0] != '\n' {
			return false
		}
	}
}

// sedUntil returns what follows the next sep that has no backslash. Bracket
// expressions, in which sep would be text, are not read.
func sedUntil(s string, sep byte) (rest string, ok bool) {
	if sep == '[' || sep == ']' {
		return "", false
	}
	bracket := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '\n':
			return "", false
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == sep:
			// Shells of sed differ on a separator inside brackets.
			return s[i+1:], !bracket
		}
	}
	return "", false
}
