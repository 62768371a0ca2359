package anthropic

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

func TestErrorAnswers(t *testing.T) {
	conform.Covers(t, "L-88", "L-89", "L-108", "L-109", "M-28")
	type answer struct {
		status int
		header map[string]string
		body   string
	}
	api := func(typ, msg string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_body"}`, typ, msg)
	}
	for name, c := range map[string]struct {
		answer answer
		want   func(e *model.Error) bool
	}{
		"529": {
			answer{529, nil, api("overloaded_error", "Overloaded")},
			func(e *model.Error) bool {
				return e.Kind == model.KindOverloaded && e.Message == "Overloaded" && e.RequestID == "req_body" && e.Category() == message.CategoryOverloaded
			},
		},
		"429": {
			answer{429, map[string]string{"Retry-After": "7", "X-Should-Retry": "false", "Request-Id": "req_head"}, api("rate_limit_error", "slow")},
			func(e *model.Error) bool {
				return e.Kind == model.KindRateLimit && e.RetryAfter == 7*time.Second && !*e.ShouldRetry && e.RequestID == "req_head" && e.Category() == message.CategoryRateLimit
			},
		},
		"x-should-retry true": {
			answer{409, map[string]string{"X-Should-Retry": "true"}, ""},
			func(e *model.Error) bool { return *e.ShouldRetry && e.Message == "Conflict" },
		},
		"a proxy's page": {
			answer{502, nil, "<html>nginx</html>"},
			func(e *model.Error) bool { return e.Kind == model.KindServer && e.Message == "Bad Gateway" },
		},
		"a proxy's words": {
			answer{503, nil, " no upstream \n"},
			func(e *model.Error) bool { return e.Kind == model.KindServer && e.Message == "no upstream" },
		},
		"an endless body": {
			answer{500, nil, strings.Repeat("é", 5<<20)},
			func(e *model.Error) bool { return e.Kind == model.KindServer && len(e.Message) < 400 },
		},
		"other JSON": {
			answer{400, nil, `{"detail":"bad"}`},
			func(e *model.Error) bool {
				return e.Kind == model.KindInvalidRequest && strings.Contains(e.Message, "detail")
			},
		},
		"redirect": {
			answer{307, map[string]string{"Location": "http://127.0.0.1:1/elsewhere"}, ""},
			func(e *model.Error) bool {
				return e.Kind == model.KindMalformed && strings.Contains(e.Message, "redirect")
			},
		},
		"204": {
			answer{204, nil, ""},
			func(e *model.Error) bool { return e.Kind == model.KindUnknown && e.Status == 204 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			cl := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for k, v := range c.answer.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.answer.status)
				_, _ = io.WriteString(w, c.answer.body)
			})
			r, err := cl.Stream(t.Context(), hello, nil)
			e := asError(t, err)
			if r != nil || !c.want(e) || e.Host != cl.host {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestRetryAfterForms(t *testing.T) {
	conform.Covers(t, "L-88")
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		h    http.Header
		want time.Duration
	}{
		{http.Header{}, 0},
		{http.Header{"Retry-After": {"30"}}, 30 * time.Second},
		{http.Header{"Retry-After": {" 1.5 "}}, 1500 * time.Millisecond},
		{http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"30"}}, 250 * time.Millisecond},
		{http.Header{"Retry-After": {at(90 * time.Second)}}, 90 * time.Second},
		{http.Header{"Retry-After": {at(-time.Hour)}}, 0},
		// The server's clock is an hour ahead of ours.
		{http.Header{"Retry-After": {at(time.Hour + 5*time.Second)}, "Date": {at(time.Hour)}}, 5 * time.Second},
		{http.Header{"Retry-After": {"-5"}}, 0},
		{http.Header{"Retry-After": {"NaN"}}, 0},
		{http.Header{"Retry-After": {"1e300"}}, 366 * 24 * time.Hour},
		{http.Header{"Retry-After": {"soon"}}, 0},
	} {
		if got := retryAfter(c.h, now); got != c.want {
			t.Errorf("%v: %v, want %v", c.h, got, c.want)
		}
	}
}

func TestErrorEvent(t *testing.T) {
	conform.Covers(t, "B-163")
	over := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_ev"}`
	for name, c := range map[string]struct {
		evs      []string
		kind     model.ErrorKind
		progress model.Progress
	}{
		"first":             {[]string{over}, model.KindOverloaded, model.ProgressNone},
		"after the start":   {[]string{evStart, over}, model.KindOverloaded, model.ProgressNone},
		"after half a text": {[]string{evStart, blockStart(0, `{"type":"text","text":""}`), blockDelta(0, `{"type":"text_delta","text":"ha"}`), over}, model.KindOverloaded, model.ProgressStarted},
		"after a call":      {join([]string{evStart}, call(0, "t", "N"), []string{over}), model.KindOverloaded, model.ProgressBlock},
		"permanent":         {[]string{`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`}, model.KindInvalidRequest, model.ProgressNone},
		"unknown type":      {[]string{`{"type":"error","error":{"type":"strange","message":"no"}}`}, model.KindServer, model.ProgressNone},
		"without a cause":   {[]string{`{"type":"error"}`}, model.KindServer, model.ProgressNone},
	} {
		t.Run(name, func(t *testing.T) {
			cl := serve(t, events(c.evs...))
			r, err := cl.Stream(t.Context(), hello, nil)
			if e := asError(t, err); e.Kind != c.kind || r.Progress() != c.progress || e.Status != 0 || e.RequestID != "req_test" {
				t.Errorf("%+v %s", e, show(r))
			}
		})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		ct, body string
		kind     model.ErrorKind
	}{
		"a page":                 {"text/html", "<html>Sign in</html>", model.KindMalformed},
		"nothing":                {"text/plain", "", model.KindMalformed},
		"another object":         {"application/json", `{"choices":[]}`, model.KindMalformed},
		"an array":               {"application/json", `[]`, model.KindMalformed},
		"half an object":         {"application/json", `{"type":"message","content":[`, model.KindMalformed},
		"an error object":        {"application/json", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, model.KindOverloaded},
		"a message, no reason":   {"application/json", `{"type":"message","id":"m","content":[]}`, model.KindConnection},
		"an empty event stream":  {"text/event-stream", "", model.KindConnection},
		"words as event stream":  {"text/event-stream", "upstream failed\n", model.KindConnection},
		"events that are no API": {"text/event-stream", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", model.KindConnection},
		"no JSON":                {"text/event-stream", "data: oops\n\n", model.KindMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			cl := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.ct)
				_, _ = io.WriteString(w, c.body)
			})
			r, err := cl.Stream(t.Context(), hello, nil)
			if e := asError(t, err); e.Kind != c.kind || e.Message == "" && e.Kind != model.KindOverloaded || e.Host == "" {
				t.Errorf("%+v %s", e, show(r))
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	conform.Covers(t, "L-90", "L-109")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	c, err := New(Config{BaseURL: "http://user:hidden@" + addr, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Call(t.Context(), c, hello, model.CallOptions{MaxRetries: new(0)})
	e := asError(t, err)
	if e.Kind != model.KindConnection || e.Status != 0 || !strings.Contains(e.Text, addr) || strings.Contains(e.Text, "hidden") || strings.Contains(e.Text, "Post") || strings.Contains(e.Text, "claude.com") {
		t.Errorf("%+v", e)
	}
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestCertificates(t *testing.T) {
	conform.Covers(t, "L-98")
	var n atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		events(whole...)(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	c, err := New(Config{BaseURL: srv.URL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	_, err = model.Call(t.Context(), c, hello, model.CallOptions{OnRetry: func(message.APIRetry) { tries++ }})
	if e := asError(t, err); e.Kind != model.KindTLS || tries != 0 || n.Load() != 0 || !strings.Contains(e.Text, "certificate") {
		t.Errorf("%+v after %d retries", e, tries)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := FromEnv(env("ANTHROPIC_BASE_URL", srv.URL, "NODE_EXTRA_CA_CERTS", ca))
	if err != nil {
		t.Fatal(err)
	}
	if c, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	defer CloseIdleConnections()
	if _, err = c.Stream(t.Context(), hello, nil); err != nil {
		t.Error(err)
	}
	// A server that speaks no TLS at all is a passing condition.
	plain := httptest.NewServer(events(whole...))
	defer plain.Close()
	if c, err = New(Config{BaseURL: strings.Replace(plain.URL, "http:", "https:", 1), APIKey: "k"}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Stream(t.Context(), hello, nil)
	if e := asError(t, err); e.Kind != model.KindConnection {
		t.Errorf("%+v", e)
	}
}

func TestMissingCredentials(t *testing.T) {
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := model.Call(t.Context(), c, hello, model.CallOptions{})
	e := asError(t, err)
	if r != nil || e.Kind != model.KindAuthentication || e.Attempts != 1 || !strings.Contains(e.Text, "ANTHROPIC_API_KEY") || c.KeySource() != "none" {
		t.Errorf("%+v", e)
	}
	for _, cfg := range []Config{{APIKey: "k"}, {AuthToken: "t"}, {Headers: map[string]string{"x-api-key": "k"}}, {BaseURL: "http://127.0.0.1:1"}} {
		if c, err := New(cfg); err != nil || c.missing {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestBadRequestIsNotSent(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	r := *hello
	r.Marks = []model.Mark{{Where: model.InTools, Index: 4}}
	_, err := c.Stream(t.Context(), &r, nil)
	if e := asError(t, err); e.Kind != model.KindInvalidRequest {
		t.Errorf("%+v", e)
	}
}

// TestEndlessErrorBody holds that an error answer is read to a bound only.
func TestEndlessErrorBody(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("no end ", 1000)); err != nil {
				return
			}
		}
	})
	_, err := c.Stream(t.Context(), hello, nil)
	if e := asError(t, err); e.Kind != model.KindServer || e.Status != 500 || len(e.Message) > 400 {
		t.Errorf("%+v", e)
	}
}
