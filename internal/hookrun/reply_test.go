//go:build unix

package hookrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/hookrun"
	"github.com/turnwright/turnwright/message"
)

// asked is the hooks of an event with one handler of another type.
func asked(ev hook.Event, handler string) string {
	return `{"` + string(ev) + `":[{"hooks":[` + handler + `]}]}`
}

// TestHTTP: what a server is sent, and what its answer does.
func TestHTTP(t *testing.T) {
	conform.Covers(t, "H-32", "H-33", "H-39", "H-47", "M-83")
	var got *http.Request
	var body []byte
	status, answer := 200, ""
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, answer)
	}))
	t.Cleanup(srv.Close)
	hooks := asked(hook.PreToolUse, `{"type":"http","url":"`+srv.URL+`/check?x=1","headers":{"X-From":"$FROM ${PATH}."},"allowedEnvVars":["FROM"]}`)
	const deny = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no","additionalContext":"c"},"systemMessage":"m"}`
	for name, tt := range map[string]struct {
		status     int
		answer     string
		permission hook.Permission
		notice     string
		outcome    string
	}{
		"nothing":  {200, "", "", "", "success"},
		"denied":   {200, deny, hook.Deny, "PreToolUse:Bash: m", "success"},
		"refused":  {403, deny, "", "PreToolUse:Bash hook error\nthe server answered with status 403 Forbidden", "error"},
		"a page":   {200, "<html>", "", "PreToolUse:Bash hook error\nthe server's answer must be", "error"},
		"no shape": {200, `{"decision":7}`, "", "PreToolUse:Bash hook error\nthe field \"decision\"", "error"},
		"endless":  {200, strings.Repeat("x", 2<<20), "", "PreToolUse:Bash hook error\nthe answer of 127.0.0.1", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hooks)
			status, answer = tt.status, tt.answer
			m := w.run(&hook.PreToolUseInput{Base: hook.Base{SessionID: "s1"}, ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls"}`)})
			if m.Permission != tt.permission || (len(m.Notices) == 1) != (tt.notice != "") || tt.notice != "" && !strings.HasPrefix(m.Notices[0].Text, tt.notice) {
				t.Errorf("%+v", m)
			}
			if tt.permission == hook.Deny && (m.Reason != "no" || !slices.Equal(m.Contexts, []string{"c"})) {
				t.Errorf("%+v", m)
			}
			var in hook.PreToolUseInput
			if err := json.Unmarshal(body, &in); err != nil || in.ToolName != "Bash" || in.SessionID != "s1" || in.EventName != hook.PreToolUse || string(in.ToolInput) != `{"command":"ls"}` {
				t.Errorf("%v: %s", err, body)
			}
			if got.Method != http.MethodPost || got.URL.String() != "/check?x=1" || got.Header.Get("Content-Type") != "application/json" || got.Header.Get("X-From") != "outside ." {
				t.Errorf("%s %s %v", got.Method, got.URL, got.Header)
			}
			r, ok := w.shown[len(w.shown)-1].(*message.HookResponse)
			if !ok || r.Outcome != tt.outcome || r.ExitCode != nil || name != "endless" && r.Stdout != tt.answer {
				t.Errorf("%+v", w.shown)
			}
		})
	}
}

// TestHTTPFails: a server that is not there, or too slow, decides nothing.
func TestHTTPFails(t *testing.T) {
	conform.Covers(t, "H-33", "H-64")
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	w := newWorld(t, asked(hook.PreToolUse, `{"type":"http","url":"`+strings.Replace(gone.URL, "//", "//me:secret@", 1)+`"}`))
	m := w.run(&hook.PreToolUseInput{ToolName: "Bash"})
	if m.Permission != "" || len(m.Notices) != 1 || !strings.Contains(m.Notices[0].Text, "could not be asked") || strings.Contains(m.Notices[0].Text, "secret") {
		t.Errorf("%+v", m)
	}
	w = newWorld(t, asked(hook.PreToolUse, `{"type":"http","url":"`+gone.URL+`","headers":{"X":"a\nb"}}`))
	if m := w.run(&hook.PreToolUseInput{ToolName: "Bash"}); m.Permission != "" || len(m.Notices) != 1 || !strings.Contains(m.Notices[0].Text, "header") {
		t.Errorf("%+v", m)
	}

	arrived, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	slow := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	t.Cleanup(slow.Close)
	w = newWorld(t, asked(hook.PreToolUse, `{"type":"http","url":"`+slow.URL+`","timeout":0.2}`))
	m = w.run(&hook.PreToolUseInput{ToolName: "Bash"})
	if m.Permission != "" || len(m.Notices) != 1 || !strings.Contains(m.Notices[0].Text, "200ms") {
		t.Errorf("%+v", m)
	}
	if r, ok := w.shown[len(w.shown)-1].(*message.HookResponse); !ok || r.Outcome != "cancelled" {
		t.Errorf("%+v", w.shown)
	}
	<-ended
	<-arrived
	// Whoever waits no longer gets it back at once.
	w = newWorld(t, asked(hook.Stop, `{"type":"http","url":"`+slow.URL+`"}`))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if m := w.Run(ctx, &hook.StopInput{}, hookrun.Call{Dir: w.dir}); m.Block || len(m.Notices) > 0 {
		t.Errorf("%+v", m)
	}
	<-ended
}

// TestPrompt: what a model is asked, and what its answer does.
func TestPrompt(t *testing.T) {
	conform.Covers(t, "H-36", "H-37", "H-39", "H-62")
	w := newWorld(t, asked(hook.Stop, `{"type":"prompt","prompt":"Is this done? $ARGUMENTS","model":"opus"},{"type":"agent","prompt":"Look."}`))
	limits := make(chan time.Duration, 2)
	w.ask = func(ctx context.Context, q hookrun.Question) (string, error) {
		until, _ := ctx.Deadline()
		limits <- time.Until(until).Round(10 * time.Second)
		switch {
		case q.Agent && q.Model == "" && strings.HasPrefix(q.Text, "Look.\n\n{"):
			return `{"ok":true}`, nil
		case !q.Agent && q.Model == "opus" && strings.HasPrefix(q.Text, `Is this done? {"session_id":`):
			return `{"ok":false,"reason":"not yet"}`, nil
		}
		return "", errors.New("another question: " + q.Text)
	}
	m := w.run(&hook.StopInput{LastAssistantMessage: "Done."})
	if !m.Block || m.Reason != "not yet" || m.Stop || len(m.Notices) > 0 {
		t.Errorf("%+v", m)
	}
	if a, b := <-limits, <-limits; a+b != 90*time.Second {
		t.Errorf("limits of %v and %v", a, b)
	}
	var said []string
	for _, m := range w.shown {
		if r, ok := m.(*message.HookResponse); ok {
			said = append(said, r.Stdout)
		}
	}
	if slices.Sort(said); !slices.Equal(said, []string{`{"ok":false,"reason":"not yet"}`, `{"ok":true}`}) {
		t.Errorf("%q", said)
	}

	w = newWorld(t, asked(hook.PreToolUse, `{"type":"prompt","prompt":"x"},{"type":"prompt","prompt":"y","timeout":0.05}`))
	w.ask = func(ctx context.Context, q hookrun.Question) (string, error) {
		if strings.HasPrefix(q.Text, "y") {
			<-ctx.Done()
			return "", errors.New("cut off")
		}
		return "I cannot say.", nil
	}
	m = w.run(&hook.PreToolUseInput{ToolName: "Bash"})
	if m.Permission != "" || m.Stop || len(m.Notices) != 2 || !strings.Contains(m.Notices[0].Text, `field "ok"`) || !strings.Contains(m.Notices[1].Text, "50ms") {
		t.Errorf("%+v", m)
	}
}
