package turnwright_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// failing answers with an error status and a request id.
func failing(status int, kind, text string, headers ...string) agenttest.Step {
	return agenttest.HTTPError(status, kind, text, append(headers, "request-id", "req_42")...)
}

// TestContractAPIErrors lets the API fail for good in every way: an assistant
// message with the text and category, then one result with the status. The
// prompt stays in the history.
func TestContractAPIErrors(t *testing.T) {
	none := 0
	for _, tt := range []struct {
		name     string
		step     agenttest.Step
		category message.ErrorCategory
		status   int
		text     string // the error contains all of this, parts divided by |
		requests int
	}{
		{"400", failing(400, "invalid_request_error", "bad field"), "invalid_request", 400, "API Error: 400 bad field|(request id req_42)", 1},
		{"401", failing(401, "authentication_error", "invalid x-api-key"), "authentication_failed", 401, "API Error: 401 invalid x-api-key", 1},
		{"402", failing(402, "billing_error", "no credit"), "billing_error", 402, "402 no credit", 1},
		{"credit", failing(400, "invalid_request_error", "Your credit balance is too low"), "billing_error", 400, "credit balance", 1},
		{"403", failing(403, "permission_error", "not yours"), "authentication_failed", 403, "403 not yours", 1},
		{"404", failing(404, "not_found_error", "model: nothing"), "model_not_found", 404, "404 model: nothing", 1},
		{"413", failing(413, "request_too_large", "too big"), "invalid_request", 413, "too big", 1},
		{"429", failing(429, "rate_limit_error", "slow down"), "rate_limit", 429, "API Error: Request rejected (429)", 11},
		{"429 spent", failing(429, "rate_limit_error", "spent", "x-should-retry", "false"), "rate_limit", 429, "Request rejected (429)", 1},
		{"429 far", failing(429, "rate_limit_error", "later", "retry-after", "61"), "rate_limit", 429, "Request rejected (429)", 1},
		{"500", failing(500, "api_error", "Internal"), "server_error", 500, "API Error: 500 Internal|(request id req_42)|check the endpoint", 11},
		{"503", agenttest.RawHTTP(503, "text/html", "<html>upstream</html>"), "server_error", 503, "API Error: 503", 11},
		{"529", failing(529, "overloaded_error", "Overloaded"), "overloaded", 529, "API Error: Repeated 529 Overloaded errors|(request id req_42)", 11},
		{"cut", agenttest.CutAfterEvent(agenttest.Text("lost"), 2), "unknown", none, "API Error: ", 11},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conform.Covers(t, "L-60", "L-64", "L-84", "L-86", "L-87", "L-88", "L-89", "L-90", "L-101", "L-107", "L-108", "L-109", "L-110", "L-111", "L-204", "L-20", "L-57", "M-56", "M-58", "M-76")
				var steps []agenttest.Step
				for range tt.requests {
					steps = append(steps, tt.step)
				}
				srv, o := inMemory(t, agenttest.Script(append(steps, agenttest.Text("back"))...))
				s := start(t, o)
				send(t, s, "go")
				out := readTurn(t, s)
				if want := "init" + strings.Repeat(" api_retry", tt.requests-1) + " assistant(text) result(error_during_execution)"; out.shape() != want || srv.Count() != tt.requests {
					t.Errorf("%s after %d requests, want %s", out.shape(), srv.Count(), want)
				}
				r, a := out.result, out.assistants()[0]
				reason := message.TerminalAPIError
				if tt.status == 404 {
					reason = message.TerminalModelError // of L-60: the model is not available
				}
				if a.Error != tt.category || r.TerminalReason != reason || !r.IsError || r.Result != nil || r.NumTurns != 0 || len(r.Errors) != 1 || r.Errors[0] != a.Text() {
					t.Errorf("category %q, text %q, %+v", a.Error, a.Text(), r)
				}
				for part := range strings.SplitSeq(tt.text, "|") {
					if !strings.Contains(a.Text(), part) {
						t.Errorf("text %q has no %q", a.Text(), part)
					}
				}
				if strings.Contains(a.Text(), "status.claude.com") {
					t.Errorf("%q names the vendor's status page for a server of one's own", a.Text())
				}
				if got := r.APIErrorStatus; tt.status == none && got != nil || tt.status != none && (got == nil || *got != tt.status) {
					t.Errorf("api_error_status %v, want %d", got, tt.status)
				}
				for i, n := range out.retries() {
					if n.Attempt != i+1 || n.MaxRetries != 10 || n.Error != tt.category || n.RetryDelayMS <= 0 || (n.ErrorStatus == nil) != (tt.status == none) {
						t.Errorf("retry %d: %+v", i, n)
					}
				}
				send(t, s, "again") // the prompt is still there, the error text is not
				if out := readTurn(t, s); out.result.IsError {
					t.Fatalf("%+v", out.result)
				}
				var users []string
				for _, m := range srv.Last().Messages() {
					for _, b := range m.Content {
						users = append(users, m.Role+": "+b.Text)
					}
				}
				if got := strings.Join(users, ", "); got != "user: go, user: again" {
					t.Errorf("the next request holds %s", got)
				}
			})
		})
	}
}

// TestContractRetryBudget takes the number of retries from the environment, at
// most 15, and waits as long as the notice says.
func TestContractRetryBudget(t *testing.T) {
	for env, want := range map[string]int{"": 10, "0": 0, "3": 3, "15": 15, "99": 15} {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "L-84", "L-85", "L-86", "M-76", "B-165")
			srv, o := inMemory(t, agenttest.Forever(failing(529, "overloaded_error", "Overloaded")))
			o.Env["CLAUDE_CODE_MAX_RETRIES"] = env
			out := query(t, "go", o)
			if n := len(out.retries()); n != want || srv.Count() != want+1 {
				t.Errorf("%q: %d notices, %d requests", env, n, srv.Count())
			}
			reqs := srv.Requests()
			for i, n := range out.retries() {
				if n.MaxRetries != want {
					t.Errorf("%q: %+v", env, n)
				}
				waited := reqs[i+1].Time.Sub(reqs[i].Time).Milliseconds()
				if waited < n.RetryDelayMS || waited > n.RetryDelayMS+100 {
					t.Errorf("retry %d: waited %d ms, announced %d", i, waited, n.RetryDelayMS)
				}
				// 0.5 s, doubled each time to 32 s, less up to a quarter.
				if full := min(500<<i, 32000); n.RetryDelayMS > int64(full) || n.RetryDelayMS < int64(full)*3/4-1 {
					t.Errorf("retry %d: %d ms, not within a quarter of %d", i, n.RetryDelayMS, full)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-88")
		_, o := inMemory(t, agenttest.Script(failing(429, "rate_limit_error", "wait", "retry-after", "37"), agenttest.Text("hi")))
		begin := time.Now()
		if out := query(t, "go", o); out.err != nil || out.retries()[0].RetryDelayMS != 37_000 || time.Since(begin) < 37*time.Second {
			t.Errorf("%+v after %v, %v", out.retries(), time.Since(begin), out.err)
		}
	})
}

// TestContractTimeouts bounds a request, and the silence of a response.
func TestContractTimeouts(t *testing.T) {
	thought := agenttest.Blocks(agenttest.Thinking("hm", "sig"), agenttest.Text("and so on"))
	for _, tt := range []struct {
		name     string
		env      [2]string
		step     agenttest.Step
		requests int
		attempt  time.Duration // how long one takes, at least
		text     string
	}{
		{"never", [2]string{"API_TIMEOUT_MS", "60000"}, agenttest.Never(), 11, time.Minute, "Request timed out"},
		{"silent", [2]string{"TURNWRIGHT_STREAM_IDLE_MS", "1000"}, agenttest.Hold(agenttest.Text("x"), 0), 2, time.Second, "The response stalled before a response was produced"},
		{"silent, floor", [2]string{"CLAUDE_STREAM_IDLE_TIMEOUT_MS", "1000"}, agenttest.Hold(agenttest.Text("x"), 0), 2, 5 * time.Minute, "The response stalled before a response was produced"},
		{"after thinking", [2]string{"TURNWRIGHT_STREAM_IDLE_MS", "1000"}, agenttest.Hold(thought, agenttest.AfterBlocks(1)), 2, time.Second, "The response stalled before a response was produced"},
		{"lost after thinking", [2]string{}, agenttest.CutAfterEvent(thought, agenttest.AfterBlocks(1)), 3, 0, "Connection lost before a response was produced"},
		{"pings do not hide it", [2]string{"TURNWRIGHT_STREAM_IDLE_MS", "60000"}, agenttest.HoldPinging(agenttest.Text("x"), 1, time.Second), 2, time.Minute, "stalled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conform.Covers(t, "L-91", "L-92", "L-104", "L-105", "B-168", "K-231")
				srv, o := inMemory(t, agenttest.Forever(tt.step))
				if tt.env[0] != "" {
					o.Env[tt.env[0]] = tt.env[1]
				}
				begin := time.Now()
				out := query(t, "go", o)
				if srv.Count() != tt.requests || len(out.retries()) != tt.requests-1 {
					t.Errorf("%d requests, %s", srv.Count(), out.shape())
				}
				if d := time.Since(begin); d < time.Duration(tt.requests)*tt.attempt || d > 3*time.Duration(tt.requests)*tt.attempt+10*time.Minute {
					t.Errorf("%v for %d attempts", d, tt.requests)
				}
				if r := out.result; r.Subtype != turnwright.ErrorDuringExecution || !strings.Contains(r.Errors[0], tt.text) || r.APIErrorStatus != nil {
					t.Errorf("%+v", r)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-105", "K-231")
		_, o := inMemory(t, agenttest.Script(agenttest.DelayEach(agenttest.Text("slow but alive"), 4*time.Minute)))
		if out := query(t, "go", o); out.err != nil || len(out.retries()) > 0 {
			t.Errorf("a response that goes on was cut: %s, %v", out.shape(), out.err)
		}
		_, o = inMemory(t, agenttest.Script(agenttest.Delay(agenttest.Text("late"), 9*time.Minute)))
		o.Env["CLAUDE_ENABLE_STREAM_WATCHDOG"] = "0"
		if out := query(t, "go", o); out.err != nil || len(out.retries()) > 0 {
			t.Errorf("the watchdog is off: %s, %v", out.shape(), out.err)
		}
	})
}

// TestContractBroken breaks responses after a finished block: nothing is asked
// for or run twice, and what is complete stands.
func TestContractBroken(t *testing.T) {
	const (
		lost    = "API Error: Connection lost mid-response. The response above may be incomplete."
		server  = "API Error: Server error mid-response. The response above may be incomplete."
		stopped = "API Error: The response stopped arriving. The response above may be incomplete."
	)
	twoCalls := agenttest.Blocks(agenttest.Text("two"), noteCall("a"), noteCall("b"))
	textCall := agenttest.Blocks(agenttest.Text("doing it"), noteCall("a"))
	for _, tt := range []struct {
		name   string
		step   agenttest.Step
		shape  string // of what follows init
		notes  string
		notice string // of the result; "": it is the next response's text
	}{
		{"text, then lost", agenttest.CutAfterEvent(textCall, agenttest.AfterBlocks(1)), "assistant(text) assistant(text) result(success)", "[]", lost},
		{"text, then error", agenttest.StreamError(textCall, agenttest.AfterBlocks(1), "overloaded_error", "Overloaded"), "assistant(text) assistant(text) result(success)", "[]", server},
		{"text, then silence", agenttest.Hold(textCall, agenttest.AfterBlocks(1)), "assistant(text) assistant(text) result(success)", "[]", stopped},
		{"call, then lost", agenttest.CutAfterEvent(twoCalls, agenttest.AfterBlocks(2)), "assistant(text,note) user(ok) assistant(text) result(success)", "[a]", ""},
		{"half a call", agenttest.CutAfterEvent(agenttest.DeltaSize(twoCalls, 0), 9), "assistant(text,note) user(ok) assistant(text) result(success)", "[a]", ""},
		{"text, half a call", agenttest.CutAfterEvent(agenttest.DeltaSize(textCall, 0), 6), "assistant(text) assistant(text) result(success)", "[]", lost},
		{"call, then polite end", agenttest.EndWithout(twoCalls, "message_delta"), "assistant(text,note,note) user(ok) user(ok) assistant(text) result(success)", "[a b]", ""},
		{"only message_stop missing", agenttest.EndWithout(agenttest.Text("next"), "message_stop"), "assistant(text) result(success)", "[]", ""},
		{"error after the stop reason", agenttest.StreamError(agenttest.DeltaSize(agenttest.Text("next"), 0), 5, "api_error", "late"), "assistant(text) result(success)", "[]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conform.Covers(t, "L-93", "L-94", "L-95", "L-96", "L-97", "L-110", "M-58", "M-105", "B-159")
				srv, o := inMemory(t, agenttest.Script(tt.step, agenttest.Text("next"), agenttest.Text("next")))
				var notes []string
				withNote(&o, &notes)
				s := start(t, o)
				send(t, s, "go")
				out := readTurn(t, s)
				if shape := strings.TrimPrefix(out.shape(), "init "); shape != tt.shape || fmt.Sprint(notes) != tt.notes {
					t.Errorf("%s, notes %q, want %s", out.shape(), notes, tt.shape)
				}
				r := out.result
				if tt.notice == "" {
					if r.IsError || *r.Result != "next" || r.TerminalReason != message.TerminalCompleted {
						t.Errorf("%+v", r)
					}
				} else if !r.IsError || r.Subtype != turnwright.Success || !strings.HasPrefix(*r.Result, tt.notice) || r.TerminalReason != message.TerminalAPIError {
					t.Errorf("%+v, result %q", r, *r.Result)
				}
				if bad := out.unpaired(); len(bad) > 0 {
					t.Errorf("unpaired: %q", bad)
				}
				before := srv.Count()
				send(t, s, "go on") // the server refuses a history that the API would
				if r := readTurn(t, s).result; r.IsError || srv.Count() != before+1 {
					t.Errorf("the next prompt: %+v", r)
				}
			})
		})
	}
}

// TestContractShrink asks for fewer tokens when input and answer do not fit
// together.
func TestContractShrink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-99", "L-130")
		srv, o := inMemory(t, agenttest.Script(
			failing(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again"),
			agenttest.Text("fits"),
		))
		out := query(t, "go", o)
		first, second := srv.Requests()[0].MaxTokens(), srv.Last().MaxTokens()
		if out.err != nil || first != 32000 && first != 64000 || second > 10000 || second < 1024 {
			t.Errorf("max_tokens %d, then %d; %v", first, second, out.err)
		}
	})
}

// TestContractInterruptedWait leaves a wait between attempts at once.
func TestContractInterruptedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-194", "L-64", "B-165")
		_, o := inMemory(t, agenttest.Forever(failing(429, "rate_limit_error", "wait", "retry-after", "50")))
		s := start(t, o)
		send(t, s, "go")
		time.Sleep(10 * time.Second)
		begin := time.Now()
		if _, err := s.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		out := readTurn(t, s)
		if out.result.TerminalReason != message.TerminalAbortedStreaming || out.result.Subtype != turnwright.ErrorDuringExecution || time.Since(begin) > time.Second {
			t.Errorf("%+v after %v", out.result, time.Since(begin))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-64", "L-214")
		_, o := inMemory(t, agenttest.Forever(agenttest.Never()))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		var last error
		for _, err := range turnwright.Query(ctx, "go", o) {
			last = err
		}
		if !errors.Is(last, context.DeadlineExceeded) || time.Since(begin) > 13*time.Second {
			t.Errorf("%v after %v", last, time.Since(begin))
		}
	})
}
