//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// topLevel are the types of lines that a client knows (W-210).
var topLevel = []string{
	"system", "assistant", "user", "result", "stream_event", "rate_limit_event", "conversation_reset", "control_request",
	"control_response", "control_cancel_request", "transcript_mirror", "tool_progress", "tool_use_summary", "auth_status",
	"prompt_suggestion",
}

// needed are the keys without which a client's loop ends (section 15).
var needed = map[string]string{
	"system/init":              "cwd tools mcp_servers model permissionMode slash_commands agents skills plugins output_style apiKeySource claude_code_version",
	"system/task_started":      "task_id description",
	"system/task_progress":     "task_id description usage",
	"system/task_notification": "task_id status output_file summary",
	"assistant":                "message.content message.model message.id message.role message.usage message.stop_reason parent_tool_use_id timestamp",
	"user":                     "message.content message.role parent_tool_use_id",
	"stream_event":             "event parent_tool_use_id",
	"result":                   "subtype is_error duration_ms duration_api_ms num_turns tool_turns stop_reason total_cost_usd usage modelUsage permission_denials",
	"control_response":         "response.request_id",
}

// terminalReasons are those of W-266.
var terminalReasons = strings.Fields(`completed max_turns tool_deferred aborted_streaming aborted_tools hook_stopped
	stop_hook_prevented background_requested blocking_limit rapid_refill_breaker prompt_too_long image_error model_error
	api_error malformed_tool_use_exhausted budget_exhausted structured_output_retry_exhausted tool_deferred_unavailable
	turn_setup_failed`)

var (
	uuidText = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	isoText  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// checkLines holds every line of a conversation in one session, without
// subagents, against the rules of sections 9 and 15 of the wire protocol.
func checkLines(t *testing.T, all []line) {
	t.Helper()
	seen, session := map[string]bool{}, ""
	for _, l := range all {
		word, typ := l.word(), l.str("type")
		bad := func(format string, a ...any) {
			t.Helper()
			raw, _ := json.Marshal(l)
			t.Errorf("%s: %s: %.400s", word, fmt.Sprintf(format, a...), raw)
		}
		if !slices.Contains(topLevel, typ) {
			bad("unknown type")
		}
		for key := range strings.FieldsSeq(needed[word] + " " + needed[typ]) {
			if !l.has(key) {
				bad("no %s", key)
			}
		}
		if parent, ok := l["parent_tool_use_id"]; ok && parent != nil {
			bad("parent_tool_use_id %v", parent)
		}
		if stamp, ok := l["timestamp"]; ok && !isoText.MatchString(fmt.Sprint(stamp)) {
			bad("timestamp %v", stamp)
		}
		if strings.HasPrefix(typ, "control_") {
			continue
		}
		if id := l.str("uuid"); !uuidText.MatchString(id) || seen[id] {
			bad("uuid %q", id)
		}
		seen[l.str("uuid")] = true
		if session == "" {
			session = l.str("session_id")
		}
		if id := l.str("session_id"); !uuidText.MatchString(id) || id != session {
			bad("session_id %q, not %q", id, session)
		}
		switch typ {
		case "assistant":
			checkBlocks(t, l)
		case "result":
			checkResult(t, l)
		}
	}
}

func checkBlocks(t *testing.T, l line) {
	t.Helper()
	keys := map[string]string{"text": "text", "thinking": "thinking signature", "tool_use": "id name input"}
	if _, ok := l.at("message.content").([]any); !ok {
		t.Errorf("content is no list: %v", l)
	}
	for _, b := range l.blocks() {
		want, ok := keys[b.str("type")]
		if !ok {
			t.Errorf("block %v", b)
		}
		for key := range strings.FieldsSeq(want) {
			if !b.has(key) {
				t.Errorf("no %s in the block %v", key, b)
			}
		}
	}
}

// checkResult: a success has a text and the others have sentences (W-263).
func checkResult(t *testing.T, l line) {
	t.Helper()
	success := l.str("subtype") == "success"
	_, isText := l["result"].(string)
	list, isList := l["errors"].([]any)
	switch {
	case success && (!isText || isList && len(list) > 0):
		t.Errorf("a success with the result %v and the errors %v", l["result"], l["errors"])
	case !success && (l.has("result") || len(list) == 0 || l["is_error"] != true):
		t.Errorf("a failure with the result %v, the errors %v, is_error %v", l["result"], l["errors"], l["is_error"])
	}
	if reason, ok := l["terminal_reason"]; ok && !slices.Contains(terminalReasons, fmt.Sprint(reason)) {
		t.Errorf("terminal_reason %v", reason)
	}
	if stop := l["stop_reason"]; stop != nil && l.str("stop_reason") == "" {
		t.Errorf("stop_reason %v", stop)
	}
}

// TestConversation reads every line of a session with thinking, tools that
// work, fail and are refused, a retry, an empty answer, a blank prompt, a
// failure and a last good turn, with the events of the model and without them.
func TestConversation(t *testing.T) {
	t.Parallel()
	for _, partial := range []bool{false, true} {
		t.Run(fmt.Sprint(partial), func(t *testing.T) {
			conform.Covers(t, "W-210", "W-211", "W-213", "W-220", "W-221", "W-223", "W-231", "W-232", "W-235", "W-236",
				"W-250", "W-251", "W-253", "W-254", "W-261", "W-263", "W-265", "W-266", "W-299", "W-321", "W-214")
			d := talk(t, conversationModel(t), "--allowedTools", "Bash(printf *)", "Bash(test *)")
			if partial {
				d.Args = append(d.Args, "--include-partial-messages")
			}
			d.Env = append(d.Env, "CLAUDE_CODE_MAX_RETRIES=1")
			d.begin()
			// What nobody knows changes nothing (W-214).
			d.send(`{"type":"control_request","request_id":"1","x":1,"request":{"subtype":"initialize","hooks":null,"x":{"y":[]}}}`)
			d.until("control_response/success")
			d.send(`{"type":"user","x":1,"message":{"role":"user","content":[{"type":"text","text":"work"}],"x":2},"parent_tool_use_id":null,"x_y":{}}`)
			work := d.result()
			d.user("busy")
			busy := d.result()
			d.user("silent")
			silent := d.result()
			d.user("  ")
			blank := d.result()
			d.send(`{"type":"control_request","request_id":"2","request":{"subtype":"set_permission_mode","mode":"plan"}}`)
			d.user("bad")
			bad := d.result()
			d.user("again")
			again := d.result()
			d.finish(0)

			checkLines(t, d.all)
			checkTurns(t, d.all)
			if first := d.all[1].word(); first != "system/init" {
				t.Errorf("the first turn begins with %s", first)
			}
			checkEvents(t, d.all, partial)
			checkStored(t, d.process, d.all)

			for _, tt := range []struct {
				of                        line
				result, terminal, subtype any
				turns                     float64
			}{
				{work, "All is done.", "completed", "success", 3},
				{busy, "At last.", "completed", "success", 1},
				{silent, "", "completed", "success", 1},
				{blank, blank["result"], nil, "success", 0},
				{bad, nil, "api_error", "error_during_execution", 0},
				{again, "Fine.", "completed", "success", 1},
			} {
				if tt.of["result"] != tt.result || tt.of["terminal_reason"] != tt.terminal || tt.of["subtype"] != tt.subtype || tt.of["num_turns"] != tt.turns {
					t.Errorf("result %v", tt.of)
				}
			}
			// This turn's tokens, and the process's money.
			if got := work.at("usage.output_tokens"); got != 60.0 {
				t.Errorf("the first turn has %v output tokens", got)
			}
			if got := busy.at("usage.output_tokens"); got != 20.0 {
				t.Errorf("the second turn has %v output tokens", got)
			}
			model, _ := busy.at("modelUsage.claude-sonnet-4-5").(map[string]any)
			if model["outputTokens"] != 80.0 || busy["total_cost_usd"].(float64) <= work["total_cost_usd"].(float64) {
				t.Errorf("totals: %v after %v, %v", busy["total_cost_usd"], work["total_cost_usd"], model)
			}
		})
	}
}

// conversationModel answers what TestConversation says.
func conversationModel(t *testing.T) *agenttest.Server {
	use := func(s agenttest.Step) agenttest.Step { return agenttest.Usage(s, 100, 20, 0, 0, 0) }
	overloaded := false
	return agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		results := len(r.LastToolResults())
		switch u := r.UserText(); {
		case results == 3:
			return use(agenttest.Call("Bash", `{"command":"test 1 = 2"}`))
		case results == 1:
			return use(agenttest.Blocks(agenttest.Thinking("Enough.", "sig-2"), agenttest.Text("All is "), agenttest.Text("done.")))
		case strings.HasSuffix(u, "work"):
			return use(agenttest.DeltaSize(agenttest.Blocks(
				agenttest.Thinking("What is there to do?", "sig-1"), agenttest.Text("I look."),
				agenttest.Call("Bash", `{"command":"printf hello"}`),
				agenttest.Call("Bash", `{"command":"printf refused > file"}`),
				agenttest.Call("Read", `{"file_path":"no-such-file"}`),
			), 5))
		case strings.HasSuffix(u, "busy"):
			if !overloaded {
				overloaded = true
				return agenttest.HTTPError(529, "overloaded_error", "Overloaded", "retry-after", "0")
			}
			return use(agenttest.Text("At last."))
		case strings.HasSuffix(u, "silent"):
			return use(agenttest.Thinking("Nothing to say.", "sig-3"))
		case strings.HasSuffix(u, "bad"):
			return agenttest.HTTPError(400, "invalid_request_error", "no good")
		}
		return use(agenttest.Text("Fine."))
	}))
}

// checkTurns: each turn begins with init and ends with its one result; a tool's
// result stands behind its call and before the next response (W-220, W-321).
func checkTurns(t *testing.T, all []line) {
	t.Helper()
	open, inTurn := map[string]bool{}, false
	var response string // the id of the last one
	modes := []string{}
	for _, l := range all {
		switch l.word() {
		case "system/init":
			if inTurn {
				t.Error("init in the middle of a turn")
			}
			inTurn = true
			modes = append(modes, l.str("permissionMode"))
			for _, key := range []string{"plugin_errors", "mcp_server_errors", "betas", "terminal_slash_commands"} {
				if l.has(key) {
					t.Errorf("init has %s: %v", key, l[key])
				}
			}
			if fmt.Sprint(l["capabilities"]) != "[interrupt_receipt_v1 interrupt_cancel_queued_v1]" {
				t.Errorf("capabilities %v", l["capabilities"])
			}
		case "system/api_retry":
			want := line{"attempt": 1.0, "max_retries": 1.0, "error_status": 529.0, "error": "overloaded"}
			for key, v := range want {
				if l[key] != v {
					t.Errorf("api_retry: %s is %v, want %v", key, l[key], v)
				}
			}
			if _, ok := l["retry_delay_ms"].(float64); !ok || !inTurn {
				t.Errorf("api_retry: %v, in a turn: %v", l, inTurn)
			}
		case "assistant":
			if len(open) > 0 && l.str("message.id") != response {
				t.Errorf("a response comes before the results of %v", open)
			}
			response = l.str("message.id")
			for _, b := range l.blocks() {
				if b.str("type") == "tool_use" {
					open[b.str("id")] = true
				}
			}
		case "user":
			for _, b := range l.blocks() {
				id := b.str("tool_use_id")
				if !open[id] || !inTurn {
					t.Errorf("a result for %q, which is not open", id)
				}
				delete(open, id)
			}
			if l.has("origin") {
				t.Errorf("a tool's result has the origin %v", l["origin"])
			}
		}
		if l.str("type") == "result" {
			if !inTurn || len(open) > 0 {
				t.Errorf("a result in a turn: %v, with open calls: %v", inTurn, open)
			}
			inTurn = false
		}
	}
	if got := strings.Join(modes, " "); got != "default default default default plan plan" {
		t.Errorf("the turns tell the modes %s", got)
	}
}

// checkEvents: with partial messages the events of each response, all of them
// and in order, come before its assistant lines, whose blocks they add up to;
// else there are none.
func checkEvents(t *testing.T, all []line, partial bool) {
	t.Helper()
	var heard []string // of the running response
	text, blocks, stopped, id := "", 0, false, ""
	seen := map[string]int{} // deltas
	lines := map[string][]string{}
	for _, l := range all {
		switch l.word() {
		case "stream_event":
			if !partial {
				t.Fatal("a stream event that nobody asked for")
			}
			typ := l.str("event.type")
			heard = append(heard, typ)
			switch typ {
			case "message_start":
				heard, text, blocks, stopped, id = []string{typ}, "", 0, false, l.str("event.message.id")
				if _, ok := l["ttft_ms"].(float64); !ok {
					t.Errorf("message_start without ttft_ms: %v", l)
				}
			case "content_block_start":
				blocks++
			case "content_block_delta":
				seen[l.str("event.delta.type")]++
				text += l.str("event.delta.text")
			case "message_stop":
				stopped = true
			}
			if typ != "message_start" && l.has("ttft_ms") {
				t.Errorf("%s has ttft_ms", typ)
			}
		case "assistant":
			if l.str("message.model") == "<synthetic>" {
				continue
			}
			for _, b := range l.blocks() {
				lines[l.str("message.id")] = append(lines[l.str("message.id")], fmt.Sprint(b))
			}
			if !partial {
				continue
			}
			said := ""
			for _, b := range l.blocks() {
				said += b.str("text")
			}
			if !stopped || id != l.str("message.id") || blocks != len(l.blocks()) || text != said {
				t.Errorf("the response %s %q comes after %q of %s with %d blocks and %q", l.str("message.id"), said, heard, id, blocks, text)
			}
			form := regexp.MustCompile(`^message_start( ping)*( content_block_start( content_block_delta)* content_block_stop)+ message_delta message_stop$`)
			if got := strings.Join(heard, " "); !form.MatchString(got) {
				t.Errorf("events: %s", got)
			}
		}
	}
	for _, typ := range []string{"text_delta", "thinking_delta", "signature_delta", "input_json_delta"} {
		if partial && seen[typ] == 0 {
			t.Errorf("no %s", typ)
		}
	}
	for id, blocks := range lines {
		slices.Sort(blocks)
		if len(slices.Compact(slices.Clone(blocks))) != len(blocks) {
			t.Errorf("the lines of %s say something twice: %q", id, blocks)
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d responses have lines, not 6", len(lines))
	}
}

// checkStored: an assistant or user line has the uuid of its stored entry, and
// each has its own (W-232).
func checkStored(t *testing.T, p *process, all []line) {
	t.Helper()
	stored := map[string]line{}
	for _, l := range p.transcript() {
		if id := l.str("uuid"); id != "" {
			stored[id] = l
		}
	}
	n := 0
	for _, l := range all {
		if typ := l.str("type"); typ != "assistant" && typ != "user" {
			continue
		}
		n++
		s := stored[l.str("uuid")]
		if s == nil || s.str("type") != l.str("type") || s.str("message.id") != l.str("message.id") || len(s.blocks()) != len(l.blocks()) {
			t.Errorf("the line %v is stored as %v", l, s)
		}
		if l.has("timestamp") && l["timestamp"] != s["timestamp"] {
			t.Errorf("timestamp %v, stored as %v", l["timestamp"], s["timestamp"])
		}
	}
	if n != 11 {
		t.Errorf("%d lines of the conversation, not 11", n)
	}
}

// TestCutAnswer interrupts an answer in the middle: its line says so, and what
// was said is in the transcript.
func TestCutAnswer(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "W-235", "W-338")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Hold(agenttest.DeltaSize(agenttest.Text("The first half of it."), 5), agenttest.Point(4)),
		agenttest.Text("Fine."),
	))
	d := talk(t, srv, "--include-partial-messages").begin()
	d.user("tell me")
	for d.until("stream_event").str("event.delta.text") == "" {
	}
	d.send(`{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}`)
	said := d.until("assistant")
	if r := d.result(); r.str("terminal_reason") != "aborted_streaming" {
		t.Errorf("result %v", r)
	}
	d.user("and now?")
	whole := d.until("assistant")
	d.result()
	d.finish(0)
	text := said.blocks()[0].str("text")
	if said["aborted"] != true || said.at("message.stop_reason") != nil || text == "" || !strings.HasPrefix("The first half of it.", text) {
		t.Errorf("the line of the cut answer: %v", said)
	}
	if whole.has("aborted") {
		t.Errorf("the line of a whole answer: %v", whole)
	}
	i := slices.IndexFunc(d.transcript(), func(l line) bool { return l.str("uuid") == said.str("uuid") })
	if i < 0 || d.transcript()[i].blocks()[0].str("text") != text {
		t.Errorf("%q is not in the transcript", text)
	}
	if heard := fmt.Sprint(srv.Last().Messages()); !strings.Contains(heard, text) {
		t.Errorf("the model does not see %q again", text)
	}
}

// TestQueuedLimits gives each of two messages that wait in a row the whole cap,
// and names it when it is reached.
func TestQueuedLimits(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "W-325", "W-274", "W-263", "W-381")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Call("Bash", `{"command":"printf x"}`)))
	d := talk(t, srv, "--max-turns", "2", "--allowedTools", "Bash").begin()
	d.user("one")
	d.user("two")
	for range 2 {
		r := d.result()
		if r.str("subtype") != "error_max_turns" || r["num_turns"] != 2.0 || fmt.Sprint(r["errors"]) != "[Reached maximum number of turns (2)]" {
			t.Errorf("result %v", r)
		}
	}
	d.finish(1)
	checkLines(t, d.all)
	if n := srv.Count(); n != 6 {
		t.Errorf("%d requests, not 3 a message", n)
	}
}

// TestLastResult ends with the exit code of the last result, soon after the end
// of the input, and with everything stored.
func TestLastResult(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prompts string
		code    int
	}{{"", 0}, {"good", 0}, {"bad", 1}, {"bad good", 0}, {"good bad", 1}} {
		t.Run(tt.prompts, func(t *testing.T) {
			conform.Covers(t, "W-379", "W-381", "K-200", "K-201")
			srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
				if strings.HasSuffix(r.UserText(), "bad") {
					return agenttest.HTTPError(400, "invalid_request_error", "no good")
				}
				return agenttest.Text("The answer.")
			}))
			d := talk(t, srv).begin()
			d.send(`{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`)
			d.until("control_response/success")
			for prompt := range strings.FieldsSeq(tt.prompts) {
				d.user(prompt)
				d.result()
			}
			begin := time.Now()
			d.finish(tt.code)
			if took := time.Since(begin); took > 4*time.Second { // a client sends SIGTERM after 5
				t.Errorf("it took %v to end", took)
			}
			if tt.prompts == "" {
				return
			}
			stored, last := d.transcript(), d.all[len(d.all)-1]
			text := last.str("result")
			if text == "" {
				text = "API Error: 400 no good"
			}
			if !slices.ContainsFunc(stored, func(l line) bool {
				return l.str("type") == "assistant" && len(l.blocks()) > 0 && strings.HasPrefix(l.blocks()[0].str("text"), text)
			}) {
				t.Errorf("%q is not stored: %v", text, stored)
			}
		})
	}
}

// TestKilled ends the command by SIGTERM while a tool runs and another waits:
// it ends soon, though its client neither reads nor closes anything, no result
// is written or stored, and the calls are stored with what became of them, which
// the next run tells the model.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"client", "print"} {
		t.Run(mode, func(t *testing.T) {
			conform.Covers(t, "L-208", "L-209", "W-382", "W-387", "K-204", "S-44")
			srv := agenttest.NewServer(t, agenttest.Script(
				agenttest.Blocks(agenttest.Call("Bash", sleeper), agenttest.Call("Bash", `{"command":"printf x > second"}`)),
				agenttest.Text("I see."),
			))
			d := talk(t, srv, "--allowedTools", "Bash")
			if mode == "print" {
				d.process = command(t, srv, "-p", "go", "--allowedTools", "Bash")
			}
			d.begin()
			if mode == "client" {
				d.user("go")
			}
			pid := d.child()
			begin := time.Now()
			if err := d.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if mode == "client" {
				for l := d.next(); l != nil; l = d.next() {
					if l.str("type") == "result" {
						t.Errorf("a result was written: %v", l)
					}
				}
			}
			if code := d.end(); code != 143 || d.stderr.Len() > 0 {
				t.Errorf("exit code %d, %s", code, &d.stderr)
			}
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("it took %v to end", took)
			}
			d.gone(pid)
			var told []string
			for _, l := range d.transcript() {
				for _, b := range l.blocks() {
					if b.str("type") == "tool_result" {
						told = append(told, b.str("content"))
					}
				}
				if l.has("result") {
					t.Errorf("a result is stored: %v", l)
				}
			}
			if len(told) != 2 || !slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, "Killed:") }) ||
				!slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, "Not executed:") }) {
				t.Errorf("stored as %q", told)
			}

			p := command(t, srv, "-p", "what happened?", "--continue")
			p.Dir, p.Env = d.Dir, d.Env
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if code := p.end(); code != 0 || srv.Count() != 2 {
				t.Fatalf("resumed: exit code %d, %s, %d requests in all", code, &p.stderr, srv.Count())
			}
			results := srv.Last().LastToolResults()
			if len(results) != 2 || !strings.HasPrefix(results[0].Text, "Killed:") || !strings.HasPrefix(results[1].Text, "Not executed:") {
				t.Errorf("the model is told %+v", results)
			}
			if got := srv.Last().UserText(); !strings.HasSuffix(got, "what happened?") || len(srv.Last().Messages()) != 3 {
				t.Errorf("the model goes on with %q in %d messages", got, len(srv.Last().Messages()))
			}
		})
	}
}
