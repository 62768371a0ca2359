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

// TestContractQueueOrder starts a turn for each message that waited, in order
// of arrival, each with its own result.
func TestContractQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-187", "L-188", "L-189", "M-39", "M-40", "M-41", "M-59", "M-108")
		srv, o := inMemory(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
			return agenttest.Delay(agenttest.Text("re: "+r.UserText()), time.Second)
		}))
		o.ReplayUserMessages = true
		s := start(t, o)
		var ids []string
		for i := range 5 {
			ids = append(ids, send(t, s, fmt.Sprint("message ", i)))
			time.Sleep(100 * time.Millisecond) // while the first turn runs
		}
		out := readAll(t, s)
		if want := strings.TrimSpace(strings.Repeat("init user() assistant(text) result(success) ", 5)); out.shape() != want {
			t.Errorf("%s", out.shape())
		}
		for i, r := range out.results() {
			if r.UserMessageUUID != ids[i] || *r.Result != fmt.Sprint("re: message ", i) {
				t.Errorf("result %d: of %s, %q", i, r.UserMessageUUID, *r.Result)
			}
		}
		i := 0
		for _, m := range out.messages {
			if u, ok := m.(*turnwright.UserMessage); ok {
				if !u.IsReplay || u.UUID != ids[i] || u.SessionID != s.ID() || u.Text() != fmt.Sprint("message ", i) {
					t.Errorf("replay %d: %+v", i, u)
				}
				i++
			}
		}
		if srv.Count() != 5 {
			t.Errorf("%d requests", srv.Count())
		}
	})
}

// TestContractSteering hands a message to the model together with the results
// of the running calls, when the session or the message asks for it.
func TestContractSteering(t *testing.T) {
	for _, tt := range []struct {
		session bool
		message *bool
		steers  bool
	}{{false, nil, false}, {true, nil, true}, {false, new(true), true}, {true, new(false), false}} {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "L-188", "L-189", "M-11")
			srv, o := inMemory(t, agenttest.Script(calls("look a"), agenttest.Text("one"), agenttest.Text("two")))
			var tr track
			o.CustomTools, o.AllowedTools, o.Steer = tr.tools(), []string{"look"}, tt.session
			s := start(t, o)
			send(t, s, "go")
			time.Sleep(500 * time.Millisecond) // look takes a second
			if _, err := s.Send(t.Context(), turnwright.Input{Text: "mind the gap", Steer: tt.message}); err != nil {
				t.Fatal(err)
			}
			out := readAll(t, s)
			if n := len(out.results()); (n == 1) != tt.steers {
				t.Errorf("%+v: %s", tt, out.shape())
			}
			second := srv.Requests()[1]
			last := second.Messages()[len(second.Messages())-1].Content
			if got := last[0].Type == "tool_result" && len(last) == 2 && strings.Contains(last[1].Text, "mind the gap"); got != tt.steers {
				t.Errorf("%+v: the second request ends with %+v", tt, last)
			}
		})
	}
}

// TestContractInterrupts ends a turn at every stage: the receipt comes before
// the result, calls that ran or did not run have results, and the next prompt
// gives a valid request and its own answer.
func TestContractInterrupts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		first  agenttest.Step
		after  time.Duration
		reason message.TerminalReason
		shape  string
	}{
		{"at once", agenttest.Never(), 0, message.TerminalAbortedStreaming, "init result(error_during_execution)"},
		{"before headers", agenttest.Never(), time.Second, message.TerminalAbortedStreaming, "init result(error_during_execution)"},
		{"before a block", agenttest.Hold(agenttest.Text("x"), 1), time.Second, message.TerminalAbortedStreaming, "init result(error_during_execution)"},
		{"in a text", agenttest.Hold(agenttest.DeltaSize(agenttest.Text("part of it"), 4), 3), time.Second, message.TerminalAbortedStreaming, "init assistant(text) result(error_during_execution)"},
		{"slow deltas", agenttest.DelayEach(agenttest.DeltaSize(agenttest.Text(strings.Repeat("word ", 50)), 5), 500*time.Millisecond), 3 * time.Second, message.TerminalAbortedStreaming, "init assistant(text) result(error_during_execution)"},
		{"in a call's input", agenttest.Hold(agenttest.Blocks(agenttest.Text("now"), agenttest.DeltaSize(noteCall("some text"), 3)), agenttest.AfterBlocks(1)), time.Second, message.TerminalAbortedStreaming, "init assistant(text) result(error_during_execution)"},
		{"in a tool", calls("change a", "change b", "look c"), 500 * time.Millisecond, message.TerminalAbortedTools, "init assistant(change,change,look) user(error) user(error) user(error) result(error_during_execution)"},
		{"between tools", calls("change a", "change b"), 1500 * time.Millisecond, message.TerminalAbortedTools, "init assistant(change,change) user(ok) user(error) result(error_during_execution)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conform.Covers(t, "L-194", "L-195", "L-196", "L-197", "L-198", "L-203", "M-29", "M-105", "M-111", "B-173", "B-174")
				srv, o := inMemory(t, agenttest.Script(tt.first, agenttest.Text("fine")))
				o.CustomTools, o.AllowedTools = napping(), []string{"look", "change"}
				s := start(t, o)
				send(t, s, "go")
				if tt.after > 0 {
					time.Sleep(tt.after)
				}
				begin := time.Now()
				rec, err := s.Interrupt(t.Context())
				if err != nil || !rec.Running || len(rec.StillQueued) > 0 {
					t.Fatalf("receipt %+v, %v", rec, err)
				}
				if _, err := s.Interrupt(t.Context()); err != nil { // again is harmless
					t.Error(err)
				}
				out := readTurn(t, s)
				if d := time.Since(begin); d > time.Second {
					t.Errorf("it took %v", d)
				}
				r := out.result
				if out.shape() != tt.shape || r.TerminalReason != tt.reason || r.Subtype != turnwright.ErrorDuringExecution || r.Result != nil || len(r.Errors) == 0 {
					t.Errorf("%s: %+v", out.shape(), r)
				}
				for _, a := range out.assistants() {
					if a.Aborted != (tt.reason == message.TerminalAbortedStreaming) || a.Aborted && a.Message.StopReason != nil {
						t.Errorf("%+v", a)
					}
				}
				if bad := out.unpaired(); len(bad) > 0 {
					t.Errorf("unpaired: %q", bad)
				}
				before := srv.Count()
				send(t, s, "next")
				if r := readTurn(t, s).result; r.IsError {
					t.Fatalf("the next turn: %+v", r)
				}
				if before == 0 { // the first request never left, so its step is still there
					return
				}
				if got := srv.Last().UserText(); !strings.Contains(got, "next") {
					t.Errorf("the next request's prompt is %q", got)
				}
				if rec, err := s.Interrupt(t.Context()); err != nil || rec.Running {
					t.Errorf("after the result: %+v, %v", rec, err)
				}
			})
		})
	}
}

// napping are tools that take a second and heed their context.
func napping() []turnwright.Tool {
	nap := func(ctx context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Second):
			return in.Name, nil
		}
	}
	return []turnwright.Tool{
		turnwright.NewTool("look", "Looks.", nap, turnwright.ReadOnly()), turnwright.NewTool("change", "Changes.", nap),
	}
}

// TestContractSourceError yields the error of a source after the turns that
// were queued before it; an error result does not end the stream.
func TestContractSourceError(t *testing.T) {
	conform.Covers(t, "L-187", "L-199", "L-203")
	broken := errors.New("the pipe broke")
	for _, how := range []string{"error", "panic", "end"} {
		srv := agenttest.NewServer(t, agenttest.Script(
			agenttest.Text("one"), agenttest.HTTPError(400, "invalid_request_error", "no"), agenttest.Text("three"),
		))
		source := func(yield func(turnwright.Input, error) bool) {
			for _, text := range []string{"a", "b", "c"} {
				if !yield(turnwright.Input{Text: text}, nil) {
					return
				}
			}
			switch how {
			case "error":
				yield(turnwright.Input{}, broken)
			case "panic":
				panic("in the source")
			}
		}
		var out outcome
		for m, err := range turnwright.QueryInputs(t.Context(), source, base(t, srv)) {
			if err != nil {
				out.err = err
				break
			}
			out.add(m)
		}
		if want := "init assistant(text) result(success) init assistant(text) result(error_during_execution) init assistant(text) result(success)"; out.shape() != want {
			t.Errorf("%s: %s", how, out.shape())
		}
		var panicked *turnwright.SourceError
		switch {
		case how == "error" && !errors.Is(out.err, broken), how == "panic" && !errors.As(out.err, &panicked), how == "end" && out.err != nil:
			t.Errorf("%s: %v", how, out.err)
		}
	}
}

// TestContractStoredMessages keeps messages that start no turn and gives them
// to the model with the next one that does.
func TestContractStoredMessages(t *testing.T) {
	conform.Covers(t, "L-191", "L-200")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	s := start(t, base(t, srv))
	for _, text := range []string{"fact one", "fact two"} {
		if _, err := s.Send(t.Context(), turnwright.Input{Text: text, NoQuery: true}); err != nil {
			t.Fatal(err)
		}
	}
	picture := message.NewImage("image/png", onePixel)
	broken := message.NewImage("image/bmp", onePixel)
	if _, err := s.Send(t.Context(), turnwright.Input{Text: "look", Blocks: []turnwright.Block{picture, broken}}); err != nil {
		t.Fatal(err)
	}
	out := readAll(t, s)
	if len(out.results()) != 1 || srv.Count() != 1 {
		t.Errorf("%s", out.shape())
	}
	all := string(srv.Last().Field("messages"))
	for _, want := range []string{"fact one", "fact two", "look", `"image/png"`, "cannot be processed"} {
		if !strings.Contains(all, want) {
			t.Errorf("the request has no %q: %s", want, all)
		}
	}
	if strings.Contains(all, `"media_type":"image/bmp"`) {
		t.Error("an image that the API cannot read was sent")
	}
}

// TestContractBlank answers a message of nothing but white space without the model.
func TestContractBlank(t *testing.T) {
	conform.Covers(t, "L-192", "L-20", "L-61")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	s := start(t, base(t, srv))
	send(t, s, " \n\t ")
	out := readTurn(t, s)
	const text = "Blank prompt — the message was only whitespace, so nothing was sent to the model."
	r := out.result
	if out.shape() != "init informational result(success)" || *r.Result != text || r.NumTurns != 0 || r.TerminalReason != "" || srv.Count() != 0 {
		t.Errorf("%s: %+v, %d requests", out.shape(), r, srv.Count())
	}
	if n, ok := out.messages[1].(*turnwright.InformationalMessage); ok && n.Content != text {
		t.Errorf("%+v", n)
	}
	send(t, s, "a real one")
	if r := readTurn(t, s).result; r.IsError {
		t.Errorf("%+v", r)
	}
}
