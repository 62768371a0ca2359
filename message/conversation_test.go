package message

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/rawjson"
)

// TestCountToolTurns: counting assistant messages would be wrong.
func TestCountToolTurns(t *testing.T) {
	conform.Covers(t, "L-22")
	use := func(id string, parent *string, names ...string) Message {
		a := &Assistant{Message: APIMessage{ID: id}, ParentToolUseID: parent}
		for _, n := range names {
			a.Message.Content = append(a.Message.Content, NewToolUse("t", n, nil))
		}
		return a
	}
	say := &Assistant{Message: APIMessage{ID: "m9", Content: []Block{NewText("done")}}}
	for _, c := range []struct {
		name string
		msgs []Message
		want int
	}{
		{"nothing", nil, 0},
		{"reference scenario", []Message{
			&Init{}, use("m1", nil, "Bash"), &User{}, use("m2", nil, "Read", "Read"), &User{}, &User{},
			use("m3", nil, "Edit", "Bash"), &User{}, &User{}, say, &Result{Subtype: Success},
		}, 3},
		{"one response in three messages", []Message{
			&Assistant{Message: APIMessage{ID: "m1", Content: []Block{NewText("let me")}}},
			use("m1", nil, "Read"), use("m1", nil, "Read"), say,
		}, 1},
		{"subagents do not count", []Message{use("m1", nil, "Agent"), use("s1", new("t"), "Bash"), use("s2", new("t"), "Bash")}, 1},
		{"without ids", []Message{use("", nil, "Bash"), use("", nil, "Bash")}, 2},
		{"text only", []Message{say, say}, 0},
	} {
		if got := CountToolTurns(c.msgs); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestAccessors(t *testing.T) {
	a := &Assistant{Message: APIMessage{Content: []Block{
		NewThinking("no", ""), NewText("a"), NewToolUse("t1", "Bash", json.RawMessage(`{"x":1}`)), NewText("b"), NewToolUse("t2", "Read", nil),
	}}}
	if a.Text() != "ab" {
		t.Errorf("Text %q", a.Text())
	}
	want := []ToolUse{{"t1", "Bash", json.RawMessage(`{"x":1}`)}, {"t2", "Read", json.RawMessage(`{}`)}}
	if got := a.ToolUses(); !reflect.DeepEqual(got, want) {
		t.Errorf("ToolUses %+v", got)
	}
	u := &User{Message: UserBody{Content: BlockContent(NewText("a"), NewToolResult("t1", TextContent("r"), true))}}
	if got := u.ToolResults(); !reflect.DeepEqual(got, []ToolResult{{"t1", TextContent("r"), true}}) || u.Text() != "a" {
		t.Errorf("ToolResults %+v, text %q", got, u.Text())
	}
	prompt := &User{Message: UserBody{Content: TextContent("hi")}}
	if prompt.ToolResults() != nil || prompt.Text() != "hi" {
		t.Errorf("prompt: %+v, %q", prompt.ToolResults(), prompt.Text())
	}
}

// TestListsAreNeverNull: what is always there and a list is [] when empty.
func TestListsAreNeverNull(t *testing.T) {
	conform.Covers(t, "W-230", "W-402", "W-401")
	for _, c := range []struct {
		m    Message
		path []string
		want string
	}{
		{&Assistant{}, []string{"message", "content"}, "[]"},
		{&Assistant{}, []string{"message", "type"}, `"message"`},
		{&Assistant{}, []string{"message", "role"}, `"assistant"`},
		{&Assistant{}, []string{"message", "stop_reason"}, "null"},
		{&Assistant{}, []string{"message", "model"}, `""`},
		{&Assistant{}, []string{"parent_tool_use_id"}, "null"},
		{&Assistant{Message: APIMessage{Type: "t", Role: "r"}}, []string{"message", "type"}, `"t"`},
		{&User{}, []string{"message", "role"}, `"user"`},
		{&User{}, []string{"message", "content"}, "[]"},
		{&User{Message: UserBody{Content: TextContent("")}}, []string{"message", "content"}, `""`},
		{&Init{}, []string{"tools"}, "[]"},
		{&Init{}, []string{"mcp_servers"}, "[]"},
		{&Init{}, []string{"slash_commands"}, "[]"},
		{&Init{}, []string{"skills"}, "[]"},
		{&Init{}, []string{"plugins"}, "[]"},
		{&Result{}, []string{"permission_denials"}, "[]"},
		{&Result{PermissionDenials: []PermissionDenial{{}}}, []string{"permission_denials"}, `[{"tool_name":"","tool_use_id":"","tool_input":{}}]`},
		{&BackgroundTasksChanged{}, []string{"tasks"}, "[]"},
		{&CommandsChanged{}, []string{"commands"}, "[]"},
		{&TranscriptMirror{}, []string{"entries"}, "[]"},
		{&StreamEvent{}, []string{"event"}, "{}"},
		{&ControlRequest{}, []string{"request"}, "{}"},
	} {
		raw := []byte(encode(t, c.m))
		for _, key := range c.path {
			raw = rawjson.Member(raw, key)
		}
		if string(raw) != c.want {
			t.Errorf("%T %v is %s, want %s", c.m, c.path, raw, c.want)
		}
	}
	for _, part := range []any{APIMessage{}, &APIMessage{}, UserBody{}, &UserBody{}} {
		raw, err := json.Marshal(part)
		if err != nil || string(rawjson.Member(raw, "content")) != "[]" {
			t.Errorf("%T alone: %s, %v", part, raw, err)
		}
	}
	if _, err := json.Marshal(APIMessage{Content: []Block{{}}}); err == nil {
		t.Error("a zero Block was encoded")
	}
}

// TestStreamEventIsUnmodified: the event passes through with its order of keys
// and its number forms.
func TestStreamEventIsUnmodified(t *testing.T) {
	event := `{"zeta":1.50,"type":"message_start","message":{"usage":{"b":1e3,"a":null}}}`
	if got := string(rawjson.Member([]byte(encode(t, &StreamEvent{Event: json.RawMessage(event)})), "event")); got != event {
		t.Errorf("got %s", got)
	}
}
