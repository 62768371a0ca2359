package turnwright_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
)

// forHook reports a request that a hook makes.
func forHook(r *agenttest.Request) bool { return strings.Contains(r.SystemText(), "for a hook") }

// judged answers the agent's requests one after the other and those of hooks
// with a verdict.
func judged(t *testing.T, verdicts func(r *agenttest.Request) agenttest.Step, steps ...agenttest.Step) *agenttest.Server {
	t.Helper()
	var mu sync.Mutex
	return agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if forHook(r) {
			return verdicts(r)
		}
		mu.Lock()
		defer mu.Unlock()
		next := steps[0]
		steps = steps[1:]
		return next
	}))
}

func always(step agenttest.Step) func(*agenttest.Request) agenttest.Step {
	return func(*agenttest.Request) agenttest.Step { return step }
}

// ofHooks are the requests that hooks made.
func ofHooks(srv *agenttest.Server) (all []*agenttest.Request) {
	for _, r := range srv.Requests() {
		if forHook(r) {
			all = append(all, r)
		}
	}
	return all
}

// TestModelHooks: a model's answer decides on a call, on a result and on the
// end of a turn.
func TestModelHooks(t *testing.T) {
	conform.Covers(t, "H-36", "H-37", "H-39", "P-135")
	no, yes := agenttest.Text(`{"ok": false, "reason": "not on a Friday"}`), agenttest.Text(`Sure: {"ok": true}`)
	call := agenttest.Call("note", `{"text":"x"}`)
	for name, tt := range map[string]struct {
		event, more string
		answer      agenttest.Step
		steps       []agenttest.Step
		ran         bool
		told        string // the model; "": nothing, since the turn ended
		terminal    message.TerminalReason
		denials     int
		info        string // the user
	}{
		"yes":              {"PreToolUse", "", yes, []agenttest.Step{call, agenttest.Text("done")}, true, "noted 1", "completed", 0, ""},
		"no":               {"PreToolUse", "", no, []agenttest.Step{call}, false, "", message.TerminalHookStopped, 1, "not on a Friday"},
		"no, and go on":    {"PreToolUse", `,"continueOnBlock":true`, no, []agenttest.Step{call, agenttest.Text("done")}, false, "not on a Friday", "completed", 1, ""},
		"no word":          {"PreToolUse", "", agenttest.Text("Who knows."), []agenttest.Step{call, agenttest.Text("done")}, true, "noted 1", "completed", 0, `hook error`},
		"no model":         {"PreToolUse", "", agenttest.HTTPError(400, "invalid_request_error", "bad"), []agenttest.Step{call, agenttest.Text("done")}, true, "noted 1", "completed", 0, `hook error`},
		"result":           {"PostToolUse", "", no, []agenttest.Step{call}, true, "", message.TerminalHookStopped, 0, "not on a Friday"},
		"result, go on":    {"PostToolUse", `,"continueOnBlock":true`, no, []agenttest.Step{call, agenttest.Text("done")}, true, "noted 1", "completed", 0, ""},
		"batch":            {"PostToolBatch", "", no, []agenttest.Step{call}, true, "", message.TerminalHookStopped, 0, "not on a Friday"},
		"prompt":           {"UserPromptSubmit", "", no, nil, false, "", message.TerminalHookStopped, 0, "not on a Friday"},
		"permission":       {"PermissionRequest", "", no, []agenttest.Step{call, agenttest.Text("done")}, false, "Permission to use note was denied: no way to ask", "completed", 1, ""},
		"an agent says no": {"PreToolUse", `,"type":"agent"`, no, []agenttest.Step{call, agenttest.Text("done")}, false, "not on a Friday", "completed", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv := judged(t, always(tt.answer), tt.steps...)
			o := base(t, srv)
			var notes []string
			o.CustomTools = []turnwright.Tool{note(&notes)}
			if tt.event != "PermissionRequest" {
				o.AllowedTools = []string{"note"}
			}
			o.HookFiles = fileHooks(t, `{"`+tt.event+`":[{"hooks":[{"type":"prompt","prompt":"Is it fine? $ARGUMENTS"`+tt.more+`}]}]}`)
			out := query(t, "go", o)
			if out.result == nil || out.result.IsError || out.result.TerminalReason != tt.terminal || len(out.result.PermissionDenials) != tt.denials || (len(notes) == 1) != tt.ran {
				t.Fatalf("ran %v: %+v", notes, out.result)
			}
			if tt.told != "" {
				if text, isError := toolText(t, srv); !strings.HasPrefix(text, tt.told) || isError != (tt.told != "noted 1") {
					t.Errorf("the model is told %q, %v", text, isError)
				}
			}
			if infos := strings.Join(out.infos(), "\n"); !strings.Contains(infos, tt.info) || tt.info == "" && infos != "" {
				t.Errorf("the user is told %q", infos)
			}
			if tt.event == "PostToolUse" && tt.told != "" && !strings.Contains(srv.Last().UserText(), "hook feedback: not on a Friday") {
				t.Errorf("next to the result: %q", srv.Last().UserText())
			}
			asked := ofHooks(srv)
			if len(asked) != 1 {
				t.Fatalf("%d questions", len(asked))
			}
			if r := asked[0]; r.Model() != "claude-haiku-5-5" || !strings.HasPrefix(r.UserText(), `Is it fine? {"session_id":"`) || !strings.Contains(r.UserText(), `"hook_event_name":"`+tt.event+`"`) {
				t.Errorf("%s: %s", r.Model(), r.UserText())
			}
		})
	}
}

// TestModelHookAtStop: the reason becomes the next instruction, unless nothing
// that the agent does can help.
func TestModelHookAtStop(t *testing.T) {
	conform.Covers(t, "H-37", "H-38", "H-116")
	for name, tt := range map[string]struct {
		handler string
		first   string // the answer at the first end
		goesOn  bool
	}{
		"no":                {`{"type":"prompt","prompt":"x"}`, `{"ok":false,"reason":"Write the test."}`, true},
		"impossible":        {`{"type":"prompt","prompt":"x"}`, `{"ok":false,"reason":"Write the test.","impossible":true}`, false},
		"agent":             {`{"type":"agent","prompt":"x"}`, `{"ok":false,"reason":"Write the test."}`, true},
		"agent, impossible": {`{"type":"agent","prompt":"x"}`, `{"ok":false,"reason":"Write the test.","impossible":true}`, true},
	} {
		answers := []string{tt.first, `{"ok":true}`}
		srv := judged(t, func(*agenttest.Request) agenttest.Step {
			next := agenttest.Text(answers[0])
			answers = answers[1:]
			return next
		}, agenttest.Text("one"), agenttest.Text("two"))
		o := base(t, srv)
		o.HookFiles = fileHooks(t, `{"Stop":[{"hooks":[`+tt.handler+`]}]}`)
		out := query(t, "go", o)
		if want := map[bool]string{true: "two", false: "one"}[tt.goesOn]; !out.resultOK() || *out.result.Result != want {
			t.Errorf("%s: %+v", name, out.result)
		}
		var told bool
		for _, r := range srv.Requests() {
			told = told || !forHook(r) && strings.Contains(r.UserText(), "Write the test.")
		}
		if told != tt.goesOn {
			t.Errorf("%s: told %v", name, told)
		}
	}
}

// TestModelHookCosts: what hooks ask is on the bill, also what they ask last,
// and the budget ends a run that they use up.
func TestModelHookCosts(t *testing.T) {
	conform.Covers(t, "H-36", "L-222")
	million := agenttest.Usage(agenttest.Text(`{"ok":true}`), 1_000_000, 0, 0, 0, 0)
	run := func(limit *float64, handler string, env ...string) (outcome, *agenttest.Server) {
		srv := judged(t, always(million), agenttest.Usage(agenttest.Text("one"), 1000, 0, 0, 0, 0))
		o := base(t, srv)
		o.MaxBudgetUSD = limit
		if len(env) > 0 {
			o.Env["ANTHROPIC_DEFAULT_HAIKU_MODEL"] = env[0]
		}
		o.HookFiles = fileHooks(t, `{"Stop":[{"hooks":[`+handler+`]}]}`)
		return query(t, "go", o), srv
	}
	for model, want := range map[string]float64{"claude-haiku-4-5": 1, "claude-opus-4-5": 5} {
		for _, typ := range []string{"prompt", "agent"} {
			out, _ := run(nil, `{"type":"`+typ+`","prompt":"x","model":"`+model+`"}`)
			if !out.resultOK() || *out.result.TotalCostUSD != want+0.003 || out.result.ModelUsage[model].InputTokens != 1_000_000 || out.result.ModelUsage["claude-sonnet-4-5"].InputTokens != 1000 {
				t.Errorf("%s %s: %+v", typ, model, out.result)
			}
		}
	}
	out, srv := run(new(0.5), `{"type":"prompt","prompt":"x"}`)
	if out.result.Subtype != turnwright.ErrorMaxBudgetUSD || *out.result.TotalCostUSD != 0.503 || len(srv.Requests()) != 2 {
		t.Errorf("%+v", out.result)
	}
	// A model without a price cannot be kept within a budget, so it is not asked.
	out, srv = run(new(0.5), `{"type":"prompt","prompt":"x","model":"unheard-of"}`)
	if !out.resultOK() || len(srv.Requests()) != 1 || !strings.Contains(strings.Join(out.infos(), "\n"), `"unheard-of" has no price`) {
		t.Errorf("%+v, %v", out.result, out.infos())
	}
	// The small model is the one that the user wants it to be.
	if _, srv = run(nil, `{"type":"prompt","prompt":"x"}`, "claude-sonnet-4-0"); ofHooks(srv)[0].Model() != "claude-sonnet-4-0" {
		t.Errorf("%s", ofHooks(srv)[0].Model())
	}
}

// TestAgentHook: it may look at files under the rules of the session, and do
// nothing else.
func TestAgentHook(t *testing.T) {
	conform.Covers(t, "H-38", "H-39")
	dir := t.TempDir()
	for name, text := range map[string]string{"open.txt": "the open text", "secret.txt": "the secret text"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside.txt")
	if err := os.WriteFile(outside, []byte("the outside text"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(path string) agenttest.Step {
		return agenttest.Call("Read", string(mustJSON(map[string]string{"file_path": path})))
	}
	looks := []agenttest.Step{
		read(filepath.Join(dir, "open.txt")), read(filepath.Join(dir, "secret.txt")), read(outside),
		agenttest.Call("Bash", `{"command":"touch made"}`), agenttest.Text(`{"ok":false,"reason":"the secret is there"}`),
	}
	srv := judged(t, func(r *agenttest.Request) agenttest.Step { return looks[r.Turn()] }, agenttest.Call("note", `{"text":"x"}`), agenttest.Text("done"))
	o := base(t, srv)
	var notes []string
	o.CWD, o.CustomTools, o.AllowedTools, o.DisallowedTools = dir, []turnwright.Tool{note(&notes)}, []string{"note", "Bash"}, []string{"Read(secret.txt)"}
	o.Hooks = on(hook.PreToolUse, hook.On(func(_ context.Context, in *hook.PreToolUseInput) (hook.Output, error) {
		if in.ToolName != "note" {
			t.Errorf("a hook is told of the hook's own %s", in.ToolName)
		}
		return hook.Output{}, nil
	}))
	o.HookFiles = fileHooks(t, `{"PreToolUse":[{"matcher":"note","hooks":[{"type":"agent","prompt":"Look."}]}]}`)
	out := query(t, "go", o)
	if len(notes) != 0 || !out.resultOK() || out.result.NumTurns != 2 {
		t.Errorf("%v: %+v", notes, out.result)
	}
	if text, _ := toolText(t, srv); text != "the secret is there" {
		t.Errorf("%q", text)
	}
	asked := ofHooks(srv)
	if len(asked) != len(looks) {
		t.Fatalf("%d requests", len(asked))
	}
	tools := slices.Sorted(slices.Values(asked[0].ToolNames()))
	if !slices.Equal(tools, []string{"Glob", "Grep", "Read"}) {
		t.Errorf("tools %v", tools)
	}
	for i, want := range []string{"the open text", "deny rule", "no way to ask", "Bash"} {
		res := asked[i+1].LastToolResults()[0]
		if !strings.Contains(res.Text, want) || res.IsError != (i > 0) || i > 0 && strings.Contains(res.Text, " text") {
			t.Errorf("look %d: %+v", i, res)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("the hook ran a command")
	}
	// What answers have changed since the start holds for it too.
	srv = judged(t, func(r *agenttest.Request) agenttest.Step {
		return []agenttest.Step{read(filepath.Join(dir, "open.txt")), agenttest.Text(`{"ok":true}`)}[r.Turn()]
	}, agenttest.Call("Bash", `{"command":"expr 1"}`), agenttest.Call("note", `{"text":"x"}`), agenttest.Text("done"))
	asks := o
	asks.Env, asks.Hooks, asks.AllowedTools = base(t, srv).Env, nil, []string{"note"}
	asks.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		return turnwright.PermissionAnswer{Allow: true, Updates: []turnwright.PermissionUpdate{{
			Type: permission.UpdateAddRules, Behavior: "deny", Rules: []permission.RuleValue{{ToolName: "Read", RuleContent: "open.txt"}},
		}}}, nil
	}
	query(t, "go", asks)
	if asked := ofHooks(srv); len(asked) != 2 || len(notes) != 1 || strings.Contains(asked[1].LastToolResults()[0].Text, "the open text") {
		t.Errorf("%d requests, %v", len(asked), notes)
	}
	// Without end it is ended, and decides nothing.
	notes = nil
	srv = judged(t, func(r *agenttest.Request) agenttest.Step { return agenttest.Call("Glob", `{"pattern":"*"}`) }, agenttest.Call("note", `{"text":"x"}`), agenttest.Text("done"))
	o = base(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
	o.HookFiles = fileHooks(t, `{"PreToolUse":[{"hooks":[{"type":"agent","prompt":"Look.","timeout":600}]}]}`)
	out = query(t, "go", o)
	if len(notes) != 1 || !out.resultOK() || len(ofHooks(srv)) > 51 || !strings.Contains(strings.Join(out.infos(), "\n"), "error_max_turns") {
		t.Errorf("%d requests, %v: %+v", len(ofHooks(srv)), out.infos(), out.result)
	}
}

// TestHTTPHooks: hooks of settings ask a server, with what settings let them
// say and where settings let them ask.
func TestHTTPHooks(t *testing.T) {
	conform.Covers(t, "H-32", "H-33", "H-34", "H-39")
	var mu sync.Mutex
	var got []string
	check := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var in hook.PreToolUseInput
		_ = json.NewDecoder(r.Body).Decode(&in)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, in.ToolName+" "+r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/deny":
			_, _ = io.WriteString(rw, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"the server says no"}}`)
		case "/moved":
			http.Redirect(rw, r, "/deny", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(check.Close)
	for name, tt := range map[string]struct {
		path, limits string
		ran          bool
		got          string // "": nothing
		warned       string
	}{
		"denied":         {"/deny", "", false, "note Bearer t0/u0", ""},
		"fine":           {"/", "", true, "note Bearer t0/u0", ""},
		"no redirect":    {"/moved", "", true, "note Bearer t0/u0", ""},
		"allowed":        {"/deny", `"allowedHttpHookUrls":["` + check.URL + `/d*"],`, false, "note Bearer t0/u0", ""},
		"not allowed":    {"/", `"allowedHttpHookUrls":["` + check.URL + `/d*"],`, true, "", "allowedHttpHookUrls"},
		"none allowed":   {"/deny", `"allowedHttpHookUrls":[],`, true, "", "allowedHttpHookUrls"},
		"fewer names":    {"/deny", `"httpHookAllowedEnvVars":["TOKEN","OTHER"],`, false, "note Bearer t0/", "httpHookAllowedEnvVars"},
		"a broken value": {"/deny", `"env":7,"allowedHttpHookUrls":[],`, true, "", "allowedHttpHookUrls"},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			var notes, warned []string
			var lines sync.Mutex
			out, _ := hooked(t, &notes, "x", func(o *turnwright.Options) {
				o.AllowedTools = []string{"note"}
				o.Env["TOKEN"], o.Env["USER_ID"], o.Env["HIDDEN"] = "t0", "u0", "h0"
				o.Stderr = func(line string) {
					lines.Lock()
					defer lines.Unlock()
					warned = append(warned, line)
				}
				put(t, projectFile(o), `{`+tt.limits+`"hooks":{"PreToolUse":[{"matcher":"note","hooks":[
					{"type":"http","url":"`+check.URL+tt.path+`","headers":{"Authorization":"Bearer $TOKEN/${USER_ID}$HIDDEN"},"allowedEnvVars":["TOKEN","USER_ID"]}]}]}}`)
			})
			lines.Lock()
			defer lines.Unlock()
			told := strings.Join(append(warned, out.infos()...), "\n")
			if (len(notes) == 1) != tt.ran || strings.Join(got, ",") != tt.got || !strings.Contains(told, tt.warned) {
				t.Errorf("ran %v, asked %q, told %q", notes, got, told)
			}
			if name == "no redirect" && !strings.Contains(told, "status 307") {
				t.Errorf("told %q", told)
			}
		})
	}
}
