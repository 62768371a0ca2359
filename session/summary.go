package session

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// SummaryBytes is how many bytes of a session's beginning and of its end a
// listing reads (K-340).
const SummaryBytes = 64 << 10

// Summary is what a listing shows of a session.
type Summary struct {
	Title       string    // given by a person, else made; "" for none (K-341)
	Text        string    // title, last prompt, summary or first prompt (K-342)
	FirstPrompt string    // cut at 200 characters (K-349)
	Tag         string    // "" for none (K-353)
	CWD         string    // directory it began in (K-346)
	GitBranch   string    // the last one (K-346)
	Created     time.Time // zero when no line says it (K-347)
	Sidechain   bool      // it is a subagent's: listings leave it out (K-318)
}

// Listed reports whether a listing shows the session: there is something to
// show of it (K-342).
func (s Summary) Listed() bool { return s.Text != "" && !s.Sidechain }

// Summarize reads the first and the last SummaryBytes of a session, which
// overlap in a shorter one. It finds what the official clients find there: they
// search the text for keys and do not read lines (K-341 to K-353), so a value
// inside another counts as well (K-343).
func Summarize(head, tail []byte) Summary {
	s := Summary{
		FirstPrompt: firstPrompt(head),
		Tag:         lastTag(tail),
		CWD:         firstField(head, "cwd"),
		GitBranch:   lastField(tail, "gitBranch"),
	}
	if s.GitBranch == "" {
		s.GitBranch = firstField(head, "gitBranch")
	}
	for _, find := range []struct {
		key string
		in  []byte
	}{{"customTitle", tail}, {"customTitle", head}, {"aiTitle", tail}, {"aiTitle", head}} {
		if s.Title == "" {
			s.Title = lastField(find.in, find.key)
		}
	}
	for _, text := range []string{s.Title, lastField(tail, "lastPrompt"), lastField(tail, "summary"), s.FirstPrompt} {
		if s.Text == "" {
			s.Text = text
		}
	}
	if at := firstField(head, "timestamp"); at != "" {
		s.Created, _ = time.Parse(time.RFC3339Nano, at)
	}
	first, _, _ := bytes.Cut(head, []byte("\n"))
	s.Sidechain = bytes.Contains(first, []byte(`"isSidechain":true`)) || bytes.Contains(first, []byte(`"isSidechain": true`))
	return s
}

// fields returns where values of the key begin, behind their opening quote.
func fields(text []byte, key string) (at []int) {
	for _, form := range []string{`"` + key + `":"`, `"` + key + `": "`} {
		for from := 0; ; {
			i := bytes.Index(text[from:], []byte(form))
			if i < 0 {
				break
			}
			from += i + len(form)
			at = append(at, from)
		}
	}
	return at
}

func firstField(text []byte, key string) string {
	best := -1
	for _, at := range fields(text, key) {
		if best < 0 || at < best {
			best = at
		}
	}
	return value(text, best)
}

func lastField(text []byte, key string) string {
	best := -1
	for _, at := range fields(text, key) {
		best = max(best, at)
	}
	return value(text, best)
}

// value reads the JSON string whose inside begins at at; "" when it is cut.
func value(text []byte, at int) string {
	if at < 0 {
		return ""
	}
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			var s string
			if json.Unmarshal(text[at-1:i+1], &s) != nil {
				return string(text[at:i])
			}
			return s
		}
	}
	return ""
}

// lastTag is the tag of the last tag entry; one that is "" clears it.
func lastTag(tail []byte) (tag string) {
	for line := range bytes.Lines(tail) {
		if bytes.HasPrefix(line, []byte(`{"type":"tag"`)) {
			tag = lastField(line, "tag")
		}
	}
	return tag
}

const firstPromptLength = 200

// promptForms are compiled when a listing needs them: most programs never do.
var promptForms = sync.OnceValue(func() (f struct{ notPrompts, commandName *regexp.Regexp }) {
	// Texts that nobody typed as a prompt (K-351), and what an editor adds.
	f.notPrompts = regexp.MustCompile(`^(?:<local-command-stdout>|<session-start-hook>|<tick>|<goal>|\[Request interrupted by user[^\]]*\]` +
		`|\s*<ide_(?:opened_file|selection)>[\s\S]*</ide_(?:opened_file|selection)>\s*$)`)
	f.commandName = regexp.MustCompile(`<command-name>(.*?)</command-name>`)
	return f
})

// firstPrompt is the first text that a person sent (K-349 to K-352).
func firstPrompt(head []byte) string {
	command, forms := "", promptForms()
	for line := range bytes.Lines(head) {
		if !bytes.Contains(line, []byte(`"type":"user"`)) && !bytes.Contains(line, []byte(`"type": "user"`)) {
			continue
		}
		var l struct {
			Type    string `json:"type"`
			Meta    bool   `json:"isMeta"`
			Summary bool   `json:"isCompactSummary"`
			Message struct {
				Content json.RawMessage `json:"content"`
			} `json:"message"`
		}
		if bytes.Contains(line, []byte(`"tool_result"`)) || json.Unmarshal(line, &l) != nil || l.Type != "user" || l.Meta || l.Summary {
			continue
		}
		for _, text := range texts(l.Message.Content) {
			text = strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
			if m := forms.commandName.FindStringSubmatch(text); m != nil {
				if command == "" {
					command = m[1]
				}
				continue
			}
			if text == "" || forms.notPrompts.MatchString(text) {
				continue
			}
			if utf8.RuneCountInString(text) > firstPromptLength {
				text = strings.TrimSpace(string([]rune(text)[:firstPromptLength])) + "…"
			}
			return text
		}
	}
	return command
}

// texts are the texts of a message's content: a string, or text blocks.
func texts(content json.RawMessage) (out []string) {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return []string{s}
	}
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	for _, b := range blocks {
		if b.Type == "text" {
			out = append(out, b.Text)
		}
	}
	return out
}
