package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
)

func userLine(text, more string) string {
	return fmt.Sprintf(`{"type":"user"%s,"message":{"role":"user","content":%q}}`, more, text)
}

func TestFirstPrompt(t *testing.T) {
	conform.Covers(t, "K-349", "K-351", "K-352")
	long := strings.Repeat("é", 250)
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a text", []string{userLine("hello", "")}, "hello"},
		{"with a blank behind the colon", []string{`{"type": "user", "message": {"content": "hello"}}`}, "hello"},
		{"newlines", []string{userLine(" one\ntwo \n", "")}, "one two"},
		{"200 characters", []string{userLine(long, "")}, long[:400] + "…"},
		{"blocks", []string{`{"type":"user","message":{"content":[{"type":"image"},{"type":"text","text":" "},{"type":"text","text":"seen"}]}}`}, "seen"},
		{"an answer before", []string{`{"type":"assistant","message":{"content":"no"}}`, userLine("yes", "")}, "yes"},
		{"a result", []string{`{"type":"user","message":{"content":[{"type":"tool_result","content":"no"}]}}`, userLine("yes", "")}, "yes"},
		{"text that nobody wrote", []string{userLine("no", `,"isMeta":true`), userLine("yes", "")}, "yes"},
		{"a summary", []string{userLine("no", `,"isCompactSummary":true`), userLine("yes", "")}, "yes"},
		{"a line that does not parse", []string{`{"type":"user","message":{"content":"no"`, userLine("yes", "")}, "yes"},
		{"blank", []string{userLine(" \n", ""), userLine("yes", "")}, "yes"},
		{"output of a command", []string{userLine("<local-command-stdout>no", ""), userLine("yes", "")}, "yes"},
		{"a hook", []string{userLine("<session-start-hook>no", ""), userLine("yes", "")}, "yes"},
		{"a tick", []string{userLine("<tick>no", ""), userLine("yes", "")}, "yes"},
		{"a goal", []string{userLine("<goal>no", ""), userLine("yes", "")}, "yes"},
		{"an interruption", []string{userLine("[Request interrupted by user for tool use]", ""), userLine("yes", "")}, "yes"},
		{"what an editor has open", []string{userLine("<ide_opened_file>no</ide_opened_file>", ""), userLine("yes", "")}, "yes"},
		{"what is selected in it", []string{userLine("<ide_selection>no</ide_selection>", ""), userLine("yes", "")}, "yes"},
		{"and a text behind that", []string{userLine("<ide_selection>x</ide_selection> yes", "")}, "<ide_selection>x</ide_selection> yes"},
		{"a command and a text", []string{userLine("<command-name>/clear</command-name>", ""), userLine("yes", "")}, "yes"},
		{"nothing but a command", []string{userLine("<command-name>/clear</command-name><command-args></command-args>", ""), userLine("<tick>", "")}, "/clear"},
		{"nothing", nil, ""},
	} {
		text := []byte(strings.Join(c.lines, "\n"))
		if got := session.Summarize(text, text); got.FirstPrompt != c.want || got.Text != c.want || got.Listed() != (c.want != "") {
			t.Errorf("%s: %q, summary %q, want %q", c.name, got.FirstPrompt, got.Text, c.want)
		}
	}
}

func TestSummaryOfEnds(t *testing.T) {
	conform.Covers(t, "K-341", "K-342", "K-346", "K-347", "K-350", "K-353", "S-71")
	meta := func(key, value string) string { return fmt.Sprintf(`{"type":"x",%q:%q}`, key, value) }
	for _, c := range []struct {
		name       string
		head, tail string
		want       session.Summary
	}{
		{"the title of the tail is newer", meta("customTitle", "old"), meta("customTitle", "a") + meta("customTitle", "b"), session.Summary{Title: "b", Text: "b"}},
		{"a title in the head only", meta("customTitle", "old"), "", session.Summary{Title: "old", Text: "old"}},
		{"a given title wins over a made one", meta("customTitle", "given"), meta("aiTitle", "made"), session.Summary{Title: "given", Text: "given"}},
		{"a made one", meta("aiTitle", "old"), meta("aiTitle", "made"), session.Summary{Title: "made", Text: "made"}},
		{"the last prompt wins over a summary", "", meta("lastPrompt", "a") + meta("summary", "s") + meta("lastPrompt", "b"), session.Summary{Text: "b"}},
		{"a summary", meta("summary", "of the head"), meta("summary", "s"), session.Summary{Text: "s"}},
		{
			"a prompt longer than the head, with images: the last prompt keeps it listed",
			`{"type":"user","cwd":"/x","timestamp":"2026-01-02T03:04:05.678Z","message":{"content":"` + strings.Repeat("x", 1000),
			meta("lastPrompt", "seen"),
			session.Summary{Text: "seen", CWD: "/x", Created: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)},
		},
		{"without one it is not", `{"type":"user","message":{"content":"` + strings.Repeat("x", 1000), "", session.Summary{}},
		{"the first directory, the last branch", meta("cwd", "/a") + meta("cwd", "/b") + meta("gitBranch", "a"), meta("cwd", "/c") + meta("gitBranch", "b") + meta("gitBranch", "c"), session.Summary{CWD: "/a", GitBranch: "c"}},
		{"a branch in the head only", meta("gitBranch", "a") + meta("gitBranch", "b"), "", session.Summary{GitBranch: "a"}},
		{"the last tag of the tail", `{"type":"tag","tag":"no"}`, "{\"type\":\"tag\",\"tag\":\"a\"}\n{\"type\":\"tag\",\"tag\":\"b\",\"sessionId\":\"x\"}\n", session.Summary{Tag: "b"}},
		{"a cleared tag", "", "{\"type\":\"tag\",\"tag\":\"a\"}\n{\"type\":\"tag\",\"tag\":\"\"}\n", session.Summary{}},
		{"a tool input is no tag", "", `{"type":"assistant","input":{"type":"tag","tag":"no"}}`, session.Summary{}},
		{"a subagent's", `{"isSidechain":true,"customTitle":"t"}`, "", session.Summary{Title: "t", Text: "t", Sidechain: true}},
		{"a side chain behind the first line", "{}\n{\"isSidechain\":true,\"customTitle\":\"t\"}", "", session.Summary{Title: "t", Text: "t"}},
		{"escapes", "", meta("customTitle", "a \"b\" \\ é"), session.Summary{Title: `a "b" \ é`, Text: `a "b" \ é`}},
		{"a value that is cut", "", `{"customTitle":"whole"}{"lastPrompt":"cut`, session.Summary{Title: "whole", Text: "whole"}},
		{"no time", `{"timestamp":17}` + meta("timestamp", "soon"), "", session.Summary{}},
	} {
		if got := session.Summarize([]byte(c.head), []byte(c.tail)); got != c.want {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, c.want)
		}
	}
}
