package message

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

func decode[T Message](t *testing.T, line string) T {
	t.Helper()
	m, err := Decode([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	typed, ok := m.(T)
	if !ok {
		t.Fatalf("%s is a %T", line, m)
	}
	return typed
}

func encode(t *testing.T, m Message) string {
	t.Helper()
	line, err := Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func TestDecodeErrors(t *testing.T) {
	conform.Covers(t, "M-1", "W-400")
	for _, c := range []struct {
		line  string
		is    error
		kind  string
		field string
	}{
		{"", ErrNotObject, "", ""},
		{"  \r\n", ErrNotObject, "", ""},
		{"[]", ErrNotObject, "", ""},
		{"null", ErrNotObject, "", ""},
		{"Warning: x", ErrNotObject, "", ""},
		{`{"type":"user"`, ErrNotObject, "", ""},
		{`{"type":"keep_alive"} {"type":"keep_alive"}`, ErrNotObject, "", ""},
		{`{"type":"keep_alive"}{`, ErrNotObject, "", ""},
		{`{}`, ErrNoType, "", ""},
		{`{"type":""}`, ErrNoType, "", ""},
		{`{"type":7}`, ErrNoType, "", ""},
		{`{"Type":"user"}`, ErrNoType, "", ""},
		{`{"type":"result","subtype":"success","num_turns":"4"}`, nil, "result/success", "num_turns"},
		{`{"type":"result","subtype":"success","num_turns":1e300}`, nil, "result/success", "num_turns"},
		{`{"type":"result","modelUsage":{"m":{"costUSD":1e999}}}`, nil, "result", "modelUsage.m.costUSD"},
		{`{"type":"result","permission_denials":[{"tool_name":"B"},{"tool_name":1}]}`, nil, "result", "permission_denials[1].tool_name"},
		{`{"type":"assistant","message":{"content":"hi"}}`, nil, "assistant", "message.content"},
		{`{"type":"assistant","message":{"content":[{"type":"text"},{"text":"x"}]}}`, ErrNoType, "assistant", "message.content[1]"},
		{`{"type":"user","message":{"content":[7]}}`, ErrNotObject, "user", "message.content[0]"},
		{`{"type":"user","message":{"content":{}}}`, nil, "user", "message.content"},
		{`{"type":"system","subtype":"init","tools":{"a":1}}`, nil, "system/init", "tools"},
		{`{"type":"system","subtype":"init","cwd":["a"]}`, nil, "system/init", "cwd"},
		{`{"type":"auth_status","isAuthenticating":"yes"}`, nil, "auth_status", "isAuthenticating"},
	} {
		m, err := Decode([]byte(c.line))
		var de *DecodeError
		if !errors.As(err, &de) || m != nil {
			t.Errorf("Decode(%s) = %v, %v", c.line, m, err)
			continue
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("Decode(%s): %v is not %v", c.line, err, c.is)
		}
		if de.Kind != c.kind || de.Field != c.field {
			t.Errorf("Decode(%s): kind %q, field %q, want %q, %q", c.line, de.Kind, de.Field, c.kind, c.field)
		}
		if c.field != "" && (!strings.Contains(err.Error(), c.field) || de.Value == "") {
			t.Errorf("Decode(%s): %v names no field and value", c.line, err)
		}
	}
}

// TestUnknown: types and subtypes that this version does not know come through
// whole, as do keys and enum values.
func TestUnknown(t *testing.T) {
	conform.Covers(t, "M-2", "M-107")
	for _, c := range []struct{ line, typ, subtype string }{
		{`{"type":"telepathy","x":{"b":1,"a":2}}`, "telepathy", ""},
		{`{"x":1, "subtype":"s","type":"telepathy" }`, "telepathy", "s"},
		{`{"type":"system","subtype":"brand_new","x":[1,2]}`, "system", "brand_new"},
		{`{"type":"system","x":1}`, "system", ""},
		{`{"type":"system","subtype":7}`, "system", ""},
		{`{"type":"System","subtype":"init"}`, "System", "init"},
	} {
		m := decode[*Unknown](t, c.line)
		if typ, subtype := m.Kind(); typ != c.typ || subtype != c.subtype {
			t.Errorf("%s has the kind %q, %q", c.line, typ, subtype)
		}
		if got := encode(t, m); got != c.line {
			t.Errorf("%s became %s", c.line, got)
		}
	}
	for _, line := range []string{
		`{"session_id":"s","type":"assistant", "message":{"content":[{"x":1,"type":"hologram"}],"model":"m","new":null},"error":"sunspots","zzz":{"a" : [1.50]}}`,
		`{"type":"result","subtype":"error_of_tomorrow","terminal_reason":"sunspots","result":"x","errors":["y"]}`,
		`{"type":"result","subtype":"success","result":"x","errors":[]}`,
		`{"type":"system","subtype":"init","mcp_servers":[{"status":"dreaming","name":"x","y":1}],"permissionMode":"yolo"}`,
		`{"type":"system","subtype":"status","status":"singing"}`,
		`{"type":"user","message":{"role":"user","content":"a\u003cb"},"origin":{"kind":"ghost","boo":true},"Uuid":"x"}`,
		`{"type":"user","type":"user","uuid":"a","uuid":"b"}`,
		"{\"type\":\"keep_alive\",\"x\":\"\u2028 raw\"}",
	} {
		m, err := Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.(*Unknown); ok {
			t.Errorf("%s is unknown", line)
		}
		if got := encode(t, m); got != line {
			t.Errorf("%s became %s", line, got)
		}
	}
	a := decode[*Assistant](t, `{"type":"assistant","error":"sunspots","message":{"content":[{"x":1,"type":"hologram"}]}}`)
	if a.Error != "sunspots" || a.Message.Content[0].Type() != "hologram" || string(a.Message.Content[0].Raw()) != `{"x":1,"type":"hologram"}` {
		t.Errorf("decoded %+v", a)
	}
	u := decode[*User](t, `{"type":"user","Uuid":"x","message":{"Content":"y"}}`)
	if u.UUID != "" || !u.Message.Content.IsZero() {
		t.Errorf("keys of another case were taken: %+v", u)
	}
}

// TestChanged: a changed message has its known fields in canonical form and
// then the unknown keys it came with, at every level.
func TestChanged(t *testing.T) {
	conform.Covers(t, "M-2")
	for _, c := range []struct {
		name   string
		line   string
		change func(Message)
		want   string
	}{
		{
			"header", `{ "x":1, "uuid":"a", "type":"prompt_suggestion", "suggestion":"\u0041", "y" : { "b" : 1.0 } }`,
			func(m Message) { m.Head().UUID = "b" },
			`{"type":"prompt_suggestion","suggestion":"A","uuid":"b","x":1,"y":{"b":1.0}}`,
		},
		{
			"nested", `{"type":"assistant","message":{"usage":{"tier2":1,"input_tokens":5},"id":"m","container":null,"content":[{"type":"text","text":"x","citations":[]}]},"research":true}`,
			func(m Message) { m.(*Assistant).Message.Model = "z" },
			`{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"z","content":[{"type":"text","text":"x","citations":[]}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":"","tier2":1},"container":null},"parent_tool_use_id":null,"research":true}`,
		},
		{
			"list of the same length", `{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"a","n":1},{"task_id":"b","n":2}]}`,
			func(m Message) { m.(*BackgroundTasksChanged).Tasks[1].TaskType = "local_bash" },
			`{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"a","task_type":"","description":"","n":1},{"task_id":"b","task_type":"local_bash","description":"","n":2}]}`,
		},
		{
			"shorter list", `{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"a","n":1},{"task_id":"b","n":2}]}`,
			func(m Message) { b := m.(*BackgroundTasksChanged); b.Tasks = b.Tasks[1:] },
			`{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b","task_type":"","description":"","n":2}]}`,
		},
		{
			"map", `{"type":"result","subtype":"success","modelUsage":{"a":{"costUSD":1,"n":1},"b":{"n":2}},"errors":[]}`,
			func(m Message) { delete(m.(*Result).ModelUsage, "b") },
			`{"type":"result","subtype":"success","is_error":false,"duration_ms":0,"duration_api_ms":0,"num_turns":0,"tool_turns":0,"result":"","stop_reason":null,"modelUsage":{"a":{"inputTokens":0,"outputTokens":0,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":1,"contextWindow":0,"maxOutputTokens":0,"n":1}},"permission_denials":[]}`,
		},
		{
			"success into error", `{"type":"result","subtype":"success","result":"x","fast_mode_state":"off"}`,
			func(m Message) { m.(*Result).Subtype = ErrorMaxTurns },
			`{"type":"result","subtype":"error_max_turns","is_error":false,"duration_ms":0,"duration_api_ms":0,"num_turns":0,"tool_turns":0,"errors":[],"stop_reason":null,"permission_denials":[],"fast_mode_state":"off"}`,
		},
		{
			"unset", `{"type":"user","isSynthetic":true,"message":{"content":"x"},"origin":{"kind":"human"}}`,
			func(m Message) { u := m.(*User); u.IsSynthetic, u.Origin = false, nil },
			`{"type":"user","message":{"role":"user","content":"x"},"parent_tool_use_id":null}`,
		},
		{
			"stray subtype", `{"type":"keep_alive","subtype":"x"}`,
			func(m Message) { m.Head().UUID = "u" },
			`{"type":"keep_alive","uuid":"u","subtype":"x"}`,
		},
		{
			"unknown", `{"n":1,"type":"telepathy","uuid":"a"}`,
			func(m Message) { m.Head().UUID = "b" },
			`{"type":"telepathy","uuid":"b","n":1}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Decode([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			c.change(m)
			if got := encode(t, m); got != c.want {
				t.Errorf("got\n%s, want\n%s", got, c.want)
			}
			if string(m.Head().Raw()) != c.line {
				t.Errorf("Raw changed: %s", m.Head().Raw())
			}
		})
	}
}

// TestChangedBack: what counts is the value, not that a field was written to.
func TestChangedBack(t *testing.T) {
	line := `{"x":1, "type":"prompt_suggestion","suggestion":"s"}`
	m := decode[*PromptSuggestion](t, line)
	m.Suggestion = "t"
	m.Suggestion = "s"
	if got := encode(t, m); got != line {
		t.Errorf("got %s", got)
	}
}

// TestForeignHeader: a header copied from a message of another type brings no
// keys along.
func TestForeignHeader(t *testing.T) {
	from := decode[*PromptSuggestion](t, `{"type":"prompt_suggestion","suggestion":"s","uuid":"u","x":1}`)
	got := encode(t, &LocalCommandOutput{Content: "c", Header: from.Header})
	if want := `{"type":"system","subtype":"local_command_output","content":"c","uuid":"u"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestIllFormedLines: what is no legal line itself is not written again as it
// came.
func TestIllFormedLines(t *testing.T) {
	conform.Covers(t, "M-1", "W-25")
	for in, want := range map[string]string{
		"{\n \"type\": \"keep_alive\",\r\n \"x\": \"a\xffb\xff\xff\"}": `{"type":"keep_alive","x":"a` + "\ufffdb\ufffd\ufffd" + `"}`,
		" \t{\"type\":\"keep_alive\"}\r\n":                             `{"type":"keep_alive"}`,
	} {
		m, err := Decode([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(t, m); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestDecodeKeepsNothingOfTheLine(t *testing.T) {
	line := []byte(`{"type":"user","message":{"content":[{"type":"text","text":"abc"}]},"tool_use_result":{"a":"abc"},"x":"abc"}`)
	want := string(line)
	m, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		line[i] = '#'
	}
	if got := encode(t, m); got != want {
		t.Errorf("got %s", got)
	}
	u := m.(*User)
	u.UUID = "u"
	if got := encode(t, u); !strings.Contains(got, `"tool_use_result":{"a":"abc"}`) || strings.Contains(got, "#") {
		t.Errorf("got %s", got)
	}
}

func TestLenientFields(t *testing.T) {
	conform.Covers(t, "W-411", "W-412")
	for _, c := range []string{
		`"origin":{"server":"x"}`, `"origin":{"kind":7}`, `"origin":"human"`, `"origin":[]`, `"origin":null`,
		`"api_error_status":"529"`, `"terminal_reason":{"a":1}`, `"api_error_status":null`,
	} {
		r := decode[*Result](t, `{"type":"result","subtype":"success","num_turns":2,`+c+`}`)
		if r.Origin != nil || r.APIErrorStatus != nil || r.TerminalReason != "" || r.NumTurns != 2 {
			t.Errorf("%s: decoded %+v", c, r)
		}
	}
	r := decode[*Result](t, `{"type":"result","subtype":"success","origin":{"kind":"human"},"api_error_status":529,"terminal_reason":"new_one"}`)
	if r.Origin == nil || r.Origin.Kind != OriginHuman || *r.APIErrorStatus != 529 || r.TerminalReason != "new_one" {
		t.Errorf("decoded %+v", r)
	}
	// Numbers from writers that do not tell whole ones from others.
	r = decode[*Result](t, `{"type":"result","subtype":"success","duration_ms":1234.5,"num_turns":4.0,"duration_api_ms":1e3,"ttft_ms":-0.4}`)
	if r.DurationMS != 1235 || r.NumTurns != 4 || r.DurationAPIMS != 1000 || *r.TTFTMS != 0 {
		t.Errorf("decoded %+v", r)
	}
}

// TestInputNeedsLittle: what users send has no more than type and message.
func TestInputNeedsLittle(t *testing.T) {
	conform.Covers(t, "M-38", "W-44")
	for _, line := range []string{
		`{"type":"user","message":{"role":"user","content":"hi"}}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]},"parent_tool_use_id":null,"session_id":""}`,
	} {
		u := decode[*User](t, line)
		if u.Text() != "hi" || u.ParentToolUseID != nil || u.UUID != "" || u.SessionID != "" {
			t.Errorf("%s: decoded %+v", line, u)
		}
	}
}

func TestEncodingJSON(t *testing.T) {
	for _, m := range samples() {
		// HTML escapes are encoding/json's habit, so the comparison is by value.
		viaJSON, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		byValue, err := json.Marshal(reflect.ValueOf(m).Elem().Interface())
		if err != nil {
			t.Fatal(err)
		}
		if string(viaJSON) != string(byValue) {
			t.Errorf("by pointer %s, by value %s", viaJSON, byValue)
		}
		back := reflect.New(reflect.TypeOf(m).Elem()).Interface().(Message)
		if err := json.Unmarshal(viaJSON, back); err != nil {
			t.Fatal(err)
		}
		if got, want := encode(t, stripped(back)), encode(t, m); !sameJSON(t, got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	var i Init
	err := json.Unmarshal([]byte(`{"type":"user"}`), &i)
	if !errors.Is(err, ErrOtherType) {
		t.Errorf("a user message into an Init: %v", err)
	}
	if err := new(Unknown).UnmarshalJSON([]byte(`{"type":"user"}`)); !errors.Is(err, ErrOtherType) {
		t.Errorf("a user message into an Unknown: %v", err)
	}
	if err := i.UnmarshalJSON([]byte(`{`)); !errors.Is(err, ErrNotObject) {
		t.Errorf("half an object: %v", err)
	}
	if err := i.UnmarshalJSON([]byte(`{}`)); !errors.Is(err, ErrNoType) {
		t.Errorf("no type: %v", err)
	}
	old := Init{CWD: "/old"}
	if err := old.UnmarshalJSON([]byte(`{"type":"system","subtype":"init","cwd":7}`)); err == nil || old.CWD != "/old" {
		t.Errorf("a failed UnmarshalJSON left %+v, %v", old, err)
	}
	var list []Status
	if err := json.Unmarshal([]byte(`[{"type":"system","subtype":"status","status":null}]`), &list); err != nil || len(list) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return reflect.DeepEqual(x, y)
}

// TestKeyGivenTwice: the last one counts, as in other readers, and nothing of
// the first is left.
func TestKeyGivenTwice(t *testing.T) {
	u := decode[*User](t, `{"type":"user","uuid":"a","uuid":null,"message":{"content":"x","role":"user"},"message":{"content":[{"type":"text","text":"a","text":"b"}]}}`)
	if u.UUID != "" || u.Message.Role != "" || u.Text() != "b" {
		t.Errorf("decoded %+v, text %q", u, u.Text())
	}
}

// TestTwinElements: two equal elements keep their own unknown keys when the
// list gets shorter.
func TestTwinElements(t *testing.T) {
	m := decode[*BackgroundTasksChanged](t, `{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"a","n":1},{"task_id":"a","n":2},{"task_id":"b","n":3}]}`)
	m.Tasks = m.Tasks[:2]
	want := `{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"a","task_type":"","description":"","n":1},{"task_id":"a","task_type":"","description":"","n":2}]}`
	if got := encode(t, m); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestWriteIntoRawField: a raw field is the caller's own; the original form
// does not change with it.
func TestWriteIntoRawField(t *testing.T) {
	line := `{"type":"user","message":{"role":"user","content":"x"},"tool_use_result":{"n":1},"z":1}`
	u := decode[*User](t, line)
	u.ToolUseResult[5] = '7'
	if string(u.Raw()) != line {
		t.Errorf("Raw became %s", u.Raw())
	}
	if got, want := encode(t, u), `{"type":"user","message":{"role":"user","content":"x"},"parent_tool_use_id":null,"tool_use_result":{"n":7},"z":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
