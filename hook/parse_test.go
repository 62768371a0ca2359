package hook

import (
	stdcontext "context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
)

type ctx = stdcontext.Context

// TestParse: what a file has, and what is left out alone.
func TestParse(t *testing.T) {
	conform.Covers(t, "H-1", "H-3", "H-21", "H-22", "H-26", "H-39", "H-40", "H-62", "B-048", "B-079", "C-16")
	f, problems := Parse(SourceProject, "/p/settings.json", json.RawMessage(`{
		"PreToolUse": [
			{"matcher": "Bash", "hooks": [
				{"type": "command", "command": "one", "timeout": 1.5, "if": "Bash(git *)", "statusMessage": "s", "unknown": 1},
				{"type": "command", "command": "two", "args": ["a b", ""], "async": true},
				{"type": "command", "command": "three", "timeout": "ten"},
				{"type": "mcp_tool", "server": "s", "tool": "t"},
				{"type": "magic"}, {"type": 7}, 7, null,
				{"type": "command"},
				{"type": "command", "command": "x", "shell": "fish"},
				{"type": "command", "command": "x", "timeout": -1},
				{"type": "command", "command": "x", "if": "Bash("},
				{"type": "http", "url": "http://localhost", "headers": {"A": "$B"}, "allowedEnvVars": ["B"], "if": "Bash(x)", "once": true},
				{"type": "http"}, {"type": "http", "url": "ftp://localhost"}, {"type": "http", "url": "/x"}, {"type": "http", "url": "http://x", "headers": {"A": 1}},
				{"type": "prompt", "prompt": "fine?", "model": "haiku", "continueOnBlock": true},
				{"type": "agent", "prompt": "look"},
				{"type": "prompt", "prompt": " "}, {"type": "agent"}, {"type": "prompt", "prompt": "x", "model": 1}
			]},
			{"matcher": "(", "hooks": [{"type": "command", "command": "never"}]},
			{"matcher": 7, "hooks": []}, {"hooks": {}}, "x"
		],
		"preToolUse": [],
		"SessionStart": [{"hooks": [{"type": "prompt", "prompt": "x"}, {"type": "command", "command": "four", "asyncRewake": true, "shell": "bash"}]}],
		"Stop": [{"matcher": "ignored(", "hooks": [{"type": "command", "command": "five", "if": "Bash(x)"}, {"type": "command", "command": "six"}]}],
		"Setup": {}
	}`))
	var places []string
	for _, p := range problems {
		places = append(places, p.Place)
		if !strings.HasPrefix(p.Error(), "/p/settings.json: hooks") {
			t.Errorf("%v", p)
		}
	}
	want := []string{
		"hooks.PreToolUse[0].hooks[2].timeout", "hooks.PreToolUse[0].hooks[3].type", "hooks.PreToolUse[0].hooks[4].type",
		"hooks.PreToolUse[0].hooks[5].type", "hooks.PreToolUse[0].hooks[6]", "hooks.PreToolUse[0].hooks[7]",
		"hooks.PreToolUse[0].hooks[8].command", "hooks.PreToolUse[0].hooks[9].shell", "hooks.PreToolUse[0].hooks[10].timeout",
		"hooks.PreToolUse[0].hooks[11].if",
		"hooks.PreToolUse[0].hooks[13].url", "hooks.PreToolUse[0].hooks[14].url", "hooks.PreToolUse[0].hooks[15].url", "hooks.PreToolUse[0].hooks[16].headers",
		"hooks.PreToolUse[0].hooks[19].prompt", "hooks.PreToolUse[0].hooks[20].prompt", "hooks.PreToolUse[0].hooks[21].model",
		"hooks.PreToolUse[1].matcher", "hooks.PreToolUse[2].matcher", "hooks.PreToolUse[3].hooks",
		"hooks.PreToolUse[4]", "hooks.SessionStart[0].hooks[0].type", "hooks.Setup", "hooks.Stop[0].hooks[0].if", "hooks.preToolUse",
	}
	if !slices.Equal(places, want) {
		t.Errorf("problems:\n%s\nwant\n%s", strings.Join(places, "\n"), strings.Join(want, "\n"))
	}
	set, err := NewSet(Config{Files: []File{f}})
	if err != nil {
		t.Fatal(err)
	}
	var got []Handler
	for _, in := range []Input{&PreToolUseInput{ToolName: "Bash"}, &PreToolUseInput{ToolName: "Edit"}, &SessionStartInput{Source: "startup"}, &StopInput{}} {
		for _, h := range set.Match(in) {
			h.key, h.place = "", ""
			got = append(got, h)
		}
	}
	own := func(h Handler) Handler {
		h.Source = SourceProject
		if h.Timeout == 0 {
			h.Timeout = defaultTimeout
		}
		return h
	}
	if want := []Handler{
		own(Handler{Command: &Command{Command: "one"}, Timeout: 1500 * time.Millisecond, If: "Bash(git *)", StatusMessage: "s"}),
		own(Handler{Command: &Command{Command: "two", Args: []string{"a b", ""}, Async: true}}),
		own(Handler{HTTP: &HTTP{URL: "http://localhost", Headers: map[string]string{"A": "$B"}, EnvVars: []string{"B"}}, If: "Bash(x)", Once: true}),
		own(Handler{Prompt: &Prompt{Text: "fine?", Model: "haiku", GoOn: true}, Timeout: askTimeout}),
		own(Handler{Prompt: &Prompt{Text: "look", GoOn: true, Agent: true}, Timeout: agentTimeout}),
		own(Handler{Command: &Command{Command: "four", Async: true, Rewake: true, Shell: "bash"}}),
		own(Handler{Command: &Command{Command: "six"}}),
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for _, raw := range []string{"", "null", "{}"} {
		if f, problems := Parse(SourceUser, "f", json.RawMessage(raw)); len(problems) > 0 || len(f.groups) > 0 {
			t.Errorf("%q: %v", raw, problems)
		}
	}
	if _, problems := Parse(SourceUser, "f", json.RawMessage(`[]`)); len(problems) != 1 || problems[0].Place != "hooks" {
		t.Errorf("%v", problems)
	}
}

// TestSet: sources are merged in order, identical handlers of settings run
// once, and hooks can be switched off.
func TestSet(t *testing.T) {
	conform.Covers(t, "H-4", "H-6", "H-7", "H-8", "H-61", "H-63")
	file := func(s Source, commands ...string) File {
		var hooks []string
		for _, c := range commands {
			hooks = append(hooks, `{"hooks":[{"type":"command","command":"`+c+`","timeout":20}]}`)
		}
		f, problems := Parse(s, string(s), json.RawMessage(`{"SessionEnd":[`+strings.Join(hooks, ",")+`]}`))
		if problems != nil {
			t.Fatal(problems)
		}
		return f
	}
	table := Table{SessionEnd: {{Hooks: []Func{func(ctx, Input, string) (Output, error) { return Output{}, nil }}}}}
	files := []File{
		file(SourcePlugin, "same"), file(SourceLocal, "same", "local"), file(SourceUser, "same", "user", "user"), file(SourceManaged, "managed"), file(SourceSkill, "same"),
	}
	for name, tt := range map[string]struct {
		c    Config
		want string
	}{
		"all":          {Config{Files: files, Callbacks: table}, "managed same user local same same -"},
		"off":          {Config{Files: files, Callbacks: table, Off: true}, "managed"},
		"all off":      {Config{Files: files, Callbacks: table, AllOff: true}, ""},
		"managed only": {Config{Files: files, Callbacks: table, ManagedOnly: true}, "managed -"},
	} {
		set, err := NewSet(tt.c)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range set.Match(&SessionEndInput{}) {
			if h.Command == nil {
				got = append(got, "-")
				continue
			}
			got = append(got, h.Command.Command)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for want, f := range map[time.Duration]File{20 * time.Second: files[1], EndTimeout: files[0]} {
		if set, _ := NewSet(Config{Files: []File{f}}); set.EndTimeout() != want {
			t.Errorf("%v, want %v", set.EndTimeout(), want)
		}
	}
}

// TestInputs: the JSON of every event has the names of the contract.
func TestInputs(t *testing.T) {
	conform.Covers(t, "H-73", "H-74", "H-76", "H-77", "H-78", "H-79", "H-81", "H-82", "H-84", "H-85", "H-90", "H-129", "W-139", "W-149", "W-150")
	golden, err := os.ReadFile(filepath.Join("testdata", "inputs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	base := Base{SessionID: "s", TranscriptPath: "/t", CWD: "/c"}
	raw := json.RawMessage(`{"a":1}`)
	full := Base{SessionID: "s", TranscriptPath: "/t", CWD: "/c", PromptID: "p", PermissionMode: "plan", Effort: &Effort{"high"}, AgentID: "a", AgentType: "Explore"}
	var got strings.Builder
	for _, in := range []Input{
		&PreToolUseInput{full, "Bash", raw, "toolu_1"}, &PermissionRequestInput{base, "Bash", raw, nil},
		&PostToolUseInput{base, "Bash", raw, raw, "toolu_1", 7}, &PostToolUseFailureInput{base, "Bash", raw, "toolu_1", "e", false, 7},
		&PostToolBatchInput{base, []BatchCall{{"Bash", raw, "toolu_1", raw}}}, &UserPromptSubmitInput{base, "p", ""},
		&SessionStartInput{base, "startup", "m", "t"}, &SessionEndInput{base, "other"},
		&StopInput{base, true, "l", []BackgroundTask{{ID: "i", Type: "local_bash", Status: "running", Description: "d"}}, nil},
		&StopFailureInput{base, "rate_limit", "d", "l"}, &SubagentStopInput{Base: full, AgentTranscriptPath: "/a"},
		&PreCompactInput{base, "auto", ""}, &PostCompactInput{base, "manual", "c"}, &NotificationInput{base, "m", "t", "permission_prompt"},
		&FileChangedInput{base, "/d/f", "add"}, &TaskCreatedInput{base, TaskInput{TaskID: "1", TaskSubject: "s"}},
	} {
		raw, err := Encode(in)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(raw)
		got.WriteByte('\n')
	}
	if got := Capped(strings.Repeat("é", 1003)); got != strings.Repeat("é", 1000)+"… [+3 chars]" || Capped("é") != "é" {
		t.Errorf("capped: %s", got)
	}
	if got.String() != string(golden) {
		t.Errorf("got\n%s", &got)
	}
}
