package turnwright_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/conform/report"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/session"
)

// TestOptionIDs looks at docs/contract/options.md from the other side: each
// core line is proven by some test or is brought by a later piece of work, and
// an option that is still to come carries the letter of its line.
func TestOptionIDs(t *testing.T) {
	contract, err := report.ReadContract(os.DirFS("docs/contract"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("internal/conform/letters.txt")
	if err != nil {
		t.Fatal(err)
	}
	letters, err := report.ParseLetters(string(text))
	if err != nil {
		t.Fatal(err)
	}
	proofs, err := report.ScanTests(".")
	if err != nil {
		t.Fatal(err)
	}
	proven := map[string]bool{}
	for _, p := range proofs {
		proven[p.ID] = proven[p.ID] || !p.Skipped
	}
	core := map[string]bool{}
	for _, r := range contract.Requirements {
		if r.Page != "options.md" || r.Class != report.Core {
			continue
		}
		core[r.ID] = true
		if !proven[r.ID] && letters.Of(r.ID) == "A" {
			t.Errorf("%s: neither proven nor the work of a later letter", r.ID)
		}
	}
	typ := reflect.TypeFor[turnwright.Options]()
	commented := optionComments(t)
	for i := range typ.NumField() {
		f := typ.Field(i)
		letter := f.Tag.Get("later")
		ids := commented[f.Name]
		if letter != "" && len(ids) == 0 {
			t.Errorf("Options.%s names no line of options.md", f.Name)
		}
		for _, id := range ids {
			if !contract.Has(id) {
				t.Errorf("Options.%s names %s, which does not exist", f.Name, id)
			}
			if want := letters.Of(id); letter != "" && core[id] && letter != want {
				t.Errorf("Options.%s comes with %s, but %s with %s", f.Name, letter, id, want)
			}
		}
	}
}

var optionID = regexp.MustCompile(`\b[OSLMP]-\d+\b`)

// optionComments returns the ids in the comments of the fields of Options.
func optionComments(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "options.go", nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Options" {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range f.Names {
				ids[name.Name] = optionID.FindAllString(f.Doc.Text()+f.Comment.Text(), -1)
			}
		}
		return false
	})
	if len(ids) == 0 {
		t.Fatal("options.go has no fields of Options")
	}
	return ids
}

// TestInvalidOptions has the faults that are not in the table of effects.
func TestInvalidOptions(t *testing.T) {
	conform.Covers(t, "O-3", "O-70", "P-43")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		option, value string
		set           func(*turnwright.Options)
	}{
		{"QueueBytes", "-1", func(o *turnwright.Options) { o.QueueBytes = -1 }},
		{"MaxBufferSize", "-1", func(o *turnwright.Options) { o.MaxBufferSize = -1 }},
		{"Durability", "7", func(o *turnwright.Options) { o.Durability = 7 }},
		{"Sync", "-1", func(o *turnwright.Options) { o.Sync = -1 }},
		{"Sync", "3", func(o *turnwright.Options) { o.Sync = 3 }},
		{"Betas", `"a b"`, func(o *turnwright.Options) { o.Betas = []string{"ok-2026", "a b"} }},
		{"Betas", `"a\nb: c"`, func(o *turnwright.Options) { o.Betas = []string{"a\nb: c"} }},
		{"AllowedTools", `"WebFetch(domain:x.test)"`, func(o *turnwright.Options) { o.AllowedTools = []string{"Read", "WebFetch(domain:x.test)"} }},
		{"AllowedTools", `"Read Edit"`, func(o *turnwright.Options) { o.AllowedTools = []string{"Read Edit"} }},
		{"DisallowedTools", `"Bash(rm"`, func(o *turnwright.Options) { o.DisallowedTools = []string{"Bash(rm"} }},
		{"DisallowedTools", `""`, func(o *turnwright.Options) { o.DisallowedTools = []string{""} }},
		{"SystemPrompt", "Coding", func(o *turnwright.Options) {
			o.SystemPrompt = &turnwright.SystemPrompt{Coding: true, Text: new("x")}
		}},
		{"SystemPrompt", "Coding", func(o *turnwright.Options) {
			o.SystemPrompt = &turnwright.SystemPrompt{Coding: true, File: file}
		}},
		{"CWD", file, func(o *turnwright.Options) { o.CWD = file }},
		{"SessionID", `"6f2c"`, func(o *turnwright.Options) { o.SessionID = "6f2c" }},
		{"SessionID", `"6f2c0000000040008000000000000001"`, func(o *turnwright.Options) { o.SessionID = "6f2c0000000040008000000000000001" }},
		{"TURNWRIGHT_STREAM_IDLE_MS", `"9223372036854775807"`, func(o *turnwright.Options) { o.Env["TURNWRIGHT_STREAM_IDLE_MS"] = "9223372036854775807" }},
		{"CLAUDE_STREAM_IDLE_TIMEOUT_MS", `"-1"`, func(o *turnwright.Options) { o.Env["CLAUDE_STREAM_IDLE_TIMEOUT_MS"] = "-1" }},
		{"CLAUDE_CODE_MAX_TURNS", `"1.5"`, func(o *turnwright.Options) { o.Env["CLAUDE_CODE_MAX_TURNS"] = "1.5" }},
		{"ANTHROPIC_CUSTOM_HEADERS", "no colon", func(o *turnwright.Options) { o.Env["ANTHROPIC_CUSTOM_HEADERS"] = "no colon" }},
		{"Env", `"a"`, func(o *turnwright.Options) { o.Env["a"] = "x\x00y" }},
	} {
		t.Run(tt.option+" "+tt.value, func(t *testing.T) {
			refused(t, tt.option, tt.value, tt.set)
			srv := agenttest.NewServer(t)
			o := base(t, srv)
			tt.set(&o)
			var bad *turnwright.OptionError
			if _, err := turnwright.NewSession(t.Context(), o); !errors.As(err, &bad) {
				t.Errorf("error %T: %v", err, err)
			}
		})
	}
}

// TestOptionErrors can be taken apart.
func TestOptionErrors(t *testing.T) {
	conform.Covers(t, "O-119")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Text("hi")))
	o := base(t, srv)
	o.AllowedTools = []string{"WebFetch(domain:x.test)"}
	var rule *permission.RuleError
	if _, err := turnwright.NewSession(t.Context(), o); !errors.As(err, &rule) || rule.Rule != "WebFetch(domain:x.test)" || !errors.Is(err, permission.ErrScopedRule) {
		t.Errorf("a rule: %v", err)
	}
	o.AllowedTools, o.SessionID = nil, "6f2c0000-0000-4000-8000-000000000001"
	if out := query(t, "go", o); out.err != nil {
		t.Fatal(out.err)
	}
	if _, err := turnwright.NewSession(t.Context(), o); !errors.Is(err, session.ErrExists) {
		t.Errorf("an id that exists: %v", err)
	}
	o.SessionID = ""
	o.Effort = "low"
	var bad *turnwright.OptionError
	if _, err := turnwright.NewSession(t.Context(), o); !errors.As(err, &bad) || bad.Option != "Effort" || bad.Letter != "H" {
		t.Errorf("an option to come: %+v", bad)
	}
	// A run that fails is told from one that could not start.
	failing := agenttest.NewServer(t, agenttest.Forever(agenttest.HTTPError(400, "invalid_request_error", "no")))
	out := query(t, "go", base(t, failing))
	var failed *turnwright.ResultError
	if !errors.As(out.err, &failed) || failed.Result != out.result || errors.As(out.err, &bad) {
		t.Errorf("a failed run: %v", out.err)
	}
}

// TestAutoMode starts in default where no classifier is available, and says so.
func TestAutoMode(t *testing.T) {
	conform.Covers(t, "P-4", "P-1")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("note", `{"text":"x"}`), agenttest.Text("done")))
	o := base(t, srv)
	var notes, lines []string
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
	o.PermissionMode = "auto"
	o.Stderr = func(line string) { lines = append(lines, line) }
	out := query(t, "go", o)
	if init := out.messages[0].(*turnwright.InitMessage); init.PermissionMode != "default" || len(notes) != 1 {
		t.Errorf("mode %q, notes %q", init.PermissionMode, notes)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "auto") {
		t.Errorf("warnings %q", lines)
	}
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SetPermissionMode(t.Context(), "auto"); err == nil || !strings.Contains(err.Error(), "auto") {
		t.Errorf("changing to auto: %v", err)
	}
	if err := s.SetPermissionMode(t.Context(), "manual"); err != nil {
		t.Errorf("changing to manual: %v", err)
	}
}

// TestModeChange applies to the calls after it, not to the start alone.
func TestModeChange(t *testing.T) {
	conform.Covers(t, "P-5", "P-14", "P-23")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if len(r.LastToolResults()) > 0 {
			return agenttest.Text("done")
		}
		return agenttest.Call("note", `{"text":"x"}`)
	}))
	o := base(t, srv)
	var notes []string
	asked := 0
	o.CustomTools = []turnwright.Tool{note(&notes)}
	o.AllowDangerouslySkipPermissions, o.Env["IS_SANDBOX"] = true, "1"
	o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		asked++
		return turnwright.PermissionAnswer{}, nil
	}
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, step := range []struct {
		mode         turnwright.PermissionMode
		notes, asked int // so far
	}{
		{turnwright.ModeDefault, 0, 1},
		{turnwright.ModeDontAsk, 0, 1},
		{turnwright.ModeBypassPermissions, 1, 1},
		{turnwright.ModePlan, 2, 1}, // enforces nothing where bypass is available (P-14)
		{turnwright.ModeDefault, 2, 2},
	} {
		if err := s.SetPermissionMode(t.Context(), step.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ask(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if len(notes) != step.notes || asked != step.asked {
			t.Errorf("%s: %d calls ran and %d were asked about, want %d and %d", step.mode, len(notes), asked, step.notes, step.asked)
		}
	}
}

// TestSudo refuses bypassPermissions under sudo as well.
func TestSudo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sudo")
	}
	conform.Covers(t, "P-21", "P-22", "O-46")
	sudo := func(o *turnwright.Options) {
		o.PermissionMode, o.AllowDangerouslySkipPermissions = turnwright.ModeBypassPermissions, true
		o.Env["SUDO_UID"], o.Env["IS_SANDBOX"] = "1000", ""
	}
	refused(t, "PermissionMode", "root/sudo", sudo)
	if out := answer(t, agenttest.Text("hi"), func(o *turnwright.Options) { sudo(o); o.Env["IS_SANDBOX"] = "1" }); out.err != nil {
		t.Error(out.err)
	}
}

// TestShadowedCallback warns once about a callback that will not see calls.
func TestShadowedCallback(t *testing.T) {
	conform.Covers(t, "P-130", "O-57")
	callback := func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		return turnwright.PermissionAnswer{}, nil
	}
	for _, tt := range []struct {
		name string
		set  func(*turnwright.Options)
		warn int
	}{
		{"nothing", func(*turnwright.Options) {}, 0},
		{"acceptEdits", func(o *turnwright.Options) { o.PermissionMode = turnwright.ModeAcceptEdits }, 0},
		{"denied tools", func(o *turnwright.Options) { o.DisallowedTools = []string{"Bash"} }, 0},
		{"ignored rule", func(o *turnwright.Options) { o.AllowedTools = []string{"*"} }, 0},
		{"bare tools", func(o *turnwright.Options) { o.AllowedTools = []string{"Read", "Bash"} }, 1},
		{"every call", func(o *turnwright.Options) { o.AllowedTools = []string{"Bash(*)"} }, 1},
		{"no callback", func(o *turnwright.Options) { o.AllowedTools, o.CanUseTool = []string{"Bash"}, nil }, 0},
		{"bypass", func(o *turnwright.Options) {
			o.PermissionMode, o.AllowDangerouslySkipPermissions, o.Env["IS_SANDBOX"] = turnwright.ModeBypassPermissions, true, "1"
			o.AllowedTools = []string{"Bash"}
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			warned := 0
			answer(t, agenttest.Text("hi"), func(o *turnwright.Options) {
				o.CanUseTool = callback
				o.Stderr = func(line string) {
					if strings.Contains(line, "CLAUDE_SDK_CAN_USE_TOOL_SHADOWED") {
						warned++
					}
				}
				tt.set(o)
			})
			if warned != tt.warn {
				t.Errorf("%d warnings, want %d", warned, tt.warn)
			}
		})
	}
}

// TestBooleans reads the variables that are on or off.
func TestBooleans(t *testing.T) {
	conform.Covers(t, "O-112")
	for value, on := range map[string]bool{
		"1": true, "true": true, "TRUE": true, "yes": true, "On": true,
		"": false, "0": false, "false": false, "no": false, "OFF": false,
	} {
		var config string
		r := request(t, func(o *turnwright.Options) {
			o.Store, config = nil, o.Env["CLAUDE_CONFIG_DIR"]
			o.Env["CLAUDE_CODE_SKIP_PROMPT_HISTORY"], o.Env["DISABLE_PROMPT_CACHING"] = value, value
		})
		found, err := filepath.Glob(filepath.Join(config, "projects", "*", "*.jsonl"))
		if err != nil || (len(found) == 0) != on {
			t.Errorf("CLAUDE_CODE_SKIP_PROMPT_HISTORY=%q: %q, %v", value, found, err)
		}
		if marked := strings.Contains(string(r.Body), "cache_control"); marked == on {
			t.Errorf("DISABLE_PROMPT_CACHING=%q: cache marks %v", value, marked)
		}
	}
	for env, ttl := range map[[2]string]string{{"1", ""}: `"1h"`, {"1", "1"}: "", {"", ""}: ""} {
		r := request(t, func(o *turnwright.Options) {
			o.Env["ENABLE_PROMPT_CACHING_1H"], o.Env["FORCE_PROMPT_CACHING_5M"] = env[0], env[1]
		})
		if got := strings.Contains(string(r.Body), `"ttl":"1h"`); got != (ttl != "") || !strings.Contains(string(r.Body), "cache_control") {
			t.Errorf("%q: marked for an hour: %v", env, got)
		}
	}
}

// TestRetryWatchdog waits for as long as the server says (L-103).
func TestRetryWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "O-103", "L-103")
		_, o := inMemory(t, agenttest.Script(
			agenttest.HTTPError(429, "rate_limit_error", "later", "retry-after", "200"),
			agenttest.HTTPError(529, "overloaded_error", "Overloaded"),
			agenttest.Text("at last"),
		))
		o.Env["CLAUDE_CODE_RETRY_WATCHDOG"], o.Env["CLAUDE_CODE_MAX_RETRIES"] = "1", "1"
		begin := time.Now()
		out := query(t, "go", o)
		if out.err != nil || *out.result.Result != "at last" || time.Since(begin) < 200*time.Second {
			t.Errorf("%+v after %v, %v", out.result, time.Since(begin), out.err)
		}
	})
}

// TestContextCancels ends a run with its context: the tool is told, nothing
// more is asked, and the iterator yields the cause.
func TestContextCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "O-88", "L-64")
		srv, o := inMemory(t, agenttest.Forever(agenttest.Call("wait", `{}`)))
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the user went home")
		told := false
		o.CustomTools = []turnwright.Tool{turnwright.NewTool("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
			cancel(cause)
			<-ctx.Done()
			told = true
			return "", ctx.Err()
		})}
		o.AllowedTools = []string{"wait"}
		var out outcome
		for m, err := range turnwright.Query(ctx, "go", o) {
			if err != nil {
				out.err = err
				break
			}
			out.add(m)
		}
		if !errors.Is(out.err, cause) || !told || srv.Count() != 1 {
			t.Errorf("%v; the tool was told: %v; %d requests; %s", out.err, told, srv.Count(), out.shape())
		}
		// A context that has ended already starts nothing.
		for _, err := range turnwright.Query(ctx, "go", o) {
			if err == nil {
				t.Error("a message of a run that cannot start")
			}
		}
		if _, err := turnwright.NewSession(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("a session: %v", err)
		}
		if n := srv.Count(); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestControlsNeedASession fails the control methods of a session that is
// closed: there is nothing that they could act on.
func TestControlsNeedASession(t *testing.T) {
	conform.Covers(t, "O-115")
	srv := agenttest.NewServer(t)
	s, err := turnwright.NewSession(t.Context(), base(t, srv))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"SetModel":          func() error { return s.SetModel(t.Context(), "haiku") },
		"SetPermissionMode": func() error { return s.SetPermissionMode(t.Context(), turnwright.ModePlan) },
		"Interrupt":         func() error { _, err := s.Interrupt(t.Context()); return err },
		"Send":              func() error { _, err := s.Send(t.Context(), turnwright.Input{Text: "x"}); return err },
		"Ask":               func() error { _, err := s.Ask(t.Context(), "x"); return err },
	} {
		if err := do(); !errors.Is(err, turnwright.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// TestEmptyPrompt runs nothing, and leaves nothing.
func TestEmptyPrompt(t *testing.T) {
	conform.Covers(t, "L-193", "O-9")
	srv := agenttest.NewServer(t)
	o := base(t, srv)
	o.Store = nil
	if out := query(t, "", o); out.err != nil || len(out.messages) > 0 || srv.Count() > 0 {
		t.Errorf("%s, %v, %d requests", out.shape(), out.err, srv.Count())
	}
	if found, _ := filepath.Glob(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "projects", "*", "*")); len(found) > 0 {
		t.Errorf("left: %q", found)
	}
}

// TestDefaultHome keeps sessions in .claude of the home directory and leaves
// alone what others have there.
func TestDefaultHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("HOME is a variable of Unix")
	}
	conform.Covers(t, "S-10", "S-9", "K-280")
	home := t.TempDir()
	other := filepath.Join(home, ".claude", "projects", "theirs", "notes.jsonl")
	if err := os.MkdirAll(filepath.Dir(other), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := answer(t, agenttest.Text("hi"), func(o *turnwright.Options) {
		o.Store = nil
		o.Env["CLAUDE_CONFIG_DIR"], o.Env["HOME"] = "", home
	})
	found, err := filepath.Glob(filepath.Join(home, ".claude", "projects", "*", out.result.SessionID+".jsonl"))
	if err != nil || len(found) != 1 {
		t.Errorf("transcripts: %q, %v", found, err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "theirs" {
		t.Errorf("another program's file: %q, %v", text, err)
	}
}

// TestMaxOutputTokens asks for what the variable says, at most what the model
// can, and for 32,000 of a model that nobody knows.
func TestMaxOutputTokens(t *testing.T) {
	conform.Covers(t, "L-130", "K-232")
	for _, tt := range []struct {
		model, env string
		want       int
	}{
		{"claude-sonnet-4-5", "", 32000},
		{"claude-sonnet-4-5", "1000", 1000},
		{"claude-sonnet-4-5", "64000", 64000},
		{"claude-sonnet-4-5", "64001", 64000},
		{"claude-opus-4-1", "99999999", 32000},
		{"nobody-knows", "", 32000},
		{"nobody-knows", "50000", 50000},
	} {
		r := request(t, func(o *turnwright.Options) { o.Model, o.Env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = tt.model, tt.env })
		if r.MaxTokens() != tt.want {
			t.Errorf("%s with %q: max_tokens %s, want %d", tt.model, tt.env, strconv.Itoa(r.MaxTokens()), tt.want)
		}
	}
}

// TestUnpricedModel warns and counts 0, and cannot keep a budget, at the start
// and in a session.
func TestUnpricedModel(t *testing.T) {
	conform.Covers(t, "L-224")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Usage(agenttest.Text("hi"), 1000, 20, 0, 0, 0)))
	o := base(t, srv)
	var lines []string
	o.Stderr = func(line string) { lines = append(lines, line) }
	o.Model = "nobody-knows"
	out := query(t, "go", o)
	if out.err != nil || *out.result.TotalCostUSD != 0 || len(lines) != 1 || !strings.Contains(lines[0], "nobody-knows") {
		t.Errorf("%+v, %v, warnings %q", out.result, out.err, lines)
	}
	o.Model, o.MaxBudgetUSD = "", new(1.0)
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SetModel(t.Context(), "nobody-knows"); err == nil || !strings.Contains(err.Error(), "nobody-knows") {
		t.Errorf("SetModel under a budget: %v", err)
	}
	res, err := s.Ask(t.Context(), "go")
	if err != nil || res.Subtype != message.Success || srv.Last().Model() == "nobody-knows" {
		t.Errorf("%+v, %v", res, err)
	}
}
