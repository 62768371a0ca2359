package turnwright_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/session"
)

// TestMentionedFiles: "@path" in a prompt brings the file along where Read may
// read it without a question, and no hook of calls is asked.
func TestMentionedFiles(t *testing.T) {
	conform.Covers(t, "H-126", "P-49")
	outside := put(t, filepath.Join(t.TempDir(), "outside.txt"), "text of outside\n")
	for name, tt := range map[string]struct {
		prompt string
		files  string // that come along
		set    func(*turnwright.Options)
	}{
		"none":                 {"a.txt me@a.txt @ @nowhere.txt @sub", "", nil},
		"one":                  {"@a.txt", "a", nil},
		"in a sentence":        {"Compare @a.txt, (@sub/b.txt) and @\"with blank.txt\"!", "a b blank", nil},
		"at its end":           {"What is in @sub/b.txt?", "b", nil},
		"twice":                {"@a.txt\n@./a.txt @" + "sub/../a.txt", "a", nil},
		"absolute":             {"@{CWD}/a.txt", "a", nil},
		"denied":               {"@a.txt @sub/b.txt @secret.txt", "b", func(o *turnwright.Options) { o.DisallowedTools = []string{"Read(a.txt)", "Read(secret.txt)"} }},
		"asked for":            {"@a.txt @sub/b.txt", "b", func(o *turnwright.Options) { put(t, projectFile(o), `{"permissions":{"ask":["Read(a.txt)"]}}`) }},
		"no Read":              {"@a.txt", "", func(o *turnwright.Options) { o.DisallowedTools = []string{"Read"} }},
		"outside":              {"@" + outside, "", nil},
		"outside, and allowed": {"@" + outside, "outside", func(o *turnwright.Options) { o.AllowedTools = []string{"Read(/" + filepath.ToSlash(outside) + ")"} }},
		"at home":              {"@~/a.txt @a.txt", "a", func(o *turnwright.Options) { o.Env["HOME"] = o.CWD }},
		"blocked": {"@a.txt", "", func(o *turnwright.Options) {
			o.Hooks[hook.UserPromptSubmit] = []hook.Group{{Hooks: []hook.Func{answers(hook.Output{Block: true, Reason: "no"})}}}
		}},
		"told to hooks": {"@a.txt", "a", func(o *turnwright.Options) {
			o.Hooks[hook.UserPromptSubmit] = []hook.Group{{Hooks: []hook.Func{hook.On(func(_ context.Context, in *hook.UserPromptSubmitInput) (hook.Output, error) {
				if in.Prompt != "@a.txt" {
					t.Errorf("the hook is told %q", in.Prompt)
				}
				return hook.Output{}, nil
			})}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("done")))
			o := base(t, srv)
			for file, text := range map[string]string{"a.txt": "a", "sub/b.txt": "b", "with blank.txt": "blank", "secret.txt": "secret"} {
				put(t, filepath.Join(o.CWD, file), "text of "+text+"\n")
			}
			o.Hooks = on(hook.PreToolUse, func(context.Context, hook.Input, string) (hook.Output, error) {
				t.Error("a hook of calls is asked")
				return hook.Output{}, nil
			})
			if tt.set != nil {
				tt.set(&o)
			}
			prompt := strings.ReplaceAll(tt.prompt, "{CWD}", o.CWD)
			if out := query(t, prompt, o); !out.resultOK() {
				t.Fatalf("%+v", out.result)
			}
			var got []string
			for _, r := range srv.Requests() {
				text := r.UserText()
				if !strings.HasPrefix(text, prompt) {
					t.Errorf("the prompt became %q", text)
				}
				for _, file := range []string{"a", "b", "blank", "secret", "outside"} {
					if n := strings.Count(text, "text of "+file+"\n"); n == 1 {
						got = append(got, file)
					} else if n > 1 {
						t.Errorf("%s is there %d times", file, n)
					}
				}
			}
			if strings.Join(got, " ") != tt.files {
				t.Errorf("%v came along, want %s", got, tt.files)
			}
		})
	}
}

// TestMentionIsARead: what a prompt brought along has been read, with the
// instruction files beside it, and stays as it was when the session goes on.
func TestMentionIsARead(t *testing.T) {
	conform.Covers(t, "H-54", "H-126", "C-44", "T-64")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Edit", `{"file_path":"sub/b.txt","old_string":"old","new_string":"new"}`), agenttest.Text("done"), agenttest.Text("again"), agenttest.Text("synthetic"),
	))
	o := base(t, srv)
	o.Store, o.AllowedTools = session.NewMemory(), []string{"Edit"}
	put(t, filepath.Join(o.CWD, "sub", "b.txt"), "the old text\n")
	put(t, filepath.Join(o.CWD, "sub", "CLAUDE.md"), "the nested instructions\n")
	out := query(t, "Change @sub/b.txt", o)
	if got := srv.Requests()[0].UserText(); !strings.Contains(got, "the old text") || !strings.Contains(got, "the nested instructions") {
		t.Errorf("%q", got)
	}
	if res := srv.Requests()[1].LastToolResults()[0]; res.IsError {
		t.Errorf("the edit: %s", res.Text)
	}
	o.Resume = out.result.SessionID
	query(t, "And now?", o)
	if body := string(srv.Last().Body); !strings.Contains(body, "the old text") || strings.Count(body, "the nested instructions") != 1 {
		t.Errorf("%s", body)
	}
	// What nobody wrote brings nothing along.
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Send(t.Context(), turnwright.Input{Text: "@sub/b.txt", Synthetic: true}); err != nil {
		t.Fatal(err)
	}
	for m, err := range s.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.(*message.Result); ok {
			break
		}
	}
	if text := srv.Last().UserText(); strings.Contains(text, "the new text") {
		t.Errorf("%q", text)
	}
}
