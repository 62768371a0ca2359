package agenttest

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRequest(t *testing.T) {
	s := NewServer(t, Forever(Text("a")))
	post(t, s, streaming(conv(
		user(textBlock("one"), marked(textBlock("two"), "1h")),
		assistant(thought, use("t1"), use("t2")),
		user(`{"type":"tool_result","tool_use_id":"t1","content":[`+textBlock("x")+`,`+image("image/png", png)+`,`+textBlock("y")+`]}`,
			`{"type":"tool_result","tool_use_id":"t2","content":"bad","is_error":true}`),
		user(textBlock("three")),
	), bashDef, `"system":[`+textBlock("be")+`,`+textBlock("brief")+`]`))
	r := s.Last()
	if r.Model() != "test-model" || r.MaxTokens() != 4096 || !r.Stream() || r.Number != 1 || r.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "k" || r.Time.IsZero() {
		t.Errorf("fields: %q %d %v %d %q", r.Model(), r.MaxTokens(), r.Stream(), r.Number, r.Path)
	}
	if r.SystemText() != "be\nbrief" || !slices.Equal(r.ToolNames(), []string{"Bash"}) {
		t.Errorf("system %q, tools %v", r.SystemText(), r.ToolNames())
	}
	same(t, r.Tools()[0].InputSchema, `{"type":"object"}`)
	if r.FirstUserText() != "one\ntwo" || r.UserText() != "three" || r.Turn() != 1 {
		t.Errorf("first %q, last %q, turn %d", r.FirstUserText(), r.UserText(), r.Turn())
	}
	msgs := r.Messages()
	if len(msgs) != 4 || msgs[1].Role != "assistant" || msgs[1].Content[0].Signature != "c2ln" || msgs[1].Content[1].Name != "Bash" {
		t.Errorf("messages %+v", msgs)
	}
	same(t, msgs[1].Content[2].Raw, use("t2"))
	same(t, msgs[0].Content[1].Cache, `{"type":"ephemeral","ttl":"1h"}`)
	results := r.LastToolResults()
	if len(results) != 2 || results[0].Text != "x\ny" || results[0].IsError || results[1].Text != "bad" || !results[1].IsError || results[1].ToolUseID != "t2" {
		t.Errorf("results %+v", results)
	}
	if got, ok := r.ToolResult("t2"); !ok || got.Text != "bad" {
		t.Errorf("ToolResult(t2) = %+v, %v", got, ok)
	}
	if _, ok := r.ToolResult("t3"); ok {
		t.Error("ToolResult(t3) was found")
	}
	same(t, r.Field("tools"), `[{"name":"Bash","input_schema":{"type":"object"}}]`)
	if r.Field("nothing") != nil {
		t.Error("Field of a missing name is not nil")
	}
}

// The walker agrees with encoding/json on every object.
func TestMembersAgreeWithJSON(t *testing.T) {
	values := rapid.OneOf(
		rapid.Just(any(nil)), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Int32(), func(n int32) any { return n }),
		rapid.Map(rapid.SliceOfN(rapid.String(), 0, 3), func(s []string) any { return s }),
		rapid.Map(rapid.MapOfN(rapid.String(), rapid.String(), 0, 3), func(m map[string]string) any { return m }),
	)
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), values, 0, 5).Draw(t, "object")
		data, err := json.Marshal(want)
		if rapid.Bool().Draw(t, "indent") {
			data, err = json.MarshalIndent(want, " ", "\t")
		}
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{}
		members(data, func(key, value []byte) bool {
			got[string(key)] = value
			return true
		})
		var raw map[string]json.RawMessage
		if err := json.Unmarshal(data, &raw); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(raw) {
			t.Fatalf("%d members of %s, want %d", len(got), data, len(raw))
		}
		for k, v := range raw {
			if string(got[k]) != string(v) {
				t.Fatalf("member %q = %s, want %s", k, got[k], v)
			}
		}
	})
}

// FuzzMembers holds that the walker neither panics nor hangs on any text.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\\\""}],"c":true}`, `{"a"`, `{"a":"\`, `[[[`, `{"a":}`, `{,}`, `[1,,2]`, `["a" "b"]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		count := func([]byte) bool { n++; return true }
		members(data, func(_, v []byte) bool { elements(v, count); return count(nil) })
		elements(data, count)
		if n > 4*len(data)+4 {
			t.Fatalf("%d parts of %d bytes", n, len(data))
		}
	})
}
