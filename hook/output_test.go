package hook

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
)

// TestOutput reads every field of every event.
func TestOutput(t *testing.T) {
	conform.Covers(t, "H-47", "H-51", "H-56", "H-73", "H-74", "H-76", "H-79", "H-81", "H-84", "W-155", "W-157", "W-165")
	specific := func(ev Event, fields string) string {
		return `{"hookSpecificOutput":{"hookEventName":"` + string(ev) + `",` + fields + `}}`
	}
	for _, tt := range []struct {
		ev   Event
		raw  string
		want Output
	}{
		{Stop, `{}`, Output{}},
		{Stop, `{"continue":true,"suppressOutput":true,"unknown":[1]}`, Output{}},
		{
			Stop, `{"continue":false,"stopReason":"s","systemMessage":"m","decision":"block","reason":"r","terminalSequence":"t"}`,
			Output{Stop: true, StopReason: "s", SystemMessage: "m", Block: true, Reason: "r", TerminalSequence: "t"},
		},
		{Stop, `{"decision":null,"continue":null,"hookSpecificOutput":null}`, Output{}},
		{Stop, `{"additionalContext":"ignored at the top"}`, Output{}},
		{Stop, `{"Decision":"block","CONTINUE":false}`, Output{}}, // names are exact
		{Stop, specific(Stop, `"additionalContext":"c"`), Output{Context: "c"}},
		{Stop, `{"async":true,"asyncTimeout":1500}`, Output{Async: true, AsyncTimeout: 1500 * time.Millisecond}},
		{PreToolUse, `{"decision":"approve","reason":"r"}`, Output{Permission: Allow, PermissionReason: "r"}},
		{PreToolUse, `{"decision":"block","reason":"r"}`, Output{Permission: Deny, PermissionReason: "r"}},
		{
			PreToolUse, specific(PreToolUse, `"permissionDecision":"defer","permissionDecisionReason":"r","updatedInput":{"a":1},"additionalContext":"c"`),
			Output{Permission: Defer, PermissionReason: "r", UpdatedInput: json.RawMessage(`{"a":1}`), Context: "c"},
		},
		{
			PermissionRequest, specific(PermissionRequest, `"decision":{"behavior":"allow","updatedInput":{},"updatedPermissions":[{"type":"setMode","mode":"plan","destination":"session"}]}`),
			Output{Answer: &Answer{Allow: true, UpdatedInput: json.RawMessage(`{}`), Updates: []permission.Update{{Type: "setMode", Mode: permission.ModePlan, Destination: "session"}}}},
		},
		{PermissionRequest, specific(PermissionRequest, `"decision":{"behavior":"deny","message":"m","interrupt":true}`), Output{Answer: &Answer{Message: "m", Interrupt: true}}},
		{PermissionRequest, specific(PermissionRequest, `"decision":{"behavior":"perhaps"}`), Output{}},
		{PermissionRequest, specific(PermissionRequest, `"decision":"allow"`), Output{}},
		{PermissionRequest, specific(PermissionRequest, `"decision":{"behavior":"allow","updatedInput":"x"}`), Output{}},
		{PostToolUse, specific(PostToolUse, `"updatedToolOutput":"x"`), Output{UpdatedOutput: json.RawMessage(`"x"`)}},
		{PostToolUse, specific(PostToolUse, `"updatedMCPToolOutput":[]`), Output{UpdatedOutput: json.RawMessage(`[]`)}},
		{UserPromptSubmit, specific(UserPromptSubmit, `"sessionTitle":"t","suppressOriginalPrompt":true`), Output{Title: "t", HidePrompt: true}},
		{
			SessionStart, specific(SessionStart, `"initialUserMessage":"i","sessionTitle":"t","watchPaths":["p"],"reloadSkills":true`),
			Output{InitialMessage: "i", Title: "t", WatchPaths: []string{"p"}, ReloadSkills: true},
		},
		{PermissionDenied, specific(PermissionDenied, `"retry":true`), Output{Retry: true}},
		{Elicitation, specific(Elicitation, `"action":"accept","content":{"a":1}`), Output{Action: "accept", Content: json.RawMessage(`{"a":1}`)}},
		{WorktreeCreate, specific(WorktreeCreate, `"worktreePath":"/w"`), Output{WorktreePath: "/w"}},
		{MessageDisplay, specific(MessageDisplay, `"displayContent":""`), Output{Display: new("")}},
	} {
		got, err := ParseOutput(tt.ev, []byte(tt.raw))
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s %s: %+v, %v", tt.ev, tt.raw, got, err)
		}
	}
}

// TestBadOutput: one field of a wrong kind voids the whole answer, and the
// error names it.
func TestBadOutput(t *testing.T) {
	conform.Covers(t, "H-46", "H-47", "B-070", "B-065")
	for raw, field := range map[string]string{
		`[]`:                         "",
		`null`:                       "",
		`{"continue":"no"}`:          "continue",
		`{"decision":"maybe"}`:       "decision",
		`{"reason":7}`:               "reason",
		`{"systemMessage":{}}`:       "systemMessage",
		`{"asyncTimeout":-1}`:        "asyncTimeout",
		`{"asyncTimeout":1e300}`:     "asyncTimeout",
		`{"hookSpecificOutput":"x"}`: "hookSpecificOutput",
		`{"hookSpecificOutput":{}}`:  "hookSpecificOutput.hookEventName",
		`{"hookSpecificOutput":{"hookEventName":"PostToolUse"}}`:                            "hookSpecificOutput.hookEventName",
		`{"hookSpecificOutput":{"permissionDecision":"deny"}}`:                              "hookSpecificOutput.hookEventName",
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"Deny"}}`: "hookSpecificOutput.permissionDecision",
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":"x"}}`:          "hookSpecificOutput.updatedInput",
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":null}}`:         "hookSpecificOutput.updatedInput",
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":[]}}`:           "hookSpecificOutput.updatedInput",
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":["x"]}}`:   "hookSpecificOutput.additionalContext",
	} {
		got, err := ParseOutput(PreToolUse, []byte(raw))
		var bad *OutputError
		if !errors.As(err, &bad) || bad.Field != field || !reflect.DeepEqual(got, Output{}) {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
	if o := ParseAsync(PostToolUse, []byte(`{"continue":"x","decision":"block","systemMessage":7,"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"c"}}`)); !reflect.DeepEqual(o, Output{Context: "c"}) {
		t.Errorf("async: %+v", o)
	}
}

// TestExitCodes: exit codes and both outputs of a command.
func TestExitCodes(t *testing.T) {
	conform.Covers(t, "H-41", "H-42", "H-43", "H-44", "H-45", "H-46", "B-065", "H-74", "H-81")
	const denies = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"json"}}`
	const allows = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"json"},"systemMessage":"m"}`
	for name, tt := range map[string]struct {
		ev             Event
		code           int
		stdout, stderr string
		want           Output
		fault, log     string
	}{
		"success":                  {ev: PreToolUse, stdout: "fine", stderr: "log", log: "fine\nlog"},
		"deny":                     {ev: PreToolUse, stdout: "\n " + denies, want: Output{Permission: Deny, PermissionReason: "json"}},
		"deny, exit 1":             {ev: PreToolUse, code: 1, stdout: denies, want: Output{Permission: Deny, PermissionReason: "json"}},
		"deny, exit 2":             {ev: PreToolUse, code: 2, stdout: denies, stderr: "err", want: Output{Permission: Deny, PermissionReason: "json"}, log: "err"},
		"allow, exit 2":            {ev: PreToolUse, code: 2, stdout: allows, stderr: "err", want: Output{Permission: Deny, PermissionReason: "err", SystemMessage: "m"}, log: "err"},
		"no event name, exit 2":    {ev: PreToolUse, code: 2, stdout: `{"hookSpecificOutput":{"permissionDecision":"deny"}}`, stderr: "err", want: Output{Permission: Deny, PermissionReason: "err"}, log: "err"},
		"nothing, exit 2":          {ev: PreToolUse, code: 2, want: Output{Permission: Deny, PermissionReason: noReason}},
		"banner before JSON":       {ev: PreToolUse, stdout: "banner\n" + denies, log: "banner\n" + denies},
		"broken JSON":              {ev: PreToolUse, stdout: `{"decision":`, log: `{"decision":`},
		"bad JSON":                 {ev: PreToolUse, stdout: `{"decision":7}`, fault: `"decision"`},
		"exit 1":                   {ev: PreToolUse, code: 1, stdout: "x", stderr: "first\nsecond", fault: "Failed with non-blocking status code: first", log: "first\nsecond"},
		"prompt, text":             {ev: UserPromptSubmit, stdout: " ctx \n", want: Output{Context: "ctx"}},
		"start, text":              {ev: SessionStart, stdout: "ctx", want: Output{Context: "ctx"}},
		"start, exit 2":            {ev: SessionStart, code: 2, stderr: "err", want: Output{SystemMessage: "err"}, log: "err"},
		"prompt, exit 2":           {ev: UserPromptSubmit, code: 2, stdout: "ctx", stderr: "err", want: Output{Block: true, Reason: "err"}, log: "err"},
		"stop, exit 2":             {ev: Stop, code: 2, stderr: "err", want: Output{Block: true, Reason: "err"}, log: "err"},
		"stop, JSON, exit 2":       {ev: Stop, code: 2, stdout: `{"decision":"block","reason":"json"}`, stderr: "err", want: Output{Block: true, Reason: "json"}, log: "err"},
		"post, exit 2":             {ev: PostToolUse, code: 2, stderr: "err", want: Output{Block: true, Reason: "err"}, log: "err"},
		"permission, exit 2":       {ev: PermissionRequest, code: 2, stdout: `{}`, stderr: "err", log: "err"},
		"compaction, exit 2":       {ev: PreCompact, code: 2, stderr: "err", want: Output{Block: true, Reason: "err"}, log: "err"},
		"end, exit 2":              {ev: SessionEnd, code: 2, stderr: "err", fault: "err", log: "err"},
		"elicitation, exit 2":      {ev: Elicitation, code: 2, stderr: "err", want: Output{Action: "decline"}, log: "err"},
		"worktree, exit 1 with {}": {ev: WorktreeCreate, code: 1, stdout: `{}`, stderr: "err", fault: "err", log: "err"},
	} {
		got, log, fault := FromCommand(tt.ev, Exit{Code: tt.code, Stdout: []byte(tt.stdout), Stderr: []byte(tt.stderr)})
		if !reflect.DeepEqual(got, tt.want) || log != tt.log || (fault == nil) != (tt.fault == "") || fault != nil && !strings.Contains(fault.Error(), tt.fault) {
			t.Errorf("%s: %+v, log %q, fault %v", name, got, log, fault)
		}
	}
}

// FuzzFromCommand: whatever a command writes, exit code 2 denies a call and
// nothing else than JSON allows one.
func FuzzFromCommand(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"continue":false}`, `{"decision":"approve"}`, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{}}}`, "{\xff}", `{"async":true,"asyncTimeout":1e9}`} {
		for _, code := range []int{0, 1, 2} {
			f.Add(code, s, "err")
		}
	}
	f.Fuzz(func(t *testing.T, code int, stdout, stderr string) {
		for ev := range events {
			o, _, fault := FromCommand(ev, Exit{Code: code, Stdout: []byte(stdout), Stderr: []byte(stderr)})
			if fault != nil && !reflect.DeepEqual(o, Output{}) {
				t.Errorf("%s: a fault with an answer: %+v", ev, o)
			}
			if o.UpdatedInput != nil && !strings.HasPrefix(strings.TrimSpace(string(o.UpdatedInput)), "{") {
				t.Errorf("%s: the input %s", ev, o.UpdatedInput)
			}
			m := Merge(ev, []Result{{Name: "x", Output: o, Fault: fault}})
			switch {
			case ev == PreToolUse && code == 2 && m.Permission != Deny:
				t.Errorf("exit code 2 did not deny: %+v", m)
			case ev == Stop && code == 2 && (!m.Block || m.Reason == ""):
				t.Errorf("exit code 2 did not keep the agent going: %+v", m)
			case m.Permission == Allow && !json.Valid([]byte(stdout)):
				t.Errorf("%q allowed a call", stdout)
			}
		}
	})
}
