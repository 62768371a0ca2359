package turnwright_test

import (
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// The origin of a message is that of its result.
func TestInputOrigin(t *testing.T) {
	conform.Covers(t, "M-66", "M-43", "W-46", "W-47")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	s := start(t, base(t, srv))
	for _, tt := range []struct {
		in   turnwright.Input
		want string
	}{
		{turnwright.Input{Text: "a"}, ""},
		{turnwright.Input{Text: "b", Human: true}, message.OriginHuman},
		{turnwright.Input{Text: "c", Synthetic: true}, message.OriginUnclassified},
	} {
		if _, err := s.Send(t.Context(), tt.in); err != nil {
			t.Fatal(err)
		}
		got := ""
		r := readTurn(t, s).result
		if r.Origin != nil {
			got = r.Origin.Kind
		}
		if got != tt.want || (r.UserMessageUUID == "") != tt.in.Synthetic {
			t.Errorf("%q: origin %q, want %q, %+v", tt.in.Text, got, tt.want, r)
		}
	}
}

// A status message tells of a changed mode, once.
func TestModeIsTold(t *testing.T) {
	conform.Covers(t, "M-69", "W-91")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	s := start(t, base(t, srv))
	for _, mode := range []turnwright.PermissionMode{turnwright.ModeDefault, turnwright.ModePlan, turnwright.ModePlan} {
		if err := s.SetPermissionMode(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetModel(t.Context(), "claude-opus-4-1"); err != nil {
		t.Fatal(err)
	}
	send(t, s, "go")
	var told []string
	for _, m := range readTurn(t, s).messages {
		switch m := m.(type) {
		case *message.Status:
			told = append(told, "status "+m.PermissionMode)
		case *turnwright.InitMessage:
			told = append(told, "init "+m.PermissionMode)
		}
	}
	if len(told) != 2 || told[0] != "status plan" || told[1] != "init plan" {
		t.Errorf("%q", told)
	}
}

// A blank message is given back like every other, and is kept nowhere.
func TestReplayOfBlank(t *testing.T) {
	conform.Covers(t, "M-40", "M-41", "L-192", "W-243")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	o := base(t, srv)
	o.ReplayUserMessages = true
	s := start(t, o)
	id := send(t, s, " ")
	out := readTurn(t, s)
	if u, ok := out.messages[1].(*turnwright.UserMessage); !ok || !u.IsReplay || u.UUID != id || u.Text() != " " {
		t.Errorf("%s: %+v", out.shape(), out.messages[1])
	}
	send(t, s, "go")
	readTurn(t, s)
	if got := srv.Last().Messages(); len(got) != 1 {
		t.Errorf("the model got %d messages", len(got))
	}
}
