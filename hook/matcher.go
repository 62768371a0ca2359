package hook

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// matcher is a group's matcher, ready to be used.
type matcher struct {
	all   bool
	names []string
	re    *regexp.Regexp
}

var (
	listForm      = regexp.MustCompile(`^[A-Za-z0-9_\-\s,|]*$`)
	plainListForm = regexp.MustCompile(`^[A-Za-z0-9_|]*$`)
)

// compile reads a matcher: everything, a list of names or a regular expression
// (H-14 to H-17). Where it returns an error the group never matches (H-21).
func compile(ev Event, text string) (m matcher, err error) {
	f := events[ev]
	if text == "" || text == "*" || !f.subject { // H-14, H-20
		return matcher{all: true}, nil
	}
	form, split := listForm, "|,"
	if f.plainOnly {
		form, split = plainListForm, "|"
	}
	if form.MatchString(text) {
		for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(split, r) }) {
			if name = strings.TrimSpace(name); name != "" {
				m.names = append(m.names, name)
			}
		}
		return m, nil
	}
	pattern, err := fromJavaScript(text)
	if err == nil {
		m.re, err = regexp.Compile(pattern)
	}
	if err != nil {
		return matcher{}, fmt.Errorf("the matcher %q is no regular expression that can be used (%w), so it matches nothing", text, err)
	}
	return m, nil
}

func (m matcher) match(subject string) bool {
	if m.all {
		return true
	}
	for _, name := range m.names {
		if name == subject {
			return true
		}
	}
	return m.re != nil && m.re.MatchString(subject)
}

// Classes that mean less in Go than in JavaScript.
const (
	jsDot   = `[^\n\r\x{2028}\x{2029}]`
	jsSpace = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
)

// fromJavaScript writes a regular expression of JavaScript, as it is read
// without flags, in the form that package regexp reads (H-21). It fails for
// what a linear-time engine cannot do, and leaves other faults to
// regexp.Compile.
func fromJavaScript(js string) (string, error) {
	var b strings.Builder
	class := false // inside [ ]
	for i := 0; i < len(js); {
		c := js[i]
		switch {
		case c == '\\':
			text, n, err := escape(js[i:], class)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
			i += n
			continue
		case class && c == '[':
			b.WriteString(`\[`)
		case class && c == ']':
			class = false
			b.WriteByte(c)
		case class && c == '&', class && c == '~':
			b.WriteString(`\` + string(c))
		case class:
			b.WriteByte(c)
		case strings.HasPrefix(js[i:], "[^]"):
			b.WriteString(`(?s:.)`)
			i += 3
			continue
		case strings.HasPrefix(js[i:], "[]"):
			b.WriteString(`[^\x00-\x{10FFFF}]`)
			i += 2
			continue
		case c == '[':
			class = true
			b.WriteByte(c)
		case c == '.':
			b.WriteString(jsDot)
		case strings.HasPrefix(js[i:], "(?"):
			n, err := group(js[i:])
			if err != nil {
				return "", err
			}
			b.WriteString(js[i : i+n])
			i += n
			continue
		default:
			b.WriteByte(c)
		}
		i++
	}
	return b.String(), nil
}

// group checks the beginning of a group and returns its length.
func group(s string) (int, error) {
	switch {
	case strings.HasPrefix(s, "(?:"):
		return 3, nil
	case strings.HasPrefix(s, "(?="), strings.HasPrefix(s, "(?!"), strings.HasPrefix(s, "(?<="), strings.HasPrefix(s, "(?<!"):
		return 0, fmt.Errorf("looking ahead or behind with %q is not supported", s[:3])
	case strings.HasPrefix(s, "(?<"):
		if end := strings.IndexByte(s, '>'); end > 0 {
			return end + 1, nil
		}
	}
	return 0, fmt.Errorf("unknown kind of group %.4q", s)
}

// escape translates the escape that s begins with.
func escape(s string, class bool) (text string, n int, err error) {
	if len(s) < 2 {
		return "", 0, fmt.Errorf("a %q at the end", `\`)
	}
	switch c := s[1]; {
	case strings.IndexByte("dDwWfnrtv", c) >= 0, c == 'B' && !class, c == 'b' && !class:
		return s[:2], 2, nil
	case c == 'b':
		return `\x08`, 2, nil
	case c == 's' && class:
		return jsSpace, 2, nil
	case c == 's':
		return "[" + jsSpace + "]", 2, nil
	case c == 'S' && class:
		return "", 0, fmt.Errorf("%q in a class is not supported", `\S`)
	case c == 'S':
		return "[^" + jsSpace + "]", 2, nil
	case c == '0' && (len(s) < 3 || s[2] < '0' || s[2] > '9'):
		return `\x00`, 2, nil
	case c >= '0' && c <= '9', c == 'k':
		return "", 0, fmt.Errorf("a back reference (%.3q) is not supported", s)
	case c == 'x' && hex(s, 2, 2):
		return s[:4], 4, nil
	case c == 'u' && hex(s, 2, 4):
		return `\x{` + s[2:6] + `}`, 6, nil
	case c == 'c' && len(s) > 2 && (s[2]|0x20 >= 'a' && s[2]|0x20 <= 'z'):
		return fmt.Sprintf(`\x%02x`, s[2]&0x1f), 3, nil
	}
	// Any other character stands for itself.
	_, size := utf8.DecodeRuneInString(s[1:])
	return regexp.QuoteMeta(s[1 : 1+size]), 1 + size, nil
}

func hex(s string, from, n int) bool {
	if len(s) < from+n {
		return false
	}
	for _, c := range []byte(s[from : from+n]) {
		if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
			return false
		}
	}
	return true
}
