package turnwright_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/session"
)

// TestOptionTable has each field of Options exactly once: in the table of
// effects, with a test that shows what the option does, or with the letter of
// the piece of work that brings it in its struct tag "later"; until then it is
// an error that names it, and nothing is sent or written.
func TestOptionTable(t *testing.T) {
	effects := map[string]func(*testing.T){
		"SystemPrompt": func(t *testing.T) {
			conform.Covers(t, "O-10", "O-11", "O-13", "O-19", "O-20")
			prompt := filepath.Join(t.TempDir(), "prompt")
			if err := os.WriteFile(prompt, []byte("from a file"), 0o644); err != nil {
				t.Fatal(err)
			}
			for want, p := range map[string]*turnwright.SystemPrompt{
				"You are an agent":  nil,
				"mine":              {Text: new("mine")},
				"from a file":       {File: prompt},
				"Working directory": {Coding: true},
				"mine\n\nand more":  {Text: new("mine"), Append: "and more"},
			} {
				r := request(t, func(o *turnwright.Options) { o.SystemPrompt = p })
				if !strings.Contains(r.SystemText(), want) || p != nil && p.Text != nil && strings.Contains(r.SystemText(), "agent") {
					t.Errorf("system prompt %q has no %q", r.SystemText(), want)
				}
			}
			if r := request(t, func(o *turnwright.Options) { o.SystemPrompt = &turnwright.SystemPrompt{Text: new("")} }); len(r.System()) != 0 {
				t.Errorf("the empty prompt was sent as %q", r.SystemText())
			}
			testExcludeDynamic(t)
			refused(t, "SystemPrompt.File", "/no/such/file", func(o *turnwright.Options) { o.SystemPrompt = &turnwright.SystemPrompt{File: "/no/such/file"} })
			refused(t, "SystemPrompt", prompt, func(o *turnwright.Options) { o.SystemPrompt = &turnwright.SystemPrompt{File: prompt, Text: new("x")} })
		},
		"MaxTurns": func(t *testing.T) {
			conform.Covers(t, "O-2", "O-22", "L-23", "L-29", "L-33", "L-202")
			for _, tt := range []struct {
				cap      *int
				requests int
				subtype  message.Subtype
				turns    int
			}{
				{nil, 4, turnwright.Success, 4},
				{new(3), 4, turnwright.Success, 4},
				{new(2), 3, turnwright.ErrorMaxTurns, 2},
				{new(1), 2, turnwright.ErrorMaxTurns, 1},
				{new(0), 1, turnwright.Success, 1},
			} {
				srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
					if r.Turn() < 3 && !strings.Contains(string(r.Field("tool_choice")), "none") {
						return agenttest.Call("echo", `{"text":"x"}`)
					}
					return agenttest.Text("done")
				}))
				o := base(t, srv)
				o.CustomTools, o.AllowedTools, o.MaxTurns = []turnwright.Tool{echo()}, []string{"echo"}, tt.cap
				out := query(t, "go", o)
				if out.result.Subtype != tt.subtype || out.result.NumTurns != tt.turns || srv.Count() != tt.requests {
					t.Errorf("cap %v: %s after %d turns and %d requests", tt.cap, out.result.Subtype, out.result.NumTurns, srv.Count())
				}
				if tt.subtype == turnwright.ErrorMaxTurns && (out.err == nil || !strings.Contains(out.err.Error(), "Reached maximum number of turns")) {
					t.Errorf("the iterator's error: %v", out.err)
				}
			}
			refused(t, "MaxTurns", "-1", func(o *turnwright.Options) { o.MaxTurns = new(-1) })
		},
		"MaxBudgetUSD": func(t *testing.T) {
			conform.Covers(t, "O-23", "L-52", "L-224")
			for _, x := range []float64{0, -1, math.NaN(), math.Inf(1)} {
				refused(t, "MaxBudgetUSD", fmt.Sprint(x), func(o *turnwright.Options) { o.MaxBudgetUSD = &x })
			}
			refused(t, "MaxBudgetUSD", "no-such-model", func(o *turnwright.Options) { o.MaxBudgetUSD, o.Model = new(1.0), "no-such-model" })
			out := answer(t, agenttest.Usage(agenttest.Text("dear"), 1000000, 0, 0, 0, 0), func(o *turnwright.Options) { o.MaxBudgetUSD = new(0.5) })
			if out.result.Subtype != turnwright.ErrorMaxBudgetUSD || *out.result.TotalCostUSD < 0.5 {
				t.Errorf("%+v", out.result)
			}
		},
		"Model": func(t *testing.T) {
			conform.Covers(t, "O-25", "L-113")
			for want, set := range map[string]func(*turnwright.Options){
				"claude-opus-4-1":                        func(o *turnwright.Options) { o.Model, o.Env["ANTHROPIC_MODEL"] = "claude-opus-4-1", "other" },
				"some-gateway/x1":                        func(o *turnwright.Options) { o.Model, o.Env["ANTHROPIC_MODEL"] = "", "some-gateway/x1" },
				model.DefaultCatalog().Resolve("haiku"):  func(o *turnwright.Options) { o.Model = "haiku" },
				model.DefaultCatalog().Resolve("sonnet"): func(o *turnwright.Options) { o.Model = "" },
			} {
				if r := request(t, set); r.Model() != want {
					t.Errorf("model %q, want %q", r.Model(), want)
				}
			}
		},
		"Betas": func(t *testing.T) {
			conform.Covers(t, "O-31")
			r := request(t, func(o *turnwright.Options) { o.Betas = []string{"one-2026", "two-2026"} })
			if got := r.Header.Get("Anthropic-Beta"); got != "one-2026,two-2026" {
				t.Errorf("beta header %q", got)
			}
		},
		"Tools": func(t *testing.T) {
			conform.Covers(t, "O-33", "T-7", "M-18")
			for want, tools := range map[string][]string{"Bash Edit Glob Grep NotebookEdit Read TaskOutput TaskStop Write": nil, "": {}, "Read": {"Read", "NoSuchTool"}} {
				var lines []string
				r := request(t, func(o *turnwright.Options) {
					o.Tools, o.Stderr = tools, func(line string) { lines = append(lines, line) }
				})
				if told := len(lines) == 1 && strings.Contains(lines[0], "NoSuchTool") && strings.Contains(lines[0], "Edit"); told != slices.Contains(tools, "NoSuchTool") {
					t.Errorf("tools %q: warned %q", tools, lines)
				}
				if got := strings.Join(r.ToolNames(), " "); got != want {
					t.Errorf("tools %q: %q offered", tools, got)
				}
			}
		},
		"CustomTools": func(t *testing.T) {
			r := request(t, func(o *turnwright.Options) { o.CustomTools, o.Tools = []turnwright.Tool{echo()}, []string{} })
			if got := strings.Join(r.ToolNames(), " "); got != "echo" {
				t.Errorf("offered: %q", got)
			}
			refused(t, "CustomTools", "echo", func(o *turnwright.Options) { o.CustomTools = []turnwright.Tool{echo(), echo()} })
			refused(t, "CustomTools", "entry 0", func(o *turnwright.Options) { o.CustomTools = []turnwright.Tool{nil} })
		},
		"Hooks": func(t *testing.T) {
			conform.Covers(t, "O-42", "H-2", "H-3")
			var notes []string
			deny := func(_ context.Context, in hook.Input, _ string) (hook.Output, error) {
				return hook.Output{Permission: hook.Deny, PermissionReason: "no " + in.Subject()}, nil
			}
			out := call(t, &notes, func(o *turnwright.Options) {
				o.AllowedTools, o.Hooks = []string{"note"}, hook.Table{hook.PreToolUse: {{Matcher: "note", Hooks: []hook.Func{deny}}}}
			})
			if len(notes) != 0 || len(out.result.PermissionDenials) != 1 {
				t.Errorf("notes %q", notes)
			}
			for want, table := range map[string]hook.Table{
				"preToolUse": {"preToolUse": {{Hooks: []hook.Func{deny}}}}, "nil": {hook.Stop: {{Hooks: []hook.Func{nil}}}},
				"negative": {hook.Stop: {{Timeout: -1}}}, "(?=x)": {hook.PreToolUse: {{Matcher: "(?=x)"}}},
			} {
				refused(t, "Hooks", want, func(o *turnwright.Options) { o.Hooks = table })
			}
		},
		"HookFiles": func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("needs sh")
			}
			var notes []string
			file, _ := hook.Parse(hook.SourceUser, "settings.json", json.RawMessage(`{"PreToolUse":[{"hooks":[{"type":"command","command":"echo no >&2; exit 2"}]}]}`))
			call(t, &notes, func(o *turnwright.Options) { o.AllowedTools, o.HookFiles = []string{"note"}, []hook.File{file} })
			if len(notes) != 0 {
				t.Errorf("notes %q", notes)
			}
		},
		"IncludeHookEvents": func(t *testing.T) {
			conform.Covers(t, "O-93", "M-84")
			for _, show := range []bool{false, true} {
				out := answer(t, agenttest.Text("x"), func(o *turnwright.Options) {
					o.IncludeHookEvents = show
					o.Hooks = hook.Table{hook.Stop: {{Hooks: []hook.Func{func(context.Context, hook.Input, string) (hook.Output, error) { return hook.Output{}, nil }}}}}
				})
				if got := strings.Contains(out.shape(), "hook_started hook_response result"); got != show {
					t.Errorf("shown %v: %s", show, out.shape())
				}
			}
		},
		"AllowedTools": func(t *testing.T) {
			conform.Covers(t, "O-34", "L-142", "T-9")
			for _, allowed := range []bool{false, true} {
				var notes []string
				out := call(t, &notes, func(o *turnwright.Options) {
					if allowed {
						o.AllowedTools = []string{"note"}
					}
				})
				if (len(notes) == 1) != allowed || (len(out.result.PermissionDenials) == 0) != allowed {
					t.Errorf("allowed %v: notes %q, denials %v", allowed, notes, out.result.PermissionDenials)
				}
			}
			// A rule with a specifier approves what it covers and nothing else.
			for command, runs := range map[string]bool{`printf x > "$OUT"`: false, "expr 1 + 1": true, "expr 1 + 1; expr 2": false} {
				out := commandRun(t, command, func(o *turnwright.Options) { o.AllowedTools = []string{"Bash(expr 1 *)"} })
				if (len(out.result.PermissionDenials) == 0) != runs {
					t.Errorf("%q: denials %v", command, out.result.PermissionDenials)
				}
			}
			refused(t, "AllowedTools", "Agent(x)", func(o *turnwright.Options) { o.AllowedTools = []string{"Agent(x)"} })
			refused(t, "AllowedTools", "Bash(:*)", func(o *turnwright.Options) { o.AllowedTools = []string{"Bash(:*)"} })
		},
		"DisallowedTools": func(t *testing.T) {
			conform.Covers(t, "O-35", "T-10", "M-18")
			r := request(t, func(o *turnwright.Options) {
				o.DisallowedTools, o.AllowedTools = []string{"Bash"}, []string{"Bash"}
			})
			if got := strings.Join(r.ToolNames(), " "); got != "Edit Glob Grep NotebookEdit Read TaskOutput TaskStop Write" {
				t.Errorf("offered: %q", got)
			}
			// A rule with a specifier leaves the tool there and denies in every mode.
			r = request(t, func(o *turnwright.Options) { o.DisallowedTools = []string{"Bash(expr *)"} })
			if got := strings.Join(r.ToolNames(), " "); !strings.Contains(got, "Bash") {
				t.Errorf("offered: %q", got)
			}
			out := commandRun(t, "true && expr 1", func(o *turnwright.Options) {
				o.DisallowedTools, o.Env["IS_SANDBOX"] = []string{"Bash(expr *)"}, "1"
				o.PermissionMode, o.AllowDangerouslySkipPermissions = turnwright.ModeBypassPermissions, true
			})
			if len(out.result.PermissionDenials) != 1 {
				t.Errorf("denials %v", out.result.PermissionDenials)
			}
		},
		"AddDirs": func(t *testing.T) {
			conform.Covers(t, "O-71", "P-96", "P-97", "P-99", "P-100")
			more := t.TempDir()
			if err := os.WriteFile(filepath.Join(more, "f.txt"), []byte("text of f\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, added := range []bool{false, true} {
				for _, step := range []agenttest.Step{
					agenttest.Call("Read", string(mustJSON(map[string]string{"file_path": filepath.Join(more, "f.txt")}))),
					agenttest.Call("Bash", string(mustJSON(map[string]string{"command": "cat " + filepath.Join(more, "f.txt")}))),
				} {
					srv := agenttest.NewServer(t, agenttest.Script(step, agenttest.Text("done")))
					o := base(t, srv)
					if added {
						o.AddDirs = []string{more}
					}
					out := query(t, "go", o)
					if text := srv.Last().LastToolResults()[0].Text; strings.Contains(text, "text of f") != added || (len(out.result.PermissionDenials) == 0) != added {
						t.Errorf("added %v: %q, denials %v", added, text, out.result.PermissionDenials)
					}
				}
			}
			refused(t, "AddDirs", "/no/such/dir", func(o *turnwright.Options) { o.AddDirs = []string{"/no/such/dir"} })
			refused(t, "AddDirs", "f.txt", func(o *turnwright.Options) { o.AddDirs = []string{filepath.Join(more, "f.txt")} })
			refused(t, "AddDirs", `""`, func(o *turnwright.Options) { o.AddDirs = []string{""} })
		},
		"MemoryFiles": func(t *testing.T) {
			conform.Covers(t, "C-51")
			for want, names := range map[string][]string{"": nil, "for agents": {"CLAUDE.md", "AGENTS.md"}} {
				r := request(t, func(o *turnwright.Options) {
					o.MemoryFiles = names
					putIn(t, o.CWD, "AGENTS.md", "for agents")
				})
				if got := r.FirstUserText(); !strings.Contains(got, want) || want == "" && got != "go" {
					t.Errorf("names %q: %q", names, got)
				}
			}
			for _, name := range []string{"", "..", "docs/CLAUDE.md"} {
				refused(t, "MemoryFiles", name, func(o *turnwright.Options) { o.MemoryFiles = []string{name} })
			}
		},
		"ReadBeforeEdit": testReadBeforeEdit,
		"SettingSources": func(t *testing.T) {
			testSettingSources(t)
			testInstructionSources(t)
		},
		"Settings":        testSettings,
		"ManagedSettings": testManagedSettings,
		"PermissionMode": func(t *testing.T) {
			conform.Covers(t, "O-37", "O-50", "P-15")
			var notes []string
			call(t, &notes, func(o *turnwright.Options) {
				o.PermissionMode = turnwright.ModeDontAsk
				o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
					t.Error("asked in dontAsk")
					return turnwright.PermissionAnswer{Allow: true}, nil
				}
			})
			if len(notes) > 0 {
				t.Error("dontAsk ran a call that nothing allows")
			}
			refused(t, "PermissionMode", "sometimes", func(o *turnwright.Options) { o.PermissionMode = "sometimes" })
		},
		"AllowDangerouslySkipPermissions": func(t *testing.T) {
			conform.Covers(t, "O-38", "O-46", "P-20", "P-21", "P-22")
			refused(t, "PermissionMode", "AllowDangerouslySkipPermissions", func(o *turnwright.Options) { o.PermissionMode = turnwright.ModeBypassPermissions })
			bypass := func(o *turnwright.Options) {
				o.PermissionMode, o.AllowDangerouslySkipPermissions = turnwright.ModeBypassPermissions, true
			}
			if os.Geteuid() == 0 {
				refused(t, "PermissionMode", "root", func(o *turnwright.Options) { bypass(o); o.Env["IS_SANDBOX"] = "" })
			}
			var notes []string
			call(t, &notes, func(o *turnwright.Options) { bypass(o); o.Env["IS_SANDBOX"] = "1" })
			if len(notes) != 1 {
				t.Error("bypassPermissions did not run the call")
			}
		},
		"CanUseTool": func(t *testing.T) {
			conform.Covers(t, "O-40", "O-51", "O-52", "O-53", "O-54", "L-146", "L-148", "P-116", "P-117", "P-120")
			for name, tt := range map[string]struct {
				answer turnwright.PermissionAnswer
				err    error
				notes  string
				ends   message.TerminalReason
			}{
				"allow":     {answer: turnwright.PermissionAnswer{Allow: true}, notes: "x", ends: message.TerminalCompleted},
				"changed":   {answer: turnwright.PermissionAnswer{Allow: true, Input: json.RawMessage(`{"text":"y"}`)}, notes: "y", ends: message.TerminalCompleted},
				"wrong":     {answer: turnwright.PermissionAnswer{Allow: true, Input: json.RawMessage(`{"txt":1}`)}, ends: message.TerminalCompleted},
				"deny":      {answer: turnwright.PermissionAnswer{Message: "not now"}, ends: message.TerminalCompleted},
				"interrupt": {answer: turnwright.PermissionAnswer{Message: "stop", Interrupt: true}, ends: message.TerminalAbortedTools},
				"error":     {err: errors.New("no"), ends: message.TerminalCompleted},
			} {
				var notes []string
				out := call(t, &notes, func(o *turnwright.Options) {
					o.CanUseTool = func(_ context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
						if r.RequestID == "" || r.DisplayName != "note" || r.Title != "Allow note?" || len(r.Suggestions) != 1 || r.Suggestions[0].Rules[0].ToolName != "note" {
							t.Errorf("asked with %+v", r)
						}
						if r.ToolName != "note" || string(r.Input) != `{"text":"x"}` || r.ToolUseID == "" {
							t.Errorf("asked about %+v", r)
						}
						return tt.answer, tt.err
					}
				})
				if strings.Join(notes, " ") != tt.notes || out.result.TerminalReason != tt.ends {
					t.Errorf("%s: notes %q, %s", name, notes, out.result.TerminalReason)
				}
			}
		},
		"ParallelCanUseTool": TestOneQuestionAtATime,
		"SessionID": func(t *testing.T) {
			conform.Covers(t, "O-61", "S-4", "S-6", "S-2")
			id := "6F2C0000-0000-4000-8000-00000000000a"
			store, dir := session.NewMemory(), t.TempDir()
			use := func(o *turnwright.Options) { o.SessionID, o.Store, o.CWD = id, store, dir }
			if out := answer(t, agenttest.Text("hi"), use); out.result.SessionID != strings.ToLower(id) {
				t.Errorf("session id %q", out.result.SessionID)
			}
			refused(t, "SessionID", "../x", func(o *turnwright.Options) { o.SessionID = "../x" })
			refused(t, "SessionID", "exists", use)
		},
		"Title": func(t *testing.T) {
			conform.Covers(t, "O-17")
			srv := agenttest.NewServer(t, agenttest.Text("hi"))
			o := onDisk(t, srv)
			o.Title = "a title"
			if s := ends(t, o, query(t, "go", o).result.SessionID); s.Title != "a title" {
				t.Errorf("%+v", s)
			}
		},
		"Debug": func(t *testing.T) { debugged(t, func(o *turnwright.Options) { o.Debug = true }, "api", "stream") },
		"DebugFile": func(t *testing.T) {
			debugged(t, func(o *turnwright.Options) { o.DebugFile = filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "debug", "x.txt") }, "api", "stream")
		},
		"DebugFilter": func(t *testing.T) { debugged(t, func(o *turnwright.Options) { o.DebugFilter = "api" }, "api") },
		"Bare": func(t *testing.T) {
			conform.Covers(t, "O-90", "T-13")
			r := request(t, func(o *turnwright.Options) { o.Bare = true })
			for _, name := range r.ToolNames() {
				if !slices.Contains([]string{"Bash", "Read", "Edit", "Write"}, name) {
					t.Errorf("%s is offered", name)
				}
			}
			if len(r.ToolNames()) < 3 {
				t.Errorf("offered: %q", r.ToolNames())
			}
		},
		"Resume": func(t *testing.T) {
			conform.Covers(t, "O-59", "S-35")
			resumed(t, func(o *turnwright.Options, id string) { o.Resume = id }, true)
		},
		"Continue": func(t *testing.T) {
			conform.Covers(t, "O-58", "S-51")
			resumed(t, func(o *turnwright.Options, _ string) { o.Continue = true }, true)
		},
		"ContinueAdded":   testContinueAdded,
		"ResumeSessionAt": TestResumeSessionAt,
		"ResumeDropsTurn": TestResumeDropsTurn,
		"ForkSession": func(t *testing.T) {
			conform.Covers(t, "O-60", "S-56")
			resumed(t, func(o *turnwright.Options, id string) { o.Resume, o.ForkSession = id, true }, false)
		},
		"NoSessionPersistence": func(t *testing.T) {
			conform.Covers(t, "O-64", "S-25", "S-9")
			for _, keep := range []bool{true, false} {
				var config string
				answer(t, agenttest.Text("hi"), func(o *turnwright.Options) {
					o.Store, o.NoSessionPersistence, config = nil, !keep, o.Env["CLAUDE_CONFIG_DIR"]
				})
				found, _ := filepath.Glob(filepath.Join(config, "projects", "*", "*.jsonl"))
				if (len(found) == 1) != keep {
					t.Errorf("kept %v: %q", keep, found)
				}
			}
		},
		"Store": func(t *testing.T) {
			st := session.NewMemory()
			var o turnwright.Options
			out := answer(t, agenttest.Text("hi"), func(opts *turnwright.Options) { opts.Store = st; o = *opts })
			j, err := st.Open(t.Context(), out.result.SessionID, session.OpenOptions{Dir: o.CWD})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			lines := 0
			for range j.Load(t.Context()) {
				lines++
			}
			if lines == 0 {
				t.Error("the store has no line of the session")
			}
		},
		"Durability":              TestFullDiskStrict,
		"Sync":                    testSync,
		"EnableFileCheckpointing": TestCheckpointsOff,
		"ReplayUserMessages": func(t *testing.T) {
			conform.Covers(t, "O-66", "M-40", "M-41")
			out := answer(t, agenttest.Text("hi"), func(o *turnwright.Options) { o.ReplayUserMessages = true })
			u, ok := out.messages[1].(*turnwright.UserMessage)
			if !ok || !u.IsReplay || u.UUID != out.result.UserMessageUUID || u.SessionID != out.result.SessionID || u.Message.Content.Text() != "go" {
				t.Errorf("%s: %+v", out.shape(), out.messages[1])
			}
		},
		"CWD": func(t *testing.T) {
			conform.Covers(t, "O-70")
			dir := t.TempDir()
			out := answer(t, agenttest.Text("hi"), func(o *turnwright.Options) { o.CWD = dir })
			if got := out.messages[0].(*turnwright.InitMessage).CWD; !strings.HasSuffix(got, dir) {
				t.Errorf("cwd %q", got)
			}
			refused(t, "CWD", "/no/such/dir", func(o *turnwright.Options) { o.CWD = "/no/such/dir" })
		},
		"Env": func(t *testing.T) {
			conform.Covers(t, "O-72", "O-107", "O-103", "L-130", "L-34", "L-85")
			r := request(t, func(o *turnwright.Options) {
				o.Env["ANTHROPIC_CUSTOM_HEADERS"], o.Env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = "X-Team: loop", "777"
				o.Env["CLAUDE_CODE_EXTRA_BODY"] = `{"metadata":{"user_id":"u1"}}`
			})
			if r.Header.Get("X-Team") != "loop" || r.MaxTokens() != 777 || r.Header.Get("X-Api-Key") != "test-key" || !strings.Contains(string(r.Field("metadata")), "u1") {
				t.Errorf("headers %v, max_tokens %d", r.Header, r.MaxTokens())
			}
			if r := request(t, func(o *turnwright.Options) { o.Env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = "99999999" }); r.MaxTokens() != 64000 {
				t.Errorf("max_tokens %d, not lowered to the model's cap", r.MaxTokens())
			}
			for name, bad := range map[string]string{
				"CLAUDE_CODE_MAX_TURNS": "0", "CLAUDE_CODE_MAX_RETRIES": "many", "API_TIMEOUT_MS": "2147483648",
				"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "-5", "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY": "x", "TURNWRIGHT_STREAM_IDLE_MS": "1s",
				"ANTHROPIC_BASE_URL": "ftp://host", "CLAUDE_CODE_EXTRA_BODY": "[1]",
				"BASH_DEFAULT_TIMEOUT_MS": "x", "BASH_MAX_TIMEOUT_MS": "0", "BASH_MAX_OUTPUT_LENGTH": "-1",
				"CLAUDE_CODE_SHELL": "/does/not/exist", "CLAUDE_CODE_TMPDIR": "relative/dir",
			} {
				refused(t, name, bad, func(o *turnwright.Options) { o.Env[name] = bad })
			}
			refused(t, "Env", "a=b", func(o *turnwright.Options) { o.Env["a=b"] = "x" })
		},
		"ReplaceEnv": func(t *testing.T) {
			conform.Covers(t, "O-72")
			t.Setenv("TURNWRIGHT_TEST_INHERITED", "yes")
			for want, replace := range map[string]bool{"yes": false, "none": true} {
				srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("Bash", `{"command":"echo ${TURNWRIGHT_TEST_INHERITED:-none}"}`), agenttest.Text("done")))
				o := base(t, srv)
				o.AllowedTools, o.ReplaceEnv = []string{"Bash"}, replace
				o.Env["PATH"] = os.Getenv("PATH")
				query(t, "go", o)
				if got := strings.TrimSpace(srv.Last().LastToolResults()[0].Text); got != want {
					t.Errorf("replaced %v: the command saw %q", replace, got)
				}
			}
		},
		"Stderr": func(t *testing.T) {
			conform.Covers(t, "O-84", "L-224")
			var lines []string
			out := answer(t, agenttest.Text("hi"), func(o *turnwright.Options) {
				o.Model = "no-such-model"
				o.Stderr = func(line string) { lines = append(lines, line); panic("in the callback") }
			})
			if out.err != nil || len(lines) != 1 || !strings.Contains(lines[0], "no-such-model") {
				t.Errorf("%q, %v", lines, out.err)
			}
		},
		"IncludePartialMessages": func(t *testing.T) {
			conform.Covers(t, "O-92", "M-44", "M-45", "M-46", "M-47", "M-48", "M-49", "M-51")
			for _, on := range []bool{false, true} {
				out := answer(t, agenttest.DeltaSize(agenttest.Text("hello there"), 4), func(o *turnwright.Options) { o.IncludePartialMessages = on })
				text, events, assistant := "", 0, 0
				for i, m := range out.messages {
					switch m := m.(type) {
					case *turnwright.StreamEventMessage:
						events++
						var ev struct {
							Type  string `json:"type"`
							Delta struct{ Text string }
						}
						if err := json.Unmarshal(m.Event, &ev); err != nil {
							t.Fatal(err)
						}
						if (m.TTFTMS != nil) != (ev.Type == "message_start") {
							t.Errorf("ttft_ms on %s", ev.Type)
						}
						text += ev.Delta.Text
					case *turnwright.AssistantMessage:
						assistant = i
					}
				}
				if (events > 0) != on || on && (text != "hello there" || assistant != events+1) {
					t.Errorf("partial %v: %d events, text %q, %s", on, events, text, out.shape())
				}
			}
		},
		"Steer": func(t *testing.T) {
			conform.Covers(t, "L-188")
			for _, steer := range []bool{false, true} {
				testSteer(t, steer)
			}
		},
		"ModelClient": func(t *testing.T) {
			out := answer(t, agenttest.Text("never asked"), func(o *turnwright.Options) { o.ModelClient = oneAnswer("mine") })
			if *out.result.Result != "mine" || out.messages[0].(*turnwright.InitMessage).APIKeySource != "none" {
				t.Errorf("%+v", out.result)
			}
		},
		"Catalog": func(t *testing.T) {
			out := answer(t, agenttest.Usage(agenttest.Text("x"), 1000000, 0, 0, 0, 0), func(o *turnwright.Options) {
				o.Model, o.Catalog = "acme", model.DefaultCatalog().With(model.Info{ID: "acme", Price: &model.Price{Input: 7}})
			})
			if *out.result.TotalCostUSD != 7 {
				t.Errorf("cost %v", *out.result.TotalCostUSD)
			}
		},
		"QueueBytes":    testQueueBytes,
		"MaxBufferSize": testMaxBufferSize,
	}

	conform.Covers(t, "O-3")
	typ := reflect.TypeFor[turnwright.Options]()
	fields := map[string]bool{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		fields[f.Name] = true
		letter := f.Tag.Get("later")
		effect := effects[f.Name]
		switch {
		case letter == "" && effect == nil:
			t.Errorf("option %s has neither an effect test nor a letter", f.Name)
		case letter != "" && effect != nil:
			t.Errorf("option %s has both an effect test and the letter %s", f.Name, letter)
		case letter != "":
			t.Run(f.Name, func(t *testing.T) {
				refused(t, f.Name, letter, func(o *turnwright.Options) {
					setSomething(t, reflect.ValueOf(o).Elem().FieldByIndex(f.Index))
				})
			})
		default:
			t.Run(f.Name, effect)
		}
	}
	for name := range effects {
		if !fields[name] {
			t.Errorf("there is no option %s", name)
		}
	}
}

// setSomething gives a field a value that is not its zero value.
func setSomething(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // an empty list is set, too (O-2)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Interface:
		v.Set(reflect.ValueOf(1))
	default:
		t.Fatalf("no value for a %s", v.Type())
	}
}

// testInstructionSources: the sources decide about instruction files too.
func testInstructionSources(t *testing.T) {
	conform.Covers(t, "O-2", "O-73", "C-9")
	for want, sources := range map[string][]string{"user project local": nil, "": {}, "user": {"user"}, "project local": {"local", "project"}} {
		r := request(t, func(o *turnwright.Options) {
			o.SettingSources = sources
			putIn(t, o.CWD, "CLAUDE.md", "says project")
			putIn(t, o.CWD, "CLAUDE.local.md", "says local")
			putIn(t, o.Env["CLAUDE_CONFIG_DIR"], "CLAUDE.md", "says user")
		})
		var got []string
		for _, who := range []string{"user", "project", "local"} {
			if strings.Contains(r.FirstUserText(), "says "+who) {
				got = append(got, who)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("sources %q: %q are loaded", sources, got)
		}
	}
	refused(t, "SettingSources", "everything", func(o *turnwright.Options) { o.SettingSources = []string{"user", "everything"} })
}
