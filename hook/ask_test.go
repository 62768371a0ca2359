package hook

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

// TestMatchesURL: which addresses a pattern of settings lets hooks ask.
func TestMatchesURL(t *testing.T) {
	conform.Covers(t, "H-34")
	for pattern, tt := range map[string]struct{ yes, no []string }{
		"*": {[]string{"http://a", "https://b/c"}, []string{"ftp://a", "", "x"}},
		"https://hooks.example.com/*": {
			[]string{"https://hooks.example.com/a/b?c=d", "https://HOOKS.example.com/", "https://hooks.example.com", "https://me@hooks.example.com/a"},
			[]string{"http://hooks.example.com/a", "https://hooks.example.com.evil.org/a", "https://hooks.example.com@evil.org/a", "https://evil.org/https://hooks.example.com/a", "https://hooks.example.com:8443/a"},
		},
		"https://*.example.com/*": {
			[]string{"https://a.example.com/x", "https://a.b.example.com/"},
			[]string{"https://example.com/x", "https://evil.org/x.example.com/y", "https://evil.org?.example.com/y", "https://evil.org#.example.com/y", `https://evil.org\.example.com/y`},
		},
		"https://example.com/hooks/*": {
			[]string{"https://example.com/hooks/a", "https://example.com/hooks/"},
			[]string{"https://example.com/hooks", "https://example.com/other", "https://example.com/hooks/../other", "https://example.com/hooks/%2e%2e/other"},
		},
		"http://localhost:*":   {[]string{"http://localhost:80/x", "http://localhost:8080"}, []string{"http://localhost/x", "http://localhost.evil.org:80/", "http://localhost:80@evil.org/"}},
		"http://localhost":     {[]string{"http://localhost/", "http://localhost"}, []string{"http://localhost/x", "http://localhost:1"}},
		"http*://a.b/c.d":      {[]string{"http://a.b/c.d", "https://a.b/c.d"}, []string{"http://a.b/cxd", "http://axb/c.d"}},
		"https://a/exact":      {[]string{"https://a/exact"}, []string{"https://a/exact/", "https://a/exact2"}},
		"example.com/*":        {nil, []string{"https://example.com/x"}},
		"https://a/x?key=*":    {[]string{"https://a/x?key=1"}, []string{"https://a/x"}},
		"https://[::1]:9/(a*b": {[]string{"https://[::1]:9/(ab", "https://[::1]:9/(a-b"}, []string{"https://[::1]:9/ab"}},
	} {
		for _, u := range tt.yes {
			if !matchesURL(pattern, u) {
				t.Errorf("%s should be about %s", pattern, u)
			}
		}
		for _, u := range tt.no {
			if matchesURL(pattern, u) {
				t.Errorf("%s is not about %s", pattern, u)
			}
		}
	}
}

// TestLimit: settings take HTTP hooks and their variables away.
func TestLimit(t *testing.T) {
	conform.Covers(t, "H-34")
	f, problems := Parse(SourceUser, "settings.json", json.RawMessage(`{
		"Stop": [{"hooks": [
			{"type": "http", "url": "http://a/x", "allowedEnvVars": ["ONE", "TWO"]},
			{"type": "command", "command": "c"}
		]}],
		"PreToolUse": [{"hooks": [{"type": "http", "url": "http://b/x"}]}]
	}`))
	if problems != nil {
		t.Fatal(problems)
	}
	for name, tt := range map[string]struct {
		limits HTTPLimits
		left   string // of Stop, of PreToolUse
		vars   []string
		places []string
	}{
		"none":           {HTTPLimits{}, "http://a/x c | http://b/x", []string{"ONE", "TWO"}, nil},
		"no address":     {HTTPLimits{URLs: []string{}}, "c |", nil, []string{"hooks.PreToolUse[0].hooks[0].url", "hooks.Stop[0].hooks[0].url"}},
		"one address":    {HTTPLimits{URLs: []string{"http://x/*", "http://a/*"}}, "http://a/x c |", []string{"ONE", "TWO"}, []string{"hooks.PreToolUse[0].hooks[0].url"}},
		"one variable":   {HTTPLimits{EnvVars: []string{"TWO", "THREE"}}, "http://a/x c | http://b/x", []string{"TWO"}, []string{"hooks.Stop[0].hooks[0].allowedEnvVars"}},
		"and no address": {HTTPLimits{URLs: []string{}, EnvVars: []string{}}, "c |", nil, []string{"hooks.PreToolUse[0].hooks[0].url", "hooks.Stop[0].hooks[0].url"}},
	} {
		limited, problems := f.Limit(tt.limits)
		set, err := NewSet(Config{Files: []File{limited}})
		if err != nil {
			t.Fatal(err)
		}
		var left, places []string
		for _, in := range []Input{&StopInput{}, &PreToolUseInput{}} {
			for _, h := range set.Match(in) {
				if h.Command != nil {
					left = append(left, h.Command.Command)
					continue
				}
				left = append(left, h.HTTP.URL)
				if h.HTTP.URL == "http://a/x" && !slices.Equal(h.HTTP.EnvVars, tt.vars) {
					t.Errorf("%s: %v", name, h.HTTP.EnvVars)
				}
			}
			if _, ok := in.(*StopInput); ok {
				left = append(left, "|")
			}
		}
		for _, p := range problems {
			places = append(places, p.Place)
		}
		if strings.Join(left, " ") != tt.left || !slices.Equal(places, tt.places) {
			t.Errorf("%s: %v, %v", name, left, places)
		}
	}
}

// TestHeader: only listed variables get into headers.
func TestHeader(t *testing.T) {
	conform.Covers(t, "H-32")
	h := &HTTP{
		Headers: map[string]string{"Authorization": "Bearer $TOKEN", "x-both": "${TOKEN}/$SECRET.$TOKENS-${SECRET}$", "Content-Type": "text/plain"},
		EnvVars: []string{"TOKEN", "UNSET"},
	}
	got := h.Header(func(name string) string {
		return map[string]string{"TOKEN": "t0", "SECRET": "s0", "TOKENS": "s1"}[name]
	})
	if got.Get("Authorization") != "Bearer t0" || got.Get("X-Both") != "t0/.-$" || got.Get("Content-Type") != "application/json" || len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// TestFromHTTP: what answers of servers mean.
func TestFromHTTP(t *testing.T) {
	conform.Covers(t, "H-33")
	const deny = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}`
	for name, tt := range map[string]struct {
		status     int
		body       string
		permission Permission
		fault      string // "": none
	}{
		"empty":       {204, "", "", ""},
		"blanks":      {200, " \n", "", ""},
		"object":      {201, "\n" + deny, Deny, ""},
		"text":        {200, "fine", "", "must be empty or a JSON object"},
		"list":        {200, "[]", "", "must be empty or a JSON object"},
		"half":        {200, deny[:20], "", "must be an object"},
		"invalid":     {200, `{"decision":"maybe"}`, "", `"decision"`},
		"error":       {500, deny, "", "status 500 Internal Server Error"},
		"denied":      {403, "", "", "status 403"},
		"redirection": {302, "", "", "status 302"},
	} {
		o, err := FromHTTP(PreToolUse, tt.status, []byte(tt.body))
		if o.Permission != tt.permission || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

// TestQuestion: where the event goes in a prompt.
func TestQuestion(t *testing.T) {
	conform.Covers(t, "H-36")
	for text, want := range map[string]string{
		"Is $ARGUMENTS fine?":           `Is {"a":"$ARGUMENTS"} fine?`,
		"$ARGUMENTS and $ARGUMENTS":     `{"a":"$ARGUMENTS"} and {"a":"$ARGUMENTS"}`,
		"Is it?":                        "Is it?\n\n" + `{"a":"$ARGUMENTS"}`,
		`It costs \$5: \$ARGUMENTS, \a`: `It costs $5: $ARGUMENTS, \a` + "\n\n" + `{"a":"$ARGUMENTS"}`,
		"$ARGUMENT":                     "$ARGUMENT\n\n" + `{"a":"$ARGUMENTS"}`,
	} {
		if got := (&Prompt{Text: text}).Question(json.RawMessage(`{"a":"$ARGUMENTS"}`)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestFromPrompt: what an answer of no does at each event.
func TestFromPrompt(t *testing.T) {
	conform.Covers(t, "H-36", "H-37", "H-38")
	stop, feedback := Output{Stop: true, StopReason: "why"}, Output{Block: true, Reason: "why"}
	plain, goOn, agent := &Prompt{}, &Prompt{GoOn: true}, &Prompt{GoOn: true, Agent: true}
	for ev, want := range map[Event][3]Output{ // plain, continueOnBlock, agent
		Stop:         {feedback, feedback, feedback},
		SubagentStop: {feedback, feedback, feedback},
		PreToolUse: {
			{Stop: true, StopReason: "why", Permission: Deny, PermissionReason: "why"},
			{Permission: Deny, PermissionReason: "why"},
			{Permission: Deny, PermissionReason: "why"},
		},
		PostToolUse:         {stop, feedback, feedback},
		PostToolBatch:       {stop, stop, stop},
		UserPromptSubmit:    {stop, stop, stop},
		UserPromptExpansion: {stop, stop, stop},
		PostToolUseFailure:  {feedback, feedback, feedback},
		TaskCreated:         {feedback, feedback, feedback},
		TaskCompleted:       {feedback, feedback, feedback},
		PermissionRequest:   {},
		PermissionDenied:    {},
	} {
		for i, p := range []*Prompt{plain, goOn, agent} {
			o, err := FromPrompt(ev, p, `{"ok": false, "reason": " why\n"}`)
			if err != nil || !reflect.DeepEqual(o, want[i]) {
				t.Errorf("%s, %+v: %+v, %v", ev, p, o, err)
			}
			if o, err := FromPrompt(ev, p, `{"ok": true, "reason": "why"}`); err != nil || !reflect.DeepEqual(o, Output{}) {
				t.Errorf("%s, %+v, yes: %+v, %v", ev, p, o, err)
			}
		}
	}
	for text, want := range map[string]string{
		`{"ok":false}`: noReason,
		"```json\n{\"ok\": false, \"reason\": \"fenced\"}\n```":              "fenced",
		`The event {"tool": {"ok": 1}} is bad: {"ok":false,"reason":"last"}`: "last",
		`{"ok":false,"reason":"x","impossible":false}`:                       "x",
		`{"ok":false,"reason":"never","impossible":true}`:                    "",
		`{"reason":"x"}`: "error", `{"ok":"no"}`: "error", "no": "error", "": "error", "{": "error",
	} {
		o, err := FromPrompt(Stop, plain, text)
		got := o.Reason
		if err != nil {
			got = "error"
		}
		if got != want || o.Block != (got != "" && got != "error") {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
	if o, _ := FromPrompt(Stop, agent, `{"ok":false,"reason":"x","impossible":true}`); !o.Block {
		t.Error("an agent's answer cannot be that it is impossible")
	}
}
