package turnwright_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// explained runs a session to its end and explains it from its transcript.
func explained(t *testing.T, o turnwright.Options, id string) *turnwright.Explanation {
	t.Helper()
	e, err := turnwright.ExplainSession(t.Context(), id, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExplainEndings explains a run of each ending that a run can have: what
// decided, and what the result said.
func TestExplainEndings(t *testing.T) {
	conform.Covers(t, "L-58", "L-60")
	call := agenttest.Call("echo", `{"text":"x"}`)
	stop := func(ev hook.Event) hook.Table { return on(ev, answers(hook.Output{Stop: true, StopReason: "enough"})) }
	three := func(s agenttest.Step) agenttest.Option { return agenttest.Forever(s) }
	for name, tt := range map[string]struct {
		server      agenttest.Option
		change      func(*turnwright.Options)
		path        turnwright.StopPath
		field       string
		value       string // "": not looked at
		limit       string
		toolTurns   int
		responses   int
		advice, why string
	}{
		"answer": {
			server: agenttest.Script(call, agenttest.Text("done")),
			path:   turnwright.StopNatural, field: "stop_reason", value: "end_turn", toolTurns: 1, responses: 2, why: "without asking for a tool, after 1 tool turn",
		},
		"refusal": {
			server: agenttest.Script(call, agenttest.Refusal()), path: turnwright.StopRefused, field: "stop_reason", value: "refusal", responses: 2, toolTurns: 1, advice: "--fork-session",
		},
		"cut off": {
			server: three(agenttest.StopReason(agenttest.Text("abc"), "max_tokens")), path: turnwright.StopCutOff, field: "stop_reason", value: "max_tokens", responses: 4, advice: "Split",
		},
		"cap": {
			server: three(call), change: func(o *turnwright.Options) { o.MaxTurns = new(2) },
			path: turnwright.StopCap, field: "max_turns", value: "2", limit: "2", toolTurns: 2, responses: 3, advice: "--max-turns 7", why: "max_turns 2",
		},
		"cap of nothing": {
			server: three(call), change: func(o *turnwright.Options) { o.MaxTurns = new(1) },
			path: turnwright.StopCap, field: "max_turns", value: "1", limit: "1", toolTurns: 1, responses: 2,
		},
		"budget": {
			server: three(agenttest.Usage(call, 100_000, 1, 0, 0, 0)), change: func(o *turnwright.Options) { o.MaxBudgetUSD = new(0.5) },
			path: turnwright.StopBudget, field: "max_budget_usd", value: "0.60003", limit: "0.5", toolTurns: 1, responses: 2, advice: "--max-budget-usd 1", why: "$0.60003 of $0.5",
		},
		"hook": {
			server: three(agenttest.Text("hi")), change: func(o *turnwright.Options) { o.Hooks = stop(hook.Stop) },
			path: turnwright.StopHook, field: "continue", value: "Stop hook: enough", responses: 1, why: "Stop hook: enough",
		},
		"hook before": {
			server: three(agenttest.Text("hi")), change: func(o *turnwright.Options) { o.Hooks = stop(hook.UserPromptSubmit) },
			path: turnwright.StopHook, field: "continue", value: "UserPromptSubmit hook: enough", responses: 0,
		},
		"denial that interrupts": {
			server: three(agenttest.Call("note", `{"text":"x"}`)), change: func(o *turnwright.Options) {
				o.CustomTools = []turnwright.Tool{note(new([]string))}
				o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
					return turnwright.PermissionAnswer{Message: "no", Interrupt: true}, nil
				}
			},
			path: turnwright.StopInterrupted, field: "approval callback", value: "while tools ran", responses: 1, advice: "denied by the approval callback",
		},
		"key": {
			server: three(agenttest.HTTPError(401, "authentication_error", "invalid x-api-key")), path: turnwright.StopAPIError, field: "api_error_status", value: "401", advice: "ANTHROPIC_API_KEY",
		},
		"bad request": {
			server: three(agenttest.HTTPError(400, "invalid_request_error", "no")), path: turnwright.StopAPIError, field: "api_error_status", value: "400", advice: "refused the request",
		},
		"credit": {
			server: three(agenttest.HTTPError(402, "billing_error", "no credit")), path: turnwright.StopAPIError, field: "api_error_status", value: "402", advice: "credit",
		},
		"too large": {
			server: three(agenttest.HTTPError(413, "request_too_large", "Request exceeds the maximum size")), path: turnwright.StopAPIError, field: "api_error_status", value: "413", advice: "Send less",
		},
		"no model": {
			server: three(agenttest.HTTPError(404, "not_found_error", "model: x")), path: turnwright.StopModelError, field: "model", advice: "--model",
		},
		"window": {
			server: three(agenttest.HTTPError(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")), path: turnwright.StopContext, field: "context_tokens", advice: "larger window",
		},
		"image": {
			server: three(agenttest.HTTPError(400, "invalid_request_error", "Could not process image")), path: turnwright.StopImage, field: "api_error_status", value: "400", advice: "shrink",
		},
		"malformed": {
			server: three(agenttest.Call("nothing", `{}`)), path: turnwright.StopMalformed, field: "malformed responses in a row", value: "3", limit: "3", responses: 3, advice: "simpler tools", toolTurns: 2,
		},
		"broken stream": {
			server: three(agenttest.StreamError(agenttest.Blocks(agenttest.Text("part"), agenttest.Text("more")), agenttest.AfterBlocks(1), "api_error", "oops")),
			path:   turnwright.StopAPIError, field: "stream", value: "broke after part of the answer", responses: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := onDisk(t, agenttest.NewServer(t, agenttest.NoValidate(), tt.server))
			o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
			if tt.change != nil {
				tt.change(&o)
			}
			out := query(t, "do it", o)
			e := explained(t, o, out.result.SessionID)
			if len(e.UserTurns) != 1 || e.Foreign || e.Skipped > 0 || len(e.Waiting) > 0 {
				t.Fatalf("%+v", e)
			}
			u, r := e.UserTurns[0], out.result
			if u.Path != tt.path || u.Field != tt.field || tt.value != "" && u.Value != tt.value || u.Limit != tt.limit && tt.limit != "" {
				t.Errorf("%s, decided by %s = %q, limit %q", u.Path, u.Field, u.Value, u.Limit)
			}
			if u.Subtype != r.Subtype || u.TerminalReason != r.TerminalReason || u.IsError != r.IsError || !slices.Equal(u.Errors, r.Errors) ||
				u.ToolTurns != r.ToolTurns || math.Abs(u.CostUSD-*r.TotalCostUSD) > 1e-9 || u.APIMS != r.DurationAPIMS {
				t.Errorf("%+v\nis not the result's %+v", u, r)
			}
			var sum float64
			var used message.Usage
			for _, resp := range u.Responses {
				sum += resp.CostUSD
				used.Add(resp.Usage)
			}
			if math.Abs(sum-u.CostUSD) > 1e-9 || u.Path != turnwright.StopBudget && used.InputTokens != r.Usage.InputTokens || u.Path != turnwright.StopBudget && used.OutputTokens != r.Usage.OutputTokens {
				t.Errorf("the responses cost %v and %+v, the turn %v and %+v", sum, used, u.CostUSD, r.Usage)
			}
			if u.ToolTurns != tt.toolTurns || len(u.Responses) != tt.responses {
				t.Errorf("%d tool turns in %d responses", u.ToolTurns, len(u.Responses))
			}
			if u.Prompt != "do it" && tt.path != turnwright.StopHook || u.Begun.IsZero() || u.Ended.Before(u.Begun) {
				t.Errorf("%q from %v to %v", u.Prompt, u.Begun, u.Ended)
			}
			if !strings.Contains(strings.Join(u.Next, "\n"), tt.advice) || !strings.Contains(u.Why, tt.why) || !strings.HasSuffix(u.Why, ".") {
				t.Errorf("why: %s\nnext: %q", u.Why, u.Next)
			}
			var text strings.Builder
			if err := e.Text(&text, true); err != nil || !strings.Contains(text.String(), u.Why) {
				t.Errorf("%v: %s", err, text.String())
			}
		})
	}
}

// TestExplainCalls: decision, outcome and time of each call, and what was denied
// turns into advice.
func TestExplainCalls(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Blocks(
		agenttest.Call("echo", `{"text":"fine"}`), agenttest.Call("note", `{"text":"fail"}`), agenttest.Call("note", `{"text":"ok"}`),
		agenttest.Call("Write", `{"file_path":"/nowhere/x","content":"y"}`),
	), agenttest.Text("done")))
	o := onDisk(t, srv)
	var notes []string
	o.CustomTools, o.AllowedTools = []turnwright.Tool{echo(), note(&notes)}, []string{"echo", "note"}
	out := query(t, "go", o)
	u := explained(t, o, out.result.SessionID).UserTurns[0]
	var got []string
	for _, c := range u.Responses[0].Calls {
		got = append(got, c.Name+" "+string(c.Outcome))
		if c.Reason == "" || c.Result == "" || !strings.HasPrefix(c.Input, "{") {
			t.Errorf("%+v", c)
		}
	}
	if want := []string{"echo ok", "note error", "note ok", "Write denied"}; !slices.Equal(got, want) || u.Responses[0].ToolTurn != 1 || u.Responses[1].ToolTurn != 0 {
		t.Errorf("%q in %+v", got, u.Responses)
	}
	if next := strings.Join(u.Next, "\n"); !strings.Contains(next, "1 call of Write denied (") || !strings.Contains(next, "/nowhere/x") {
		t.Errorf("next: %s", next)
	}
}

// TestExplainSessionOfSeveralTurns: each message has its own ending and its own
// cost, also behind a resume, where totals start anew; what still waits is told.
func TestExplainSessionOfSeveralTurns(t *testing.T) {
	o := onDisk(t, agenttest.NewServer(t, agenttest.Forever(agenttest.Usage(agenttest.Text("hi"), 1000, 10, 0, 0, 0))))
	s := start(t, o)
	send(t, s, "one")
	send(t, s, " ")
	send(t, s, "two")
	first := readAll(t, s)
	o.Resume = s.ID()
	third := query(t, "three", o)
	e := explained(t, o, s.ID())
	var got []string
	for _, u := range e.UserTurns {
		got = append(got, u.Prompt+"="+string(u.Path))
	}
	if want := []string{"one=natural", "=local", "two=natural", "three=natural"}; !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	each := *third.result.TotalCostUSD
	if math.Abs(*first.results()[2].TotalCostUSD-2*each) > 1e-9 {
		t.Fatal("the costs of the run are not as expected")
	}
	for i, want := range []float64{each, 0, each, each} {
		if math.Abs(e.UserTurns[i].CostUSD-want) > 1e-9 {
			t.Errorf("message %d cost %v, want %v", i+1, e.UserTurns[i].CostUSD, want)
		}
	}
	raw, err := json.Marshal(e)
	if err != nil || strings.Contains(string(raw), `"Path"`) {
		t.Errorf("%v %s", err, raw)
	}
}

// TestExplainCut: a journal that ends anywhere is explained; a turn without an end
// is unfinished, with what its process was at.
func TestExplainCut(t *testing.T) {
	conform.Covers(t, "S-84")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("note", `{"text":"x"}`), agenttest.Text("done")))
	o := onDisk(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(new([]string))}, []string{"note"}
	out := query(t, "go", o)
	var lines [][]byte
	finder, info := stored(t, o, out.result.SessionID)
	for line, err := range finder.Read(t.Context(), info) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	seen := map[string]bool{}
	for n := range len(lines) + 1 {
		e, err := turnwright.Explain(info.ID, func(yield func([]byte, error) bool) {
			for _, l := range lines[:n] {
				if !yield(l, nil) {
					return
				}
			}
			yield([]byte(`{"type":"us`), &session.LineError{Line: n + 1, Err: errors.New("torn")})
		})
		if err != nil || e.Skipped != 1 {
			t.Fatalf("%d lines: %+v, %v", n, e, err)
		}
		if len(e.UserTurns) == 0 {
			seen["nothing"] = true
			if n > 2 && len(e.Waiting) == 0 {
				t.Errorf("%d lines: the prompt is not told: %+v", n, e)
			}
			continue
		}
		u := e.UserTurns[0]
		seen[string(u.Path)+" "+u.Value] = true
		for _, r := range u.Responses {
			for _, c := range r.Calls {
				seen["call "+string(c.Outcome)] = true
			}
		}
	}
	for _, want := range []string{"nothing", "unfinished admit", "unfinished model", "unfinished tools", "natural end_turn", "call open", "call ok"} {
		if !seen[want] {
			t.Errorf("never %q in %v", want, seen)
		}
	}
}

// stored finds a session in the options' store.
func stored(t *testing.T, o turnwright.Options, id string) (session.Finder, session.Info) {
	t.Helper()
	path := transcript(t, o, id)
	finder, err := file.New(file.Config{ConfigDir: o.Env["CLAUDE_CONFIG_DIR"]})
	if err != nil {
		t.Fatal(err)
	}
	info, err := finder.Find(t.Context(), id, o.CWD)
	if err != nil || !strings.Contains(path, filepath.Base(info.Project)) {
		t.Fatal(info, err)
	}
	return finder, info
}
