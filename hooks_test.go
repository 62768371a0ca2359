package turnwright_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// answers is a callback that always gives the same answer.
func answers(o hook.Output) hook.Func {
	return func(context.Context, hook.Input, string) (hook.Output, error) { return o, nil }
}

// on is a table with callbacks of one event.
func on(ev hook.Event, funcs ...hook.Func) hook.Table { return hook.Table{ev: {{Hooks: funcs}}} }

// fileHooks reads the hooks of a settings file.
func fileHooks(t testing.TB, raw string) []hook.File {
	t.Helper()
	f, problems := hook.Parse(hook.SourceProject, "settings.json", json.RawMessage(raw))
	for _, p := range problems {
		t.Fatal(p)
	}
	return []hook.File{f}
}

// hooked runs one call of the tool note, with the text, under hooks.
func hooked(t *testing.T, notes *[]string, text string, set func(*turnwright.Options)) (outcome, *agenttest.Server) {
	t.Helper()
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("note", string(mustJSON(map[string]string{"text": text}))), agenttest.Text("done"),
	))
	o := base(t, srv)
	o.CustomTools = []turnwright.Tool{note(notes)}
	set(&o)
	return query(t, "go", o), srv
}

// toolText is what the model was told of its only call.
func toolText(t *testing.T, srv *agenttest.Server) (text string, isError bool) {
	t.Helper()
	res := srv.Last().LastToolResults()
	if len(res) != 1 {
		t.Fatalf("tool results: %+v", res)
	}
	return res[0].Text, res[0].IsError
}

// infos are the status lines of a run.
func (o *outcome) infos() (texts []string) {
	for _, m := range o.messages {
		if i, ok := m.(*message.Informational); ok {
			texts = append(texts, i.Content)
		}
	}
	return texts
}

// TestHooksTellTheUser: what hooks have to say to the user is a status line of
// the stream, which names its call and says when the turn ends by it.
func TestHooksTellTheUser(t *testing.T) {
	conform.Covers(t, "H-45", "H-48", "H-50", "M-70", "W-301")
	broken := func(context.Context, hook.Input, string) (hook.Output, error) {
		return hook.Output{}, errors.New("broken")
	}
	for ev, want := range map[hook.Event][]message.Informational{
		hook.PreToolUse: {
			{Content: "PreToolUse:note: one\nPreToolUse:note: two", Level: "info", ToolUseID: "toolu_1"},
			{Content: "enough", Level: "notice", ToolUseID: "toolu_1", PreventContinuation: true},
		},
		hook.PostToolUse: {
			{Content: "PostToolUse:note: one\nPostToolUse:note: two", Level: "info", ToolUseID: "toolu_1"},
			{Content: "PostToolUse:note hook error\nbroken", Level: "warning", ToolUseID: "toolu_1"},
			{Content: "enough", Level: "notice", ToolUseID: "toolu_1", PreventContinuation: true},
		},
		hook.Stop: {
			{Content: "Stop: one\nStop: two", Level: "info"},
			{Content: "Stop hook error\nbroken", Level: "warning"},
			{Content: "enough", Level: "notice", PreventContinuation: true},
		},
	} {
		srv := agenttest.NewServer(t, agenttest.Script(agenttest.CallID("toolu_1", "note", `{"text":"x"}`), agenttest.Text("done")))
		o := base(t, srv)
		var notes []string
		o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
		funcs := []hook.Func{answers(hook.Output{SystemMessage: "one\ntwo\n", Stop: true, StopReason: "enough"})}
		if ev != hook.PreToolUse { // there a failure denies
			funcs = append(funcs, broken)
		}
		o.Hooks = on(ev, funcs...)
		out := query(t, "go", o)
		var got []message.Informational
		for _, m := range out.messages {
			if i, ok := m.(*message.Informational); ok {
				if i.UUID == "" || i.SessionID != out.result.SessionID {
					t.Errorf("%+v", i)
				}
				got = append(got, message.Informational{Content: i.Content, Level: i.Level, ToolUseID: i.ToolUseID, PreventContinuation: i.PreventContinuation})
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", ev, got)
		}
	}
}

// TestHookDecides: a hook comes before rules and mode, and its decision holds as
// far as the contract says.
func TestHookDecides(t *testing.T) {
	conform.Covers(t, "P-27", "P-28", "P-29", "P-36", "P-15", "H-58", "H-73", "H-104", "H-105", "H-132", "L-144", "W-157", "W-158", "M-79", "P-135", "P-137")
	allow := hook.Output{Permission: hook.Allow}
	deny := hook.Output{Permission: hook.Deny, PermissionReason: "not on a Friday"}
	ask := hook.Output{Permission: hook.Ask, PermissionReason: "look at this"}
	rule := func(rules ...string) func(*turnwright.Options) {
		return func(o *turnwright.Options) { o.AllowedTools = rules }
	}
	mode := func(m turnwright.PermissionMode) func(*turnwright.Options) {
		return func(o *turnwright.Options) {
			o.PermissionMode, o.AllowDangerouslySkipPermissions = m, true
			o.Env["IS_SANDBOX"] = "1"
		}
	}
	for name, tt := range map[string]struct {
		hooks []hook.Output
		set   func(*turnwright.Options)
		runs  bool
		asked string // the reason that the callback is asked with; "": it is not
	}{
		"allow":            {[]hook.Output{allow}, nil, true, ""},
		"nothing":          {[]hook.Output{{}}, nil, false, "permission mode"},
		"allow in dontAsk": {[]hook.Output{allow}, mode(turnwright.ModeDontAsk), true, ""},
		"deny":             {[]hook.Output{deny}, rule("note"), false, ""},
		"deny in bypass":   {[]hook.Output{deny}, mode(turnwright.ModeBypassPermissions), false, ""},
		"ask":              {[]hook.Output{ask}, rule("note"), false, "look at this"},
		"ask in bypass":    {[]hook.Output{ask}, mode(turnwright.ModeBypassPermissions), false, "look at this"},
		"ask in dontAsk, allowed": {[]hook.Output{ask}, func(o *turnwright.Options) {
			o.PermissionMode, o.AllowedTools = turnwright.ModeDontAsk, []string{"note"}
		}, false, ""},
		"ask in dontAsk":        {[]hook.Output{ask}, mode(turnwright.ModeDontAsk), false, ""},
		"ask over allow":        {[]hook.Output{allow, ask, {}}, nil, false, "look at this"},
		"deny over ask":         {[]hook.Output{ask, deny, allow}, rule("note"), false, ""},
		"allow under deny rule": {[]hook.Output{allow}, func(o *turnwright.Options) { o.DisallowedTools = []string{"note(text:*)"} }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			asked := ""
			out, srv := hooked(t, &notes, "x", func(o *turnwright.Options) {
				var funcs []hook.Func
				for _, h := range tt.hooks {
					funcs = append(funcs, answers(h))
				}
				o.Hooks = on(hook.PreToolUse, funcs...)
				o.CanUseTool = func(_ context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
					asked = r.Reason
					return turnwright.PermissionAnswer{Message: "no"}, nil
				}
				if tt.set != nil {
					tt.set(o)
				}
			})
			if (len(notes) == 1) != tt.runs || !strings.Contains(asked, tt.asked) || (asked == "") != (tt.asked == "") {
				t.Errorf("notes %q, asked %q", notes, asked)
			}
			if (len(out.result.PermissionDenials) == 0) != tt.runs {
				t.Errorf("denials %+v", out.result.PermissionDenials)
			}
			byHook := strings.HasPrefix(name, "deny")
			if text, isError := toolText(t, srv); byHook && (text != "not on a Friday" || !isError) {
				t.Errorf("the model was told %q", text)
			}
			if byHook && strings.Contains(out.shape(), "permission_denied") {
				t.Errorf("a denial by a hook was announced: %s", out.shape())
			}
		})
	}
}

// TestHookAllowHasLimits: what a hook approves still stops at rules that ask, at
// critical paths and in plan mode.
func TestHookAllowHasLimits(t *testing.T) {
	conform.Covers(t, "P-109", "P-111", "P-142", "H-104")
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		tool, input string
		mode        turnwright.PermissionMode
		runs        bool
	}{
		"protected path": {"Write", `{"file_path":"` + dir + `/.npmrc","content":"x"}`, "", true},
		"critical path":  {"Bash", `{"command":"rmdir ` + dir + `"}`, "", false},
		"plan mode edit": {"Write", `{"file_path":"` + dir + `/new","content":"x"}`, turnwright.ModePlan, false},
		"edit":           {"Write", `{"file_path":"` + dir + `/new2","content":"x"}`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call(tt.tool, tt.input), agenttest.Text("done")))
			o := base(t, srv)
			o.CWD, o.PermissionMode = dir, tt.mode
			o.Hooks = on(hook.PreToolUse, answers(hook.Output{Permission: hook.Allow}))
			out := query(t, "go", o)
			if ran := len(out.result.PermissionDenials) == 0; ran != tt.runs {
				text, _ := toolText(t, srv)
				t.Errorf("ran %v: %s", ran, text)
			}
		})
	}
}

// TestHookChangesInput: rules see the input as hooks left it, and what rules
// deny of the original stays denied.
func TestHookChangesInput(t *testing.T) {
	conform.Covers(t, "P-37", "H-106", "H-107", "B-068", "B-069", "B-070", "W-160")
	rewrite := func(text string) hook.Output {
		return hook.Output{UpdatedInput: mustJSON(map[string]string{"text": text})}
	}
	with := func(o hook.Output, p hook.Permission) hook.Output {
		o.Permission = p
		return o
	}
	for name, tt := range map[string]struct {
		hooks []hook.Func
		set   func(*turnwright.Options)
		notes string
		asked string
		told  string
	}{
		"allowed with a change": {hooks: []hook.Func{answers(with(rewrite("new"), hook.Allow))}, notes: "new"},
		"no decision":           {hooks: []hook.Func{answers(rewrite("new"))}, asked: `{"text":"new"}`},
		"and another asks":      {hooks: []hook.Func{answers(with(rewrite("new"), hook.Allow)), answers(hook.Output{Permission: hook.Ask})}, asked: `{"text":"new"}`},
		"not valid":             {hooks: []hook.Func{answers(with(hook.Output{UpdatedInput: json.RawMessage(`{"texts":1}`)}, hook.Allow))}, told: "not valid"},
		"no object":             {hooks: []hook.Func{answers(with(rewrite("new"), hook.Allow)), answers(hook.Output{UpdatedInput: json.RawMessage(`null`)})}, told: "updatedInput"},
		"original is denied": {
			hooks: []hook.Func{answers(with(rewrite("new"), hook.Allow))},
			set:   func(o *turnwright.Options) { o.DisallowedTools = []string{"note(text:old)"} }, told: "note(text:old)",
		},
		"change is denied": {
			hooks: []hook.Func{answers(with(rewrite("new"), hook.Allow))},
			set:   func(o *turnwright.Options) { o.DisallowedTools = []string{"note(text:new)"} }, told: "note(text:new)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			asked := ""
			_, srv := hooked(t, &notes, "old", func(o *turnwright.Options) {
				o.Hooks = on(hook.PreToolUse, tt.hooks...)
				o.CanUseTool = func(_ context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
					asked = string(r.Input)
					return turnwright.PermissionAnswer{Allow: true}, nil
				}
				if tt.set != nil {
					tt.set(o)
				}
			})
			want := tt.notes
			if tt.asked != "" {
				want = "new" // what was approved is what runs
			}
			text, _ := toolText(t, srv)
			if strings.Join(notes, " ") != want || asked != tt.asked || !strings.Contains(text, tt.told) {
				t.Errorf("notes %q, asked %q, told %q", notes, asked, text)
			}
		})
	}
}

// TestHookSeesCall: the input of the hooks around a call, and what they add to
// its result.
func TestHookSeesCall(t *testing.T) {
	conform.Covers(t, "H-2", "H-18", "H-52", "H-54", "H-59", "H-61", "H-76", "H-110", "H-133", "H-134", "L-149", "T-15", "T-22", "T-28", "T-39", "W-139", "W-141", "W-142", "W-152", "W-153", "W-162", "B-078")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.CallID("toolu_1", "Read", `{"file_path":"a.txt"}`), agenttest.CallID("toolu_2", "Glob", `{"pattern":"*.txt"}`)),
		agenttest.Text("done"),
	))
	o := base(t, srv)
	o.CWD = dir
	var mu sync.Mutex
	seen := map[string]hook.Input{}
	watch := func(out hook.Output) hook.Func {
		return func(_ context.Context, in hook.Input, id string) (hook.Output, error) {
			mu.Lock()
			defer mu.Unlock()
			seen[string(in.Event())+" "+id] = in
			return out, nil
		}
	}
	o.Hooks = hook.Table{
		hook.PreToolUse: {{Matcher: "Read", Hooks: []hook.Func{watch(hook.Output{Context: "before"})}}},
		hook.PostToolUse: {
			{Matcher: "Read|Glob", Hooks: []hook.Func{watch(hook.Output{Context: "after", Block: true, Reason: "too short"})}},
			{Matcher: "^Re", Hooks: []hook.Func{answers(hook.Output{Context: "more"})}},
		},
		hook.PostToolBatch: {{Matcher: "ignored", Hooks: []hook.Func{watch(hook.Output{Context: "all done"})}}},
	}
	out := query(t, "go", o)
	if len(seen) != 4 {
		t.Fatalf("seen: %v", seen)
	}
	pre := seen["PreToolUse toolu_1"].(*hook.PreToolUseInput)
	if pre.ToolName != "Read" || string(pre.ToolInput) != `{"file_path":"`+filepath.Join(dir, "a.txt")+`"}` || pre.ToolUseID != "toolu_1" ||
		pre.SessionID != out.result.SessionID || pre.CWD != dir || pre.EventName != hook.PreToolUse || pre.PermissionMode != turnwright.ModeDefault || pre.PromptID == "" {
		t.Errorf("before: %+v", pre)
	}
	post := seen["PostToolUse toolu_1"].(*hook.PostToolUseInput)
	var read struct {
		Type string
		File struct{ Content string }
	}
	if err := json.Unmarshal(post.ToolResponse, &read); err != nil || read.Type != "text" || read.File.Content != "one\n" || post.DurationMS < 0 {
		t.Errorf("after: %s", post.ToolResponse)
	}
	batch := seen["PostToolBatch "].(*hook.PostToolBatchInput)
	if len(batch.ToolCalls) != 2 || batch.ToolCalls[0].ToolUseID != "toolu_1" || !strings.Contains(string(batch.ToolCalls[0].ToolInput), dir) || !strings.Contains(string(batch.ToolCalls[0].ToolResponse), "one") || strings.HasPrefix(string(batch.ToolCalls[0].ToolResponse), "{") {
		t.Errorf("batch: %+v", batch)
	}

	// The results come first, then what hooks said, in the order of the
	// configuration and each text once.
	last := srv.Last().Messages()[2]
	var texts []string
	for i, b := range last.Content {
		if (b.Type == "tool_result") != (i < 2) {
			t.Errorf("block %d is a %s", i, b.Type)
		}
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	all := strings.Join(texts, "\n")
	for want, n := range map[string]int{"context: before": 1, "too short": 2, "context: after": 2, "context: more": 1, "context: all done": 1} {
		if got := strings.Count(all, want); got != n || strings.Count(all, "<system-reminder>") != len(texts) {
			t.Errorf("%q stands %d times in %q", want, got, all)
		}
	}
	_, read1, _ := strings.Cut(all, "context: before")
	if i, j := strings.Index(read1, "context: after"), strings.Index(read1, "context: more"); i < 0 || i > j || !strings.Contains(texts[len(texts)-1], "all done") {
		t.Errorf("order: %q", all)
	}
}

// TestHookReplacesOutput: a hook may put another output in the place of the
// tool's, if it has the same shape.
func TestHookReplacesOutput(t *testing.T) {
	conform.Covers(t, "H-111", "W-162")
	for name, tt := range map[string]struct{ with, want string }{
		"text of a custom tool": {`"hidden"`, "hidden"},
		"blocks":                {`[{"type":"text","text":"hidden too"}]`, "hidden too"},
		"another value":         {`{"n":1}`, `{"n":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			_, srv := hooked(t, &notes, "x", func(o *turnwright.Options) {
				o.AllowedTools = []string{"note"}
				o.Hooks = on(hook.PostToolUse, answers(hook.Output{UpdatedOutput: json.RawMessage(tt.with)}))
			})
			if text, _ := toolText(t, srv); text != tt.want {
				t.Errorf("the model saw %q", text)
			}
		})
	}
	for name, tt := range map[string]struct{ edit, want string }{
		"same shape":    {`hello → bye`, "bye"},
		"another shape": {"", "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, bashCalls("echo hello"))
			o := base(t, srv)
			o.Hooks = on(hook.PostToolUse, hook.On(func(_ context.Context, in *hook.PostToolUseInput) (hook.Output, error) {
				if tt.edit == "" {
					return hook.Output{UpdatedOutput: json.RawMessage(`"secret"`)}, nil
				}
				return hook.Output{UpdatedOutput: []byte(strings.ReplaceAll(string(in.ToolResponse), "hello", "bye"))}, nil
			}))
			out := query(t, "go", o)
			if text, _ := toolText(t, srv); text != tt.want {
				t.Errorf("the model saw %q", text)
			}
			if told := strings.Contains(strings.Join(out.infos(), " "), "shape"); told != (tt.edit == "") {
				t.Errorf("told %q", out.infos())
			}
		})
	}
}

// TestHookFailure: what failed is told to the hook as the model has it; calls
// that did not start, and cancelled ones, are no failures.
func TestHookFailure(t *testing.T) {
	conform.Covers(t, "H-77", "H-112", "T-16", "T-17", "T-26", "W-143")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Bash", `{"command":"echo oops; exit 3"}`),
		agenttest.Call("Nothing", `{}`), agenttest.Call("Bash", `{"commands":"x"}`), agenttest.Call("Bash", `{"command":"rm x"}`),
		agenttest.Call("note", `{"text":"fail `+strings.Repeat("y", 20000)+`"}`),
		agenttest.Text("done"),
	))
	o := base(t, srv)
	var notes []string
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"Bash(echo *)", "Bash(exit *)", "note"}
	var failed []hook.PostToolUseFailureInput
	o.Hooks = hook.Table{
		hook.PostToolUseFailure: {{Hooks: []hook.Func{hook.On(func(_ context.Context, in *hook.PostToolUseFailureInput) (hook.Output, error) {
			failed = append(failed, *in)
			return hook.Output{Context: "try harder"}, nil
		})}}},
		hook.PostToolUse: {{Hooks: []hook.Func{func(_ context.Context, in hook.Input, _ string) (hook.Output, error) {
			t.Errorf("a success: %+v", in)
			return hook.Output{}, nil
		}}}},
	}
	query(t, "go", o)
	if len(failed) != 2 || !strings.HasPrefix(failed[0].Error, "Exit code 3") || !strings.Contains(failed[0].Error, "oops") {
		t.Fatalf("failed: %+v", failed)
	}
	if e := failed[1].Error; len(e) < 9000 || len(e) > 11000 || !strings.Contains(e, "characters truncated") {
		t.Errorf("%d characters: %.100s", len(e), e)
	}
	if !strings.Contains(string(srv.Requests()[1].Body), "try harder") {
		t.Error("the context is not in the next request")
	}

	// A call that is cancelled.
	srv = agenttest.NewServer(t, agenttest.Script(agenttest.Call("wait", `{}`), agenttest.Text("x")))
	o = base(t, srv)
	started := make(chan struct{})
	o.CustomTools = []turnwright.Tool{turnwright.NewTool("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		close(started)
		<-ctx.Done()
		return "", ctx.Err()
	})}
	o.AllowedTools = []string{"wait"}
	o.Hooks = on(hook.PostToolUseFailure, func(context.Context, hook.Input, string) (hook.Output, error) {
		t.Error("a cancelled call is a failure")
		return hook.Output{}, nil
	})
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Send(t.Context(), turnwright.Input{Text: "go"}); err != nil {
		t.Fatal(err)
	}
	<-started
	if _, err := s.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestHookStops: continue:false ends the turn from wherever it is said, over
// every other field.
func TestHookStops(t *testing.T) {
	conform.Covers(t, "H-48", "H-49", "H-78", "L-150", "L-218", "W-156")
	halt := hook.Output{Stop: true, StopReason: "enough for today", Permission: hook.Allow, Context: "go on"}
	for ev, tt := range map[hook.Event]struct {
		notes, requests int
		text            string
		out             hook.Output
	}{
		hook.SessionStart:     {0, 0, "", halt},
		hook.UserPromptSubmit: {0, 0, "", halt},
		hook.PreToolUse:       {0, 1, "I note it.", halt},
		hook.PostToolUse:      {1, 1, "I note it.", halt},
		hook.PostToolBatch:    {1, 1, "I note it.", halt},
		hook.Stop:             {1, 2, "done", halt},
	} {
		t.Run(string(ev), func(t *testing.T) {
			var notes []string
			srv := agenttest.NewServer(t, agenttest.Script(
				agenttest.Blocks(agenttest.Text("I note it."), agenttest.Call("note", `{"text":"x"}`)), agenttest.Text("done"), agenttest.Text("more"),
			))
			o := base(t, srv)
			o.CustomTools, o.AllowedTools, o.Hooks = []turnwright.Tool{note(&notes)}, []string{"note"}, on(ev, answers(tt.out))
			out := query(t, "go", o)
			r := out.result
			if r.Subtype != turnwright.Success || r.IsError || r.TerminalReason != message.TerminalHookStopped || *r.Result != tt.text {
				t.Errorf("%+v %q", r, *r.Result)
			}
			if len(notes) != tt.notes || srv.Count() != tt.requests {
				t.Errorf("%d notes, %d requests", len(notes), srv.Count())
			}
			if infos := out.infos(); !slices.Contains(infos, "enough for today") {
				t.Errorf("told %q", infos)
			}
			for _, m := range out.messages {
				if u, ok := m.(*message.User); ok && ev == hook.PreToolUse {
					if res := u.ToolResults(); len(res) != 1 || !strings.Contains(res[0].Content.Text(), "a hook stopped the run") {
						t.Errorf("the call was told %+v", res)
					}
				}
			}
		})
	}
	// A batch hook that blocks ends the loop as well.
	var notes []string
	out, srv := hooked(t, &notes, "x", func(o *turnwright.Options) {
		o.AllowedTools, o.Hooks = []string{"note"}, on(hook.PostToolBatch, answers(hook.Output{Block: true, Reason: "look first"}))
	})
	if srv.Count() != 1 || out.result.TerminalReason != message.TerminalHookStopped || !slices.Contains(out.infos(), "look first") {
		t.Errorf("%d requests, %+v, %q", srv.Count(), out.result, out.infos())
	}
}

// TestPromptHooks: a prompt that a hook blocks never reaches the model; what
// hooks add to one does.
func TestPromptHooks(t *testing.T) {
	conform.Covers(t, "H-51", "H-54", "H-79", "H-120", "H-121", "L-219", "W-144", "W-163", "M-70")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := base(t, srv)
	o.Hooks = on(hook.UserPromptSubmit, hook.On(func(_ context.Context, in *hook.UserPromptSubmitInput) (hook.Output, error) {
		switch {
		case strings.Contains(in.Prompt, "password"):
			return hook.Output{Block: true, Reason: "secrets do not belong here", HidePrompt: true}, nil
		case strings.Contains(in.Prompt, "nuclear"):
			return hook.Output{Block: true, Reason: "no"}, nil
		}
		return hook.Output{Context: "It is Tuesday.", Title: "About days"}, nil
	}))
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out outcome
	turn := func(prompt string) *turnwright.ResultMessage {
		out = outcome{}
		if _, err := s.Send(t.Context(), turnwright.Input{Text: prompt}); err != nil {
			t.Fatal(err)
		}
		for m, err := range s.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if out.add(m); out.result != nil {
				break
			}
		}
		return out.result
	}
	r := turn("my password is x")
	if r.Subtype != turnwright.Success || *r.Result != "" || r.NumTurns != 0 || r.TerminalReason != "" || srv.Count() != 0 {
		t.Errorf("%+v", r)
	}
	if got := out.shape(); got != "init informational result(success)" || !strings.Contains(out.infos()[0], "secrets do not") || strings.Contains(out.infos()[0], "my password") {
		t.Errorf("%s %q", got, out.infos())
	}
	if turn("nuclear codes"); !strings.Contains(out.infos()[0], "nuclear codes") {
		t.Errorf("%q", out.infos())
	}
	turn("What day is it?")
	body := string(srv.Last().Body)
	if strings.Contains(body, "password") || strings.Contains(body, "nuclear") || strings.Count(body, "It is Tuesday.") != 1 {
		t.Errorf("the request: %s", body)
	}
	if i, j := strings.Index(body, "What day"), strings.Index(body, "It is Tuesday"); i > j {
		t.Error("the context does not come with the prompt")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A resumed session has the title that the hook gave and the stored text, and
	// does not ask again.
	o.Hooks, o.Resume = nil, "About days"
	query(t, "and now?", o)
	if body := string(srv.Last().Body); strings.Count(body, "It is Tuesday.") != 1 {
		t.Errorf("the request after a resume: %s", body)
	}
}

// TestSessionHooks: the hooks at both ends of a session run once each, whatever
// ends it.
func TestSessionHooks(t *testing.T) {
	conform.Covers(t, "H-52", "H-54", "H-62", "H-81", "H-82", "H-130", "L-3", "M-84", "M-85", "H-131", "S-49", "B-080", "W-220", "W-292", "M-81", "M-83")
	store := newStoreOnDisk(t)
	var events []string
	record := func(out hook.Output) hook.Func {
		return func(_ context.Context, in hook.Input, _ string) (hook.Output, error) {
			events = append(events, hook.Name(in))
			if in.Head().TranscriptPath == "" {
				t.Errorf("%s: no transcript", in.Event())
			}
			return out, nil
		}
	}
	run := func(set func(*turnwright.Options)) (outcome, *agenttest.Server) {
		events = nil
		srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
		o := base(t, srv)
		o.Store, o.Env["CLAUDE_CONFIG_DIR"], o.CWD = nil, store, store
		o.Hooks = hook.Table{
			hook.SessionStart: {{Hooks: []hook.Func{record(hook.Output{Context: "Use tabs.", SystemMessage: "welcome\nback"})}}},
			hook.SessionEnd:   {{Hooks: []hook.Func{record(hook.Output{SystemMessage: "never shown", Stop: true})}}},
		}
		set(&o)
		return query(t, "hi", o), srv
	}
	out, srv := run(func(*turnwright.Options) {})
	if got := strings.Join(events, " "); got != "SessionStart:startup SessionEnd:other" {
		t.Errorf("events %s", got)
	}
	if got := out.shape(); got != "hook_started hook_response init informational assistant(text) result(success)" {
		t.Errorf("stream: %s", got)
	}
	if got := out.infos()[0]; got != "SessionStart:startup: welcome\nSessionStart:startup: back" {
		t.Errorf("told %q", got)
	}
	if started, res := out.messages[0].(*message.HookStarted), out.messages[1].(*message.HookResponse); started.HookName != "SessionStart:startup" || started.HookEvent != "SessionStart" || started.HookID == "" || res.HookID != started.HookID || res.Outcome != "success" || res.ExitCode != nil {
		t.Errorf("%+v %+v", started, res)
	}
	if text := srv.Last().UserText(); strings.Index(text, "Use tabs.") > strings.Index(text, "hi") || !strings.Contains(text, "Use tabs.") {
		t.Errorf("the prompt: %q", text)
	}
	id := out.result.SessionID
	_, srv = run(func(o *turnwright.Options) { o.Resume = id })
	if got := strings.Join(events, " "); got != "SessionStart:resume SessionEnd:other" || strings.Count(string(srv.Last().Body), "Use tabs.") != 2 {
		t.Errorf("events %s, request %s", got, srv.Last().Body)
	}
	if run(func(o *turnwright.Options) { o.Resume, o.ForkSession = id, true }); events[0] != "SessionStart:fork" {
		t.Errorf("events %s", events)
	}
	// The reader goes away at the first message; an API error.
	events = nil
	o := base(t, agenttest.NewServer(t, agenttest.Forever(agenttest.HTTPError(400, "invalid_request_error", "bad"))))
	o.Hooks = on(hook.SessionEnd, func(_ context.Context, in hook.Input, _ string) (hook.Output, error) {
		events = append(events, hook.Name(in))
		return hook.Output{}, nil
	})
	for range turnwright.Query(t.Context(), "hi", o) {
		break
	}
	query(t, "hi", o)
	if len(events) != 2 {
		t.Errorf("events %s", events)
	}
	// A session that was never used has not begun.
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil || len(events) != 2 {
		t.Errorf("%v, events %s", err, events)
	}
}

func newStoreOnDisk(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStopHooks: a Stop hook keeps the agent going with its reason, up to the
// cap, which is told.
func TestStopHooks(t *testing.T) {
	conform.Covers(t, "H-84", "H-116", "L-215", "L-216", "L-217", "H-119", "W-145", "W-164", "B-075", "B-077", "K-242", "O-104")
	for _, tt := range []struct {
		cap      string
		requests int
		out      hook.Output
	}{{"", 9, hook.Output{Block: true, Reason: "tests are red"}}, {"2", 3, hook.Output{Context: "tests are red"}}, {"0", 20, hook.Output{Block: true, Reason: "tests are red"}}} {
		srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("all done")))
		o := base(t, srv)
		o.Env["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"], o.MaxTurns = tt.cap, new(1)
		calls := 0
		o.Hooks = on(hook.Stop, hook.On(func(_ context.Context, in *hook.StopInput) (hook.Output, error) {
			if calls++; in.StopHookActive != (calls > 1) || in.LastAssistantMessage != "all done" {
				t.Errorf("call %d: %+v", calls, in)
			}
			if calls == 20 {
				return hook.Output{}, nil
			}
			return tt.out, nil
		}))
		out := query(t, "go", o)
		r := out.result
		if srv.Count() != tt.requests || r.Subtype != turnwright.Success || r.TerminalReason != message.TerminalCompleted || *r.Result != "all done" {
			t.Errorf("cap %q: %d requests, %+v", tt.cap, srv.Count(), r)
		}
		if text := srv.Last().UserText(); !strings.Contains(text, "tests are red") {
			t.Errorf("the model was told %q", text)
		}
		if told := strings.Contains(strings.Join(out.infos(), " "), "times in a row"); told != (tt.cap != "0") {
			t.Errorf("cap %q: told %q", tt.cap, out.infos())
		}
	}
	refused(t, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "often", func(o *turnwright.Options) { o.Env["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"] = "often" })
}

// TestStopHooksDoNotRun: a turn that a limit, an interrupt or an error ends has
// no Stop hooks; an API error has StopFailure.
func TestStopHooksDoNotRun(t *testing.T) {
	conform.Covers(t, "H-85", "H-117", "H-118", "L-38", "L-215")
	var events []string
	table := func() hook.Table {
		events = nil
		record := func(_ context.Context, in hook.Input, _ string) (hook.Output, error) {
			events = append(events, hook.Name(in))
			return hook.Output{Block: true, Reason: "go on", Stop: true}, nil
		}
		return hook.Table{hook.Stop: {{Hooks: []hook.Func{record}}}, hook.StopFailure: {{Matcher: "invalid_request|rate_limit", Hooks: []hook.Func{record}}}}
	}
	o := base(t, agenttest.NewServer(t, agenttest.Forever(agenttest.Call("echo", `{"text":"x"}`))))
	o.CustomTools, o.AllowedTools, o.MaxTurns, o.Hooks = []turnwright.Tool{echo()}, []string{"echo"}, new(1), table()
	if out := query(t, "go", o); out.result.Subtype != turnwright.ErrorMaxTurns || len(events) != 0 {
		t.Errorf("%s: %s", out.result.Subtype, events)
	}
	o = base(t, agenttest.NewServer(t, agenttest.Forever(agenttest.HTTPError(400, "invalid_request_error", "bad"))))
	o.Hooks = table()
	if out := query(t, "go", o); out.result.TerminalReason != message.TerminalAPIError || strings.Join(events, " ") != "StopFailure:invalid_request" {
		t.Errorf("%s: %s", out.result.TerminalReason, events)
	}
	if len(o.Hooks) == 0 {
		t.Error("no hooks")
	}
}

// TestHookTimeouts: what a callback that takes too long, fails or panics means
// for its event.
func TestHookTimeouts(t *testing.T) {
	conform.Covers(t, "H-2", "H-57", "H-62", "H-63", "H-65", "H-66", "L-220", "W-167", "W-168", "W-169", "H-71")
	hang := func(ctx context.Context, _ hook.Input, _ string) (hook.Output, error) {
		<-ctx.Done()
		time.Sleep(time.Hour) // a callback that does not come back either
		return hook.Output{Permission: hook.Allow}, nil
	}
	fail := func(context.Context, hook.Input, string) (hook.Output, error) {
		return hook.Output{}, errors.New("no disk")
	}
	crash := func(context.Context, hook.Input, string) (hook.Output, error) { panic("a bug") }
	denies := answers(hook.Output{Permission: hook.Deny, PermissionReason: "never"})
	for name, tt := range map[string]struct {
		event hook.Event
		funcs []hook.Func
		limit time.Duration
		took  time.Duration
		notes int
		told  string // the model, in the result of the call
		user  string
	}{
		"PreToolUse":              {hook.PreToolUse, []hook.Func{hang}, 0, 600 * time.Second, 0, "10m0s", ""},
		"PreToolUse, 2.5 s":       {hook.PreToolUse, []hook.Func{hang}, 2500 * time.Millisecond, 2500 * time.Millisecond, 0, "2.5s", ""},
		"PreToolUse and a deny":   {hook.PreToolUse, []hook.Func{hang, denies}, time.Second, time.Second, 0, "never", ""},
		"PreToolUse, two hang":    {hook.PreToolUse, []hook.Func{hang, hang, hang}, time.Second, time.Second, 0, "1s", ""},
		"PreToolUse, an error":    {hook.PreToolUse, []hook.Func{fail}, 0, 0, 0, "no disk", ""},
		"PreToolUse, a panic":     {hook.PreToolUse, []hook.Func{crash}, 0, 0, 0, "a bug", ""},
		"UserPromptSubmit":        {hook.UserPromptSubmit, []hook.Func{hang}, 0, 30 * time.Second, 0, "", "30s"},
		"UserPromptSubmit error":  {hook.UserPromptSubmit, []hook.Func{fail}, 0, 0, 0, "", "no disk"},
		"PostToolUse":             {hook.PostToolUse, []hook.Func{hang}, time.Second, time.Second, 1, "noted 1", "1s"},
		"PostToolUse, a panic":    {hook.PostToolUse, []hook.Func{crash}, time.Second, 0, 1, "noted 1", "a bug"},
		"Stop":                    {hook.Stop, []hook.Func{hang}, time.Second, time.Second, 1, "noted 1", "1s"},
		"SessionEnd":              {hook.SessionEnd, []hook.Func{hang, hang}, 0, 1500 * time.Millisecond, 1, "noted 1", ""},
		"SessionEnd, long":        {hook.SessionEnd, []hook.Func{hang, hang}, time.Minute, 1500 * time.Millisecond, 1, "noted 1", ""},
		"SessionEnd, by variable": {hook.SessionEnd, []hook.Func{hang}, time.Minute, 3 * time.Second, 1, "noted 1", ""},
		"async":                   {hook.PreToolUse, []hook.Func{answers(hook.Output{Async: true, Permission: hook.Deny, Stop: true})}, 0, 0, 1, "noted 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var notes []string
				srv, o := inMemory(t, agenttest.Script(agenttest.Call("note", `{"text":"x"}`), agenttest.Text("done")))
				o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
				o.Hooks = hook.Table{tt.event: {{Hooks: tt.funcs, Timeout: tt.limit}}}
				if strings.Contains(name, "variable") {
					o.Env["CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"] = "3000"
				}
				start := time.Now()
				out := query(t, "go", o)
				if took := time.Since(start); took < tt.took || took > tt.took+time.Second {
					t.Errorf("it took %v", took)
				}
				if len(notes) != tt.notes || !out.resultOK() {
					t.Errorf("notes %q, %+v", notes, out.result)
				}
				if user := strings.Join(out.infos(), "\n"); !strings.Contains(user, tt.user) {
					t.Errorf("the user was told %q", user)
				}
				if tt.told != "" {
					if text, _ := toolText(t, srv); !strings.Contains(text, tt.told) {
						t.Errorf("the model was told %q", text)
					}
				}
				time.Sleep(2 * time.Hour) // the callbacks that hang
			})
		})
	}
}

func (o *outcome) resultOK() bool { return o.result != nil && o.result.Subtype == turnwright.Success }

// TestInitialMessage: a prompt of a SessionStart hook has the first turn, and
// the given one follows.
func TestInitialMessage(t *testing.T) {
	conform.Covers(t, "H-122")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Text("one"), agenttest.Text("two"), agenttest.Text("three")))
	o := base(t, srv)
	o.Hooks = on(hook.SessionStart, answers(hook.Output{InitialMessage: "read the rules", Context: "Rules are in RULES.md.", SystemMessage: "hello"}))
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, err := s.Ask(t.Context(), "go"); err != nil || *r.Result != "two" {
		t.Fatalf("%v, %+v", err, r)
	}
	if r, err := s.Ask(t.Context(), "again"); err != nil || *r.Result != "three" {
		t.Fatalf("%v, %+v", err, r)
	}
	first, second := srv.Requests()[0].UserText(), srv.Requests()[1].UserText()
	if !strings.HasSuffix(first, "read the rules") || !strings.Contains(first, "RULES.md") || strings.Contains(first, "go") || second != "go" {
		t.Errorf("first %q, then %q", first, second)
	}
	// Every turn has its init, and the prompt that nobody has sent is shown.
	srv = agenttest.NewServer(t, agenttest.Script(agenttest.Text("one"), agenttest.Text("two")))
	o.Env["ANTHROPIC_BASE_URL"] = srv.URL()
	out := query(t, "go", o)
	if got := out.shape(); got != "hook_started hook_response init informational user() assistant(text) result(success) init assistant(text) result(success)" {
		t.Errorf("%s", got)
	}
}

// TestSteeredPrompts: hooks of prompts see also those that are sent while a turn
// runs, so these wait for a turn of their own.
func TestSteeredPrompts(t *testing.T) {
	conform.Covers(t, "H-79")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("send", `{}`), agenttest.Text("one"), agenttest.Text("two")))
	o := base(t, srv)
	var s *turnwright.Session
	o.CustomTools = []turnwright.Tool{turnwright.NewTool("send", "Sends.", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := s.Send(ctx, turnwright.Input{Text: "my password"})
		return "sent", err
	})}
	o.AllowedTools, o.Steer = []string{"send"}, true
	o.Hooks = on(hook.UserPromptSubmit, hook.On(func(_ context.Context, in *hook.UserPromptSubmitInput) (hook.Output, error) {
		return hook.Output{Block: strings.Contains(in.Prompt, "password"), Reason: "no"}, nil
	}))
	var err error
	if s, err = turnwright.NewSession(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, err := s.Ask(t.Context(), "go"); err != nil || *r.Result != "one" {
		t.Fatalf("%v, %+v", err, r)
	}
	s.EndInput()
	for range s.Messages(t.Context()) {
	}
	for _, r := range srv.Requests() {
		if strings.Contains(string(r.Body), "password") {
			t.Errorf("sent to the model: %s", r.Body)
		}
	}
}
