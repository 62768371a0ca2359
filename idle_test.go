package turnwright_test

import (
	"os"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestWakeFolds continues a session elsewhere while it is idle here: the next
// request has what was said there, the chain is one line, and of the turns each
// run has its own.
func TestWakeFolds(t *testing.T) {
	changesJournals(t)
	conform.Covers(t, "S-27", "K-374")
	for _, resumed := range []bool{false, true} {
		srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
			switch text := r.UserText(); {
			case len(r.LastToolResults()) > 0:
				return agenttest.Text("it is 42")
			case strings.Contains(text, "use a tool"):
				return agenttest.Call("echo", `{"text":"42"}`)
			default:
				return agenttest.Text("answer to " + text)
			}
		}))
		o := onDisk(t, srv)
		o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
		var warned []string
		o.Stderr = func(line string) { warned = append(warned, line) }
		s := start(t, o)
		ask := func(s *turnwright.Session, prompt string) {
			t.Helper()
			if _, err := s.Ask(t.Context(), prompt); err != nil {
				t.Fatal(err)
			}
		}
		ask(s, "one")
		if resumed { // one that has not been used yet
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			o.Resume = s.ID()
			s = start(t, o)
		}
		other := o
		other.Resume = s.ID()
		there := start(t, other)
		ask(there, "two")
		ask(there, "three, use a tool")
		ask(s, "four")
		ask(there, "five") // and the other way round
		if err := there.Close(); err != nil {
			t.Fatal(err)
		}
		ask(s, "six")
		const want = "user:one | assistant:answer to one | user:two | assistant:answer to two | user:three, use a tool | call:echo | result:42 | " +
			"assistant:it is 42 | user:four | assistant:answer to four | user:five | assistant:answer to five | user:six"
		if got := said(srv.Last()); got != want {
			t.Errorf("resumed %v: the model is told\n%s, want\n%s", resumed, got, want)
		}
		raw, err := os.ReadFile(transcript(t, o, s.ID()))
		if err != nil {
			t.Fatal(err)
		}
		oneLine(t, raw)
		if len(warned) > 0 {
			t.Errorf("resumed %v: warnings %q", resumed, warned)
		}
	}
}
