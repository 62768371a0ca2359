package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// assemble feeds events to an assembler as the client does.
func assemble(evs ...string) (*model.Response, error) {
	s := &stream{grace: neverGrace}
	for _, e := range evs {
		if err := s.use(frame{data: []byte(e)}); err != nil {
			return s.asm.response(), err
		}
	}
	return s.asm.response(), nil
}

func TestBlocksFromDeltas(t *testing.T) {
	conform.Covers(t, "M-47", "M-49")
	for _, c := range []struct {
		name string
		evs  []string
		want string // the block's exact bytes
	}{
		{"text", text(0, "Hel", "lo <&> \u2028"), `{"type":"text","text":"Hello <&> \u2028"}`},
		{"text, no delta", text(0), `{"type":"text","text":""}`},
		{"text begun in the start", []string{blockStart(0, `{"type":"text","text":"a"}`), blockDelta(0, `{"type":"text_delta","text":"b"}`), blockStop(0)}, `{"type":"text","text":"ab"}`},
		{"thinking", []string{
			blockStart(0, `{"type":"thinking","thinking":"","signature":""}`),
			blockDelta(0, `{"type":"thinking_delta","thinking":"hm"}`), blockDelta(0, `{"type":"thinking_delta","thinking":"m"}`),
			blockDelta(0, `{"type":"signature_delta","signature":"c2ln+/="}`), blockStop(0),
		}, `{"type":"thinking","thinking":"hmm","signature":"c2ln+/="}`},
		{"thinking left out, signature only", []string{
			blockStart(0, `{"type":"thinking","thinking":""}`), blockDelta(0, `{"type":"signature_delta","signature":"s"}`), blockStop(0),
		}, `{"type":"thinking","thinking":"","signature":"s"}`},
		{"redacted", []string{blockStart(0, `{"type":"redacted_thinking","data":"Eg=="}`), blockStop(0)}, `{"type":"redacted_thinking","data":"Eg=="}`},
		{"call", call(0, "tu_1", "Bash", `{"comm`, `and":`, `"ls <x>"}`), `{"type":"tool_use","id":"tu_1","name":"Bash","input":{"command":"ls <x>"}}`},
		{"call without arguments", call(0, "tu_1", "Now"), `{"type":"tool_use","id":"tu_1","name":"Now","input":{}}`},
		{"call with an empty delta", call(0, "tu_1", "Now", ""), `{"type":"tool_use","id":"tu_1","name":"Now","input":{}}`},
		{"call with its input in the start", []string{blockStart(0, `{"type":"tool_use","id":"t","name":"N","input":{"a":1}}`), blockStop(0)}, `{"type":"tool_use","id":"t","name":"N","input":{"a":1}}`},
		{"call without input", []string{blockStart(0, `{"type":"tool_use","id":"t","name":"N"}`), blockStop(0)}, `{"type":"tool_use","id":"t","name":"N","input":{}}`},
		{"call keeps further fields", []string{
			blockStart(0, `{"type":"tool_use","id":"t","name":"N","input":{},"caller":{"type":"direct"}}`),
			blockDelta(0, `{"type":"input_json_delta","partial_json":"{\"a\": 1.0}"}`), blockStop(0),
		}, `{"type":"tool_use","id":"t","name":"N","input":{"a":1.0},"caller":{"type":"direct"}}`},
		{"server tool", []string{
			blockStart(0, `{"type":"server_tool_use","id":"st","name":"web_search","input":{}}`),
			blockDelta(0, `{"type":"input_json_delta","partial_json":"{\"query\":\"go\"}"}`), blockStop(0),
		}, `{"type":"server_tool_use","id":"st","name":"web_search","input":{"query":"go"}}`},
		{"citations", []string{
			blockStart(0, `{"type":"text","text":"","citations":[]}`),
			blockDelta(0, `{"type":"text_delta","text":"see"}`),
			blockDelta(0, `{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}`),
			blockDelta(0, `{"type":"citations_delta","citation":{"type":"page_location"}}`), blockStop(0),
		}, `{"type":"text","text":"see","citations":[{"type":"char_location","cited_text":"x"},{"type":"page_location"}]}`},
		{"text keeps further fields", []string{
			blockStart(0, `{"type":"text","text":"","note":{"a":[1]}}`), blockDelta(0, `{"type":"text_delta","text":"x"}`), blockStop(0),
		}, `{"type":"text","text":"x","note":{"a":[1]}}`},
		{"unknown block", []string{blockStart(0, `{"type":"hologram","data":{"x":[1,2.50]}}`), blockStop(0)}, `{"type":"hologram","data":{"x":[1,2.50]}}`},
		{"unknown deltas", []string{
			blockStart(0, `{"type":"hologram","body":"a"}`),
			blockDelta(0, `{"type":"hologram_delta","body":"b","more":{"n":1}}`),
			blockDelta(0, `{"type":"hologram_delta","body":"c","more":{"n":2}}`), blockStop(0),
		}, `{"type":"hologram","body":"abc","more":{"n":2}}`},
		{"unknown delta of a strange shape", []string{
			blockStart(0, `{"type":"hologram"}`), blockDelta(0, `{"type":"hologram_delta","text":7}`), blockStop(0),
		}, `{"type":"hologram","text":7}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := assemble(join([]string{evStart}, c.evs, []string{evEnd, evStop})...)
			if err != nil || len(r.Blocks) != 1 {
				t.Fatal(show(r), err)
			}
			if b := r.Blocks[0]; string(b.Raw()) != c.want || !b.Done || b.BadInput {
				t.Errorf("%s", show(r))
			}
		})
	}
}

func TestBadToolInput(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 6000) + "1" + strings.Repeat("}", 6000)
	for name, in := range map[string]string{
		"cut": `{"command":"ec`, "array": `[1]`, "string": `"x"`, "two objects": `{}{}`, "words": `none`, "null": `null`, "nested too deep": deep,
	} {
		t.Run(name, func(t *testing.T) {
			r, err := assemble(join([]string{evStart}, call(0, "tu_1", "Bash", in), []string{evTools, evStop})...)
			if err != nil {
				t.Fatal(err)
			}
			b := r.Blocks[0]
			u, ok := b.ToolUse()
			if !b.BadInput || !b.Done || b.RawInput != in || !ok || string(u.Input) != "{}" || u.ID != "tu_1" {
				t.Errorf("%.300s", show(r))
			}
		})
	}
	within := `{"a":"` + strings.Repeat(`[{\"`, 3000) + `","b":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}"
	r, err := assemble(join([]string{evStart}, call(0, "tu_1", "Bash", within), []string{evTools, evStop})...)
	if err != nil || r.Blocks[0].BadInput {
		t.Errorf("brackets inside strings do not nest: %.300s, %v", show(r), err)
	}
	r, err = assemble(evStart, blockStart(0, `{"type":"tool_use","id":"t","name":"N","input":"odd"}`), blockStop(0), evTools)
	if err != nil || !r.Blocks[0].BadInput || r.Blocks[0].RawInput != `"odd"` {
		t.Error(show(r), err)
	}
}

func TestUsage(t *testing.T) {
	conform.Covers(t, "M-50", "L-226", "B-024")
	r, err := assemble(evStart,
		`{"type":"message_delta","delta":{},"usage":{"output_tokens":5}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":15,"cache_read_input_tokens":null,"server_tool_use":{"web_search_requests":2}}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := message.Usage{InputTokens: 25, OutputTokens: 15, CacheCreationInputTokens: 4, CacheReadInputTokens: 7, ServiceTier: "standard"}
	want.CacheCreation.Ephemeral5m, want.CacheCreation.Ephemeral1h = 1, 3
	want.ServerToolUse.WebSearchRequests = 2
	got, _ := json.Marshal(r.Usage)
	exp, _ := json.Marshal(want)
	if string(got) != string(exp) {
		t.Errorf("%s\nwant %s", got, exp)
	}
	if r.StartUsage.OutputTokens != 1 || r.StartUsage.InputTokens != 25 {
		t.Errorf("%+v", r.StartUsage)
	}
	// Nonsense counts as not sent, never as negative.
	r, err = assemble(evStart, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":-5,"output_tokens":"many"}}`)
	if err != nil || r.Usage.InputTokens != 25 || r.Usage.OutputTokens != 1 {
		t.Errorf("%+v %v", r.Usage, err)
	}
}

func TestStopReasons(t *testing.T) {
	for _, reason := range []string{"end_turn", "pause_turn", "model_context_window_exceeded", "refusal", "some_future_reason"} {
		r, err := assemble(evStart, `{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":"X","stop_details":{"type":"refusal","category":"c"}},"usage":{"output_tokens":1}}`, evStop)
		if err != nil || r.StopReason != reason || *r.StopSequence != "X" || string(r.StopDetails) != `{"type":"refusal","category":"c"}` {
			t.Error(show(r), err)
		}
	}
}

func TestEventsThatBreakPromises(t *testing.T) {
	for name, evs := range map[string][]string{
		"block before the start":   text(0, "x"),
		"two starts":               {evStart, evStart},
		"start without a message":  {`{"type":"message_start"}`},
		"delta without a block":    {evStart, blockDelta(0, `{"type":"text_delta","text":"x"}`)},
		"delta after the stop":     join([]string{evStart}, text(0, "x"), []string{blockDelta(0, `{"type":"text_delta","text":"x"}`)}),
		"stop without a block":     {evStart, blockStop(3)},
		"same block begun twice":   {evStart, blockStart(0, `{"type":"text","text":""}`), blockStart(0, `{"type":"text","text":""}`)},
		"block without a type":     {evStart, blockStart(0, `{"text":""}`)},
		"block with a TYPE":        {evStart, blockStart(0, `{"TYPE":"text"}`)},
		"block that is no object":  {evStart, blockStart(0, `[]`)},
		"block that is missing":    {evStart, `{"type":"content_block_start","index":0}`},
		"text delta with a number": {evStart, blockStart(0, `{"type":"text","text":""}`), blockDelta(0, `{"type":"text_delta","text":7}`)},
		"no JSON":                  {evStart, `{"type":"content_blo`},
		"an array":                 {`[1]`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := assemble(evs...)
			if e, ok := err.(*model.Error); !ok || e.Kind != model.KindMalformed || e.Message == "" { //nolint:errorlint // the type itself is promised
				t.Errorf("%v", err)
			}
		})
	}
}

func TestUnknownEventsChangeNothing(t *testing.T) {
	conform.Covers(t, "B-162", "M-46")
	r, err := assemble(join([]string{`{"type":"before"}`, evStart, evPing, `{"type":"news","delta":"odd","index":"x","message":[1]}`},
		text(0, "x"), []string{`{"type":"later","usage":{"output_tokens":99}}`, evEnd, evStop})...)
	if err != nil || r.Blocks[0].Text() != "x" || r.Usage.OutputTokens != 15 {
		t.Error(show(r), err)
	}
}

func TestInterleavedBlocks(t *testing.T) {
	r, err := assemble(evStart, blockStart(0, `{"type":"text","text":""}`), blockStart(1, `{"type":"text","text":""}`),
		blockDelta(1, `{"type":"text_delta","text":"b"}`), blockDelta(0, `{"type":"text_delta","text":"a"}`), blockStop(1), blockStop(0), evEnd)
	if err != nil || r.Blocks[0].Text() != "a" || r.Blocks[1].Text() != "b" {
		t.Error(show(r), err)
	}
}

// FuzzAssembler holds that no sequence of events panics, that every block of
// a response has valid bytes, and that a failure is a *model.Error.
func FuzzAssembler(f *testing.F) {
	add := func(evs ...string) { f.Add(strings.Join(evs, "\n")) }
	add(join([]string{evStart}, text(0, "a"), call(1, "t", "N", `{"a":1}`), []string{evTools, evStop})...)
	add(evStart, blockStart(0, `{"type":"thinking","thinking":"","signature":""}`), blockDelta(0, `{"type":"thinking_delta","thinking":"x"}`), blockDelta(0, `{"type":"signature_delta","signature":"s"}`), blockStop(0))
	add(evStart, blockStart(0, `{"type":"h","x":"a","x":1}`), blockDelta(0, `{"type":"h_delta","x":"b"}`), blockStop(0))
	add(evStart, blockStart(0, `{"type":"text","text":"","citations":null}`), blockDelta(0, `{"type":"citations_delta","citation":7}`), evEnd)
	add(`{"type":"message_start","message":{}}`, `{"type":"content_block_start","content_block":{"tYpe":"0"}}`)
	add(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`)
	f.Fuzz(func(t *testing.T, in string) {
		r, err := assemble(strings.Split(in, "\n")...)
		if err != nil {
			if e, ok := err.(*model.Error); !ok || e.Kind == model.KindUnknown { //nolint:errorlint // the type itself is promised
				t.Fatalf("%T %v", err, err)
			}
		}
		if r == nil {
			return
		}
		for _, b := range r.Blocks {
			if b.IsZero() || !json.Valid(b.Raw()) {
				t.Fatalf("block %q", b.Raw())
			}
			if again, err := message.ParseBlock(b.Raw()); err != nil || string(again.Raw()) != string(b.Raw()) {
				t.Fatalf("%q is not in canonical form: %v", b.Raw(), err)
			}
			if u, ok := b.ToolUse(); b.Type() == message.TypeToolUse && (!ok || !isObject(u.Input)) && b.Done {
				t.Fatalf("a call with input %q", u.Input)
			}
		}
	})
}

func BenchmarkAssembler(b *testing.B) {
	evs := join([]string{evStart}, text(0, strings.Split(strings.Repeat("word ", 1000), " ")...), []string{evEnd, evStop})
	in := []byte(sse(evs...))
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		s := &stream{grace: neverGrace, on: func(model.Event) {}}
		if err := s.readEvents(strings.NewReader(string(in))); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(evs)), "ns/event")
}
