package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"pgregory.net/rapid"
)

var clock = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func writer() *journal.Writer {
	return &journal.Writer{SessionID: "s1", CWD: "/w", Version: "1.2.3", GitBranch: "main"}
}

func encode(t testing.TB, w *journal.Writer, e loop.Entry) []byte {
	t.Helper()
	line, err := w.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func decode(t testing.TB, line []byte) loop.Entry {
	t.Helper()
	e, ok, err := journal.Decode(line)
	if err != nil || !ok {
		t.Fatalf("decoding %s: ok %v, %v", line, ok, err)
	}
	return e
}

// texts are what a careless encoding would let a client's text search find
// (K-328), and what JSON lines trip over.
var texts = []string{
	"", "plain", `{"customTitle":"x","aiTitle":"y","lastPrompt":"z","summary":"s","tag":"t"}`,
	`"cwd":"/elsewhere","gitBranch":"evil","timestamp":"yesterday","isSidechain":true`,
	"line\nbreak\r\n\u2028\u2029\u0085\x00\x7f", "<&>\\\"", "ünï😀", "\ufffd",
}

func anyText(t *rapid.T) string {
	if rapid.Bool().Draw(t, "odd") {
		return rapid.SampledFrom(texts).Draw(t, "text")
	}
	return strings.ToValidUTF8(rapid.String().Draw(t, "text"), "\ufffd")
}

// anyJSON is what a tool or a model may have written.
func anyJSON(t *rapid.T) []byte {
	raw, err := message.Canonical([]byte(rapid.SampledFrom([]string{
		`{"customTitle":"x","cwd":"/evil","summary":"s"}`, `{"n":123456789012345678901234567890.5e400,"a":[1,{"tag":"t"}]}`,
		`{}`, `[]`, `"text"`, `1`, `null`, `true`, `{"\ud800":"\udc00"}`, "{\"a\":\"\u2028\"}", `{"a":1,"a":2}`, ` { "a" : 1 } `,
	}).Draw(t, "json")))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func anyBlock(t *rapid.T) message.Block {
	switch rapid.IntRange(0, 3).Draw(t, "block") {
	case 0:
		return message.NewText(anyText(t))
	case 1:
		return message.NewToolUse(anyText(t), anyText(t), anyJSON(t))
	case 2:
		return message.NewThinking(anyText(t), anyText(t))
	}
	b, err := message.ParseBlock(fmt.Appendf(nil, `{"type":"brand_new","x":%s}`, anyJSON(t)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func anyBlocks(t *rapid.T) []message.Block {
	blocks := []message.Block{}
	for range rapid.IntRange(0, 3).Draw(t, "blocks") {
		blocks = append(blocks, anyBlock(t))
	}
	return blocks
}

func anyContent(t *rapid.T) message.Content {
	if rapid.Bool().Draw(t, "string") {
		return message.TextContent(anyText(t))
	}
	return message.BlockContent(anyBlocks(t)...)
}

func maybe[T any](t *rapid.T, f func(*rapid.T) T) *T {
	if rapid.Bool().Draw(t, "set") {
		return nil
	}
	return new(f(t))
}

func flag(t *rapid.T) bool { return rapid.Bool().Draw(t, "flag") }

func number(t *rapid.T) int64 { return rapid.Int64().Draw(t, "number") }

func anyOrigin(t *rapid.T) message.Origin {
	return message.Origin{Kind: anyText(t), Name: anyText(t), Body: anyText(t)}
}

func anyUsage(t *rapid.T) message.Usage {
	return message.Usage{InputTokens: number(t), OutputTokens: number(t), ServiceTier: anyText(t)}
}

func anyDenial(t *rapid.T) message.PermissionDenial {
	return message.PermissionDenial{ToolName: anyText(t), ToolUseID: anyText(t), ToolInput: anyJSON(t)}
}

func anyTime(t *rapid.T) time.Time {
	return time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "unix"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
}

func anyEnding(t *rapid.T) loop.Ending {
	return loop.Ending{
		Subtype: message.Subtype(anyText(t)), Terminal: message.TerminalReason(anyText(t)), IsError: flag(t),
		Text: maybe(t, anyText), Status: int(number(t)), NoStop: flag(t), Refusal: anyText(t), By: anyText(t), LetRun: flag(t), Silent: flag(t),
	}
}

func anyTurn(t *rapid.T) loop.Turn {
	return loop.Turn{
		State: loop.State(anyText(t)), Seq: number(t), Await: anyText(t), Input: anyText(t), Origin: maybe(t, anyOrigin),
		Synthetic: flag(t), Started: anyTime(t), Inited: flag(t), ToolTurns: 3, Counts: flag(t), Final: flag(t),
		Continues: 1, Pauses: 2, Malformed: 1, StopBlocks: 4, Attempts: 5, CompactFails: 1, Refills: 2, SinceCompact: 7,
		Compacted: flag(t), Recovering: flag(t), StopReason: maybe(t, anyText), Text: anyText(t), Usage: anyUsage(t),
		APITime: time.Duration(number(t)), TTFT: maybe(t, number), TTFTStream: maybe(t, number), SentAt: anyTime(t),
		Tokens: number(t), Ending: maybe(t, anyEnding), Closing: flag(t), Drain: flag(t),
		Spend: loop.Spend{
			USD:    rapid.Float64Range(0, 1e9).Draw(t, "usd"),
			Models: map[string]message.ModelUsage{"model-1": {InputTokens: number(t), Provider: anyText(t)}},
		},
	}
}

func anyResult(t *rapid.T) *message.Result {
	return &message.Result{
		Subtype: message.Success, NumTurns: 2, ToolTurns: 1, Result: maybe(t, anyText), StopReason: maybe(t, anyText),
		TotalCostUSD: new(0.25), Usage: new(anyUsage(t)), StructuredOutput: anyJSON(t),
		PermissionDenials: []message.PermissionDenial{anyDenial(t)}, Header: message.Header{UUID: "r", SessionID: "s1"},
	}
}

func anyCall(t *rapid.T) loop.Call {
	return loop.Call{
		ID: anyText(t), Name: anyText(t), Concurrent: flag(t), Repeatable: flag(t), Spawns: flag(t), Internal: flag(t),
		Fault: loop.Fault(anyText(t)), FaultText: anyText(t), Key: anyText(t), Status: loop.Queued, Valid: flag(t),
	}
}

// anyEntry draws an entry as the machine may make it.
func anyEntry(t *rapid.T) loop.Entry {
	kinds := []loop.EntryKind{
		loop.KindUser, loop.KindAssistant, loop.KindSystem, loop.KindOpen, loop.KindInput,
		loop.KindCall, loop.KindTurn, loop.KindElide, loop.KindState,
	}
	e := loop.Entry{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Time: anyTime(t)}
	if e.Chain() {
		e.UUID = rapid.StringMatching(`[0-9a-f]{8}`).Draw(t, "uuid")
		e.Time = e.Time.Truncate(time.Millisecond)
	}
	switch e.Kind {
	case loop.KindUser:
		e.User = &loop.UserEntry{
			Content: anyContent(t), Meta: flag(t), Summary: flag(t), Synthetic: flag(t), Origin: maybe(t, anyOrigin),
		}
		if flag(t) {
			e.User.Structured = anyJSON(t)
		}
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			e.User.CopiedFrom = "c"
		case 1:
			e.User.ToolUseID = anyText(t)
			e.User.Content = message.BlockContent(message.NewToolResult(e.User.ToolUseID, anyContent(t), flag(t)))
		}
	case loop.KindAssistant:
		e.Assistant = &loop.AssistantEntry{
			Message: message.APIMessage{
				ID: anyText(t), Type: "message", Role: message.RoleAssistant, Model: anyText(t), Content: anyBlocks(t),
				StopReason: maybe(t, anyText), StopSequence: maybe(t, anyText), Usage: anyUsage(t),
			},
			Notice: flag(t), Error: message.ErrorCategory(anyText(t)), Aborted: flag(t), CopiedFrom: anyText(t),
		}
	case loop.KindSystem:
		e.System = &loop.SystemEntry{Trigger: anyText(t), PreTokens: number(t)}
	case loop.KindOpen:
		e.Open = &loop.Settings{Format: journal.Format, Version: "1.2.3", SessionID: anyText(t), Model: anyText(t), Mode: anyText(t), Limits: loop.Limits{MaxTurns: anyText(t), MaxBudgetUSD: anyText(t)}}
	case loop.KindInput:
		e.Input = &loop.InputEntry{
			Input: loop.Input{
				ID: anyText(t), Content: anyContent(t), Origin: maybe(t, anyOrigin), Synthetic: flag(t),
				NoQuery: flag(t), Steer: maybe(t, flag),
			},
			Dropped: flag(t),
		}
	case loop.KindCall:
		e.Call = &loop.CallEntry{Op: loop.CallDenied, Key: anyText(t), Reason: anyText(t), Denial: maybe(t, anyDenial)}
		if flag(t) {
			e.Call = &loop.CallEntry{Op: loop.CallsRequested, Calls: []loop.Call{anyCall(t), anyCall(t)}}
		} else if flag(t) {
			e.Call.Input = anyJSON(t)
		}
	case loop.KindTurn:
		e.Turn = &loop.TurnEntry{Turn: anyTurn(t)}
		if flag(t) {
			e.Turn.Result = anyResult(t)
		}
	case loop.KindElide:
		e.Elide = &loop.ElideEntry{UUIDs: []string{anyText(t), "u"}}
	case loop.KindState:
		e.State = &loop.StateNote{Key: anyText(t), Value: anyJSON(t)}
	}
	return e
}

// same compares two entries; results by their JSON, since a decoded message
// remembers the bytes that it came from.
func same(a, b loop.Entry) bool {
	if a.Turn != nil && b.Turn != nil && a.Turn.Result != nil && b.Turn.Result != nil {
		x, errX := message.Marshal(a.Turn.Result)
		y, errY := message.Marshal(b.Turn.Result)
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			return false
		}
		a.Turn, b.Turn = &loop.TurnEntry{Turn: a.Turn.Turn}, &loop.TurnEntry{Turn: b.Turn.Turn}
	}
	return reflect.DeepEqual(a, b)
}

func show(e loop.Entry) string {
	raw, _ := json.Marshal(e)
	return string(raw)
}

func TestRoundTrip(t *testing.T) {
	conform.Covers(t, "K-302", "K-312", "K-328")
	rapid.Check(t, func(rt *rapid.T) {
		e := anyEntry(rt)
		line, err := writer().Encode(e)
		if err != nil {
			rt.Fatal(err)
		}
		got, ok, err := journal.Decode(line)
		if err != nil || !ok {
			rt.Fatalf("decoding %s: ok %v, %v", line, ok, err)
		}
		if !same(e, got) {
			rt.Fatalf("wrote\n%s\nread\n%s\nfrom\n%s", show(e), show(got), line)
		}
		if again, err := writer().Encode(got); err != nil || !bytes.Equal(again, line) {
			rt.Fatalf("written again\n%s\nis\n%s, %v", line, again, err)
		}
		checkLine(rt, line, e.Chain())
	})
}

// checkLine: one line for every reader, and an own line shows a client nothing.
func checkLine(t *rapid.T, line []byte, chain bool) {
	if !utf8.Valid(line) || !json.Valid(line) || bytes.ContainsAny(line, "\n\r\u2028\u2029\u0085") {
		t.Fatalf("the line is not one line of JSON: %q", line)
	}
	if chain {
		return
	}
	if bytes.HasPrefix(line, []byte(`{"type":"turnwright","kind":"open"`)) {
		// It tells the session's directory and time, with their usual values (K-328, K-348).
		line = bytes.Replace(line, []byte(`"cwd":"/w",`), nil, 1)
		line = regexp.MustCompile(`"timestamp":"[-0-9T:.]+Z",`).ReplaceAll(line, nil)
	}
	for _, key := range []string{"customTitle", "aiTitle", "lastPrompt", "summary", "tag", "cwd", "gitBranch", "timestamp", "isSidechain"} {
		if bytes.Contains(line, []byte(`"`+key+`":`)) {
			t.Fatalf("an own line shows the key %q: %s", key, line)
		}
	}
	var head struct {
		Type      string `json:"type"`
		SessionID string `json:"sessionId"`
		V         int    `json:"v"`
	}
	if err := json.Unmarshal(line, &head); err != nil || head.Type != "turnwright" || head.SessionID != "s1" || head.V != 1 {
		t.Fatalf("the frame of an own line is wrong: %s (%v)", line, err)
	}
}

// TestInvalidText: what is not UTF-8 is replaced, wherever it stands.
func TestInvalidText(t *testing.T) {
	bad := "a\xff\xfeb"
	for _, e := range []loop.Entry{
		{Kind: loop.KindUser, UUID: "u", User: &loop.UserEntry{Content: message.TextContent(bad), Origin: &message.Origin{Kind: bad}}},
		{Kind: loop.KindUser, UUID: "u", User: &loop.UserEntry{Content: message.BlockContent(message.NewText(bad)), Structured: []byte(`{"a":"` + bad + `"}`)}},
		{Kind: loop.KindInput, Input: &loop.InputEntry{Input: loop.Input{ID: "p", Content: message.TextContent(bad)}}},
		{Kind: loop.KindTurn, Turn: &loop.TurnEntry{Turn: loop.Turn{Text: bad, Ending: &loop.Ending{Errors: []string{bad}}}}},
		{Kind: loop.KindCall, Call: &loop.CallEntry{Op: loop.CallAllowed, Key: bad, Reason: bad}},
	} {
		line := encode(t, writer(), e)
		if !utf8.Valid(line) || !json.Valid(line) {
			t.Errorf("%s entry: %q is not valid", e.Kind, line)
		}
		if plain := bytes.ReplaceAll(line, []byte(`\ufffd`), []byte("\ufffd")); !bytes.Contains(bytes.ReplaceAll(plain, []byte(`\`), nil), []byte("a\ufffd\ufffdb")) {
			t.Errorf("%s entry: %q lost the text around the bad bytes", e.Kind, line)
		}
		decode(t, line)
	}
}

// TestChainLines reads the lines as a client does.
func TestChainLines(t *testing.T) {
	conform.Covers(t, "K-309", "K-310", "K-311", "K-312", "K-313", "K-314", "K-315", "K-316", "K-318", "K-374", "K-375", "S-28", "S-30")
	w := writer()
	result := message.BlockContent(message.NewToolResult("t1", message.TextContent("ok"), false))
	reply := message.APIMessage{
		ID: "msg_1", Type: "message", Role: message.RoleAssistant, Model: "m", StopReason: new("tool_use"),
		Content: []message.Block{message.NewToolUse("t1", "Bash", []byte(`{"command":"true"}`))},
	}
	entries := []loop.Entry{
		{Kind: loop.KindOpen, Open: &loop.Settings{Model: "m"}},
		{Kind: loop.KindInput, Input: &loop.InputEntry{Input: loop.Input{ID: "a", Content: message.TextContent("Hi")}}},
		{Kind: loop.KindUser, UUID: "a", User: &loop.UserEntry{Content: message.TextContent("Hi")}},
		{Kind: loop.KindUser, UUID: "b", User: &loop.UserEntry{Content: message.BlockContent(message.NewText("context")), Meta: true}},
		{Kind: loop.KindAssistant, UUID: "c", Assistant: &loop.AssistantEntry{Message: reply}},
		{Kind: loop.KindCall, Call: &loop.CallEntry{Op: loop.CallAllowed, Key: "1.0"}},
		{Kind: loop.KindUser, UUID: "d", User: &loop.UserEntry{Content: result, ToolUseID: "t1", Structured: []byte(`{"exit":0}`)}},
		{Kind: loop.KindTurn, Turn: &loop.TurnEntry{}},
		{Kind: loop.KindSystem, UUID: "e", System: &loop.SystemEntry{Trigger: "auto", PreTokens: 5}},
		{Kind: loop.KindUser, UUID: "f", User: &loop.UserEntry{Content: message.TextContent("They said hi."), Summary: true}},
		{Kind: loop.KindUser, UUID: "g", User: &loop.UserEntry{Content: message.TextContent("Hi"), CopiedFrom: "a"}},
	}
	parents := map[string]string{"b": "a", "c": "b", "d": "c", "f": "e", "g": "f"}
	stamp := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	lines := map[string]string{}
	for i, e := range entries {
		e.Time = clock.In(time.FixedZone("x", 3600)).Add(456 * time.Microsecond)
		raw := encode(t, w, e)
		var l map[string]any
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatal(err)
		}
		if i == 0 && strings.Contains(string(raw), "isSidechain") {
			t.Errorf("the first line hides the session: %s", raw)
		}
		if !e.Chain() {
			if l["uuid"] != nil || l["parentUuid"] != nil {
				t.Errorf("an own line takes part in the chain: %s", raw)
			}
			continue
		}
		lines[e.UUID] = string(raw)
		for key, want := range map[string]any{
			"type": string(e.Kind), "uuid": e.UUID, "sessionId": "s1", "cwd": "/w",
			"isSidechain": false, "version": "1.2.3", "gitBranch": "main",
		} {
			if l[key] != want {
				t.Errorf("line %s: %s is %v, not %v", e.UUID, key, l[key], want)
			}
		}
		if s, _ := l["timestamp"].(string); !stamp.MatchString(s) || s != "2026-01-02T03:04:05.678Z" {
			t.Errorf("line %s: timestamp %q", e.UUID, s)
		}
		parent, has := l["parentUuid"]
		if want := parents[e.UUID]; !has || want == "" && parent != nil || want != "" && parent != want {
			t.Errorf("line %s: parentUuid %v, not %q", e.UUID, parent, parents[e.UUID])
		}
	}
	for uuid, want := range map[string][]string{
		"a": {`"message":{"role":"user","content":"Hi"}`},
		"b": {`"isMeta":true`, `"content":[{"type":"text","text":"context"}]`},
		"c": {`"id":"msg_1"`, `"type":"message"`, `"role":"assistant"`, `"model":"m"`, `"stop_reason":"tool_use"`, `"stop_sequence":null`, `"usage":{`},
		"d": {`"tool_use_id":"t1"`, `"toolUseResult":{"exit":0}`},
		"e": {`"subtype":"compact_boundary"`, `"logicalParentUuid":"d"`, `"compactMetadata":{"trigger":"auto","preTokens":5}`},
		"f": {`"isCompactSummary":true`},
		"g": {`"copiedFrom":"a"`},
	} {
		for _, part := range want {
			if !strings.Contains(lines[uuid], part) {
				t.Errorf("line %s lacks %s: %s", uuid, part, lines[uuid])
			}
		}
	}
}

// TestParentAfterReopen: a writer that goes on links to the line it is told of.
func TestParentAfterReopen(t *testing.T) {
	w := writer()
	w.Last = "before"
	line := encode(t, w, loop.Entry{Kind: loop.KindUser, UUID: "a", User: &loop.UserEntry{Content: message.TextContent("Hi")}})
	if !bytes.Contains(line, []byte(`"parentUuid":"before"`)) || w.Last != "a" {
		t.Errorf("%s, last %q", line, w.Last)
	}
}

// TestEncodeFails: an entry that has no line leaves the chain where it was.
func TestEncodeFails(t *testing.T) {
	w := writer()
	w.Last = "before"
	for _, e := range []loop.Entry{
		{Kind: loop.KindUser, UUID: "a", User: &loop.UserEntry{Content: message.TextContent("Hi"), Structured: []byte("{")}},
		{Kind: "strange"},
	} {
		if line, err := w.Encode(e); err == nil || w.Last != "before" {
			t.Errorf("%s: %s, %v, last %q", e.Kind, line, err, w.Last)
		}
	}
}

func TestNewerFormat(t *testing.T) {
	_, ok, err := journal.Decode([]byte(`{"type":"turnwright","kind":"open","v":1,"sessionId":"s","open":{"format":2}}`))
	if ok || !errors.Is(err, journal.ErrNewerFormat) || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("ok %v, %v", ok, err)
	}
	if _, ok, err := journal.Decode([]byte(`{"type":"turnwright","kind":"open","v":1,"sessionId":"s","open":{"format":1}}`)); !ok || err != nil {
		t.Errorf("this format: ok %v, %v", ok, err)
	}
}

func TestForeignLines(t *testing.T) {
	conform.Covers(t, "K-308", "K-317", "K-466", "S-31")
	for _, tt := range []struct {
		name, line string
		ok, fails  bool
	}{
		{"title", `{"type":"custom-title","customTitle":"x","sessionId":"s"}`, false, false},
		{"tag", `{"type":"tag","tag":"x","sessionId":"s"}`, false, false},
		{"attachment", `{"type":"attachment","uuid":"u","parentUuid":null}`, false, false},
		{"type of the future", `{"type":"new-thing","x":[1]}`, false, false},
		{"no type", `{"x":1}`, false, false},
		{"side chain", `{"type":"user","uuid":"u","isSidechain":true,"message":{"role":"user","content":"x"}}`, false, false},
		{"no uuid", `{"type":"user","message":{"role":"user","content":"x"}}`, false, false},
		{"other system line", `{"type":"system","uuid":"u","subtype":"informational","content":"x"}`, false, false},
		{"own kind of the future", `{"type":"turnwright","kind":"dream","v":1}`, false, false},
		{"client's user line", `{"type":"user","uuid":"u","parentUuid":null,"userType":"external","message":{"role":"user","content":"x"},"new":{"a":1}}`, true, false},
		{"client's assistant line", `{"type":"assistant","uuid":"u","requestId":"r","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"brand_new","y":1}],"stop_reason":null,"usage":{"input_tokens":1,"new":2}}}`, true, false},
		{"torn", `{"type":"user","uuid":"u","mess`, false, true},
		{"not an object", `[1]`, false, true},
		{"empty", ``, false, true},
		{"no message", `{"type":"user","uuid":"u"}`, false, true},
		{"message of another shape", `{"type":"assistant","uuid":"u","message":[1]}`, false, true},
		{"own line without its body", `{"type":"turnwright","kind":"turn","v":1}`, false, true},
		{"own input without its body", `{"type":"turnwright","kind":"input","v":1}`, false, true},
		{"own input that is no JSON", `{"type":"turnwright","kind":"input","v":1,"input":"{"}`, false, true},
		{"own result that is none", `{"type":"turnwright","kind":"turn","v":1,"turn":{"state":"idle"},"result":"{\"type\":\"user\"}"}`, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, ok, err := journal.Decode([]byte(tt.line))
			if ok != tt.ok || (err != nil) != tt.fails {
				t.Errorf("ok %v, error %v, entry %s", ok, err, show(e))
			}
			if err != nil && strings.Contains(err.Error(), "%!") {
				t.Errorf("a broken error text: %v", err)
			}
		})
	}
}

// TestUnknownBlocks: blocks of the future survive byte for byte.
func TestUnknownBlocks(t *testing.T) {
	conform.Covers(t, "M-107")
	block := `{"type":"brand_new","big":12345678901234567890123,"a":{"b":[null]}}`
	e := decode(t, []byte(`{"type":"assistant","uuid":"u","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[`+block+`]}}`))
	if line := encode(t, writer(), e); !bytes.Contains(line, []byte(block)) {
		t.Errorf("the block changed: %s", line)
	}
}

// FuzzDecode: no line panics, and what was read can be written and read again.
func FuzzDecode(f *testing.F) {
	w := writer()
	for _, e := range []loop.Entry{
		{Kind: loop.KindOpen, Open: &loop.Settings{Model: "m"}},
		{Kind: loop.KindInput, Input: &loop.InputEntry{Input: loop.Input{ID: "a", Content: message.TextContent("Hi")}}},
		{Kind: loop.KindUser, UUID: "a", Time: clock, User: &loop.UserEntry{Content: message.TextContent("Hi"), Structured: []byte(`{}`)}},
		{Kind: loop.KindAssistant, UUID: "c", Assistant: &loop.AssistantEntry{Message: message.APIMessage{Content: []message.Block{message.NewText("x")}}}},
		{Kind: loop.KindSystem, UUID: "e", System: &loop.SystemEntry{}},
		{Kind: loop.KindCall, Call: &loop.CallEntry{Op: loop.CallDenied, Key: "1", Denial: &message.PermissionDenial{ToolInput: []byte(`{}`)}}},
		{Kind: loop.KindTurn, Turn: &loop.TurnEntry{Result: &message.Result{Subtype: message.Success}}},
		{Kind: loop.KindElide, Elide: &loop.ElideEntry{UUIDs: []string{"a"}}},
		{Kind: loop.KindState, State: &loop.StateNote{Key: "k", Value: []byte("1")}},
	} {
		line, err := w.Encode(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok, err := journal.Decode(line)
		if err != nil || !ok {
			return
		}
		first, err := writer().Encode(e)
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", line, err)
		}
		if second := encode(t, writer(), decode(t, first)); !bytes.Equal(first, second) {
			t.Fatalf("not stable:\n%s\n%s", first, second)
		}
	})
}
