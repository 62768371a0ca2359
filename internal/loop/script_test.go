package loop_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// A script has one event a line; lines that are indented belong to the line
// above. Words in double quotes may hold blanks, key=value words are options.
//
//	config max_turns=2 budget=0.05 …     a new session
//	send p1 "text" [noquery] [steer] [nosteer] [origin=KIND]
//	admit [context="…"] [prompt="…"]     the awaited outcomes:
//	local "text" [keep] [notice="…"]
//	respond STOP $0.02 [tokens=N] [aborted] [broken="…"] [status=N]
//	    text "…" | think "…" | server NAME
//	    call ID NAME [concurrent] [repeatable] [spawns] [internal] [unknown] [malformed] [cut]
//	fail STATUS CATEGORY "text" [terminal=…] [$…] | toolong "text" | nobudget $… | cancelled
//	allow ID [input=JSON] [halt=REASON] | deny ID "reason" [halt=REASON]
//	finish ID "text" [error] [context="…"] [valid=JSON] [$…] [halt=REASON]
//	batched [context="…"] [halt=REASON] | stopped [block="…"] [halt=REASON]
//	compacted "summary" [keep=N] [tokens=N] [$…] | compactfailed ["cause"]
//	interrupt [cancel_queue] | spent $… | configure [model=…] [mode=…] | abort "text"
//	endinput | close
//	recover close|continue [known=ID]    the process ended; another one folds
type line struct {
	raw  string
	name string
	args []string          // the words
	opts map[string]string // key=value words; a bare word is a key too
	sub  []line
}

func parseScript(text string) ([]line, error) {
	var out []line
	for raw := range strings.Lines(text) {
		raw = strings.TrimRight(raw, " \n")
		if t := strings.TrimSpace(raw); t == "" || strings.HasPrefix(t, "#") {
			continue
		}
		l := line{raw: strings.TrimSpace(raw), opts: map[string]string{}}
		words, err := split(l.raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", raw, err)
		}
		l.name = words[0]
		for _, w := range words[1:] {
			if k, v, ok := strings.Cut(w, "="); ok && !strings.ContainsAny(k, " \"{") {
				l.opts[k] = v
				continue
			}
			l.opts[w] = ""
			l.args = append(l.args, w)
		}
		if raw[0] == ' ' || raw[0] == '\t' {
			if len(out) == 0 {
				return nil, fmt.Errorf("%s: nothing above it", raw)
			}
			out[len(out)-1].sub = append(out[len(out)-1].sub, l)
			continue
		}
		out = append(out, l)
	}
	return out, nil
}

// split splits at blanks; double quotes, also behind key=, hold words together.
func split(s string) ([]string, error) {
	var words []string
	var cur strings.Builder
	quoted, any := false, false
	for _, r := range s {
		switch {
		case r == '"':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if any {
				words = append(words, cur.String())
			}
			cur.Reset()
			any = false
		default:
			cur.WriteRune(r)
			any = true
		}
	}
	if any {
		words = append(words, cur.String())
	}
	if quoted {
		return nil, errors.New("a quote is not closed")
	}
	return words, nil
}

func (l line) arg(i int) string {
	if i < len(l.args) {
		return l.args[i]
	}
	return ""
}

func (l line) has(key string) bool { _, ok := l.opts[key]; return ok }

func (l line) number(key string) int {
	n, _ := strconv.Atoi(l.opts[key])
	return n
}

// money is the word that begins with $.
func (l line) money() (usd float64, ok bool) {
	for _, a := range l.args {
		if v, is := strings.CutPrefix(a, "$"); is {
			usd, err := strconv.ParseFloat(v, 64)
			return usd, err == nil
		}
	}
	return 0, false
}

func (l line) halt() *loop.Ending {
	r, ok := l.opts["halt"]
	if !ok {
		return nil
	}
	e := &loop.Ending{Subtype: message.Success, Terminal: message.TerminalReason(r), Refusal: "a hook stopped the run."}
	if strings.HasPrefix(r, "aborted") {
		e.Subtype, e.Errors = message.ErrorDuringExecution, []string{"Request interrupted"}
	}
	return e
}

func (l line) config() loop.Config {
	c := loop.Config{
		Width: l.number("width"), CompactAt: int64(l.number("compact_at")), StopBlockCap: l.number("stop_cap"),
		Steer: l.has("steer"), Replay: l.has("replay"), BatchHooks: l.has("batch_hooks"),
		StopHooks: l.has("stop_hooks"), Schema: l.has("schema"),
	}
	if l.has("max_turns") {
		c.MaxTurns = new(l.number("max_turns"))
	}
	if l.has("schema_retries") {
		c.SchemaRetries = new(l.number("schema_retries"))
	}
	if v, ok := l.opts["budget"]; ok {
		usd, _ := strconv.ParseFloat(v, 64)
		c.MaxBudgetUSD = &usd
	}
	return c
}

// player turns the lines of a script into events.
type player struct {
	w     *world
	keys  map[string]string // tool_use id → the newest call's key
	total float64           // of the tree so far
	seq   int               // of responses
}

// spend adds to the running total.
func (p *player) spend(usd float64) loop.Spend {
	p.total += usd
	total, _ := strconv.ParseFloat(strconv.FormatFloat(p.total, 'f', 6, 64), 64) // no 0.30000000000000004
	return loop.Spend{USD: total, Models: map[string]message.ModelUsage{"m": {CostUSD: total}}}
}

func (p *player) key(id string) (string, error) {
	for _, c := range p.w.m.Calls() {
		if c.ID == id {
			p.keys[id] = c.Key
		}
	}
	if p.keys[id] == "" {
		return "", fmt.Errorf("no call %q", id)
	}
	return p.keys[id], nil
}

// event returns the event of a line.
func (p *player) event(l line) (loop.Event, error) {
	id := p.w.m.Turn().Await
	usd, spends := l.money()
	switch l.name {
	case "send":
		in := loop.Input{ID: l.arg(0), Content: message.TextContent(l.arg(1)), NoQuery: l.has("noquery"), Synthetic: l.has("synthetic")}
		if l.has("steer") || l.has("nosteer") {
			in.Steer = new(l.has("steer"))
		}
		if o, ok := l.opts["origin"]; ok {
			in.Origin = &message.Origin{Kind: o}
		}
		return loop.Send{Input: in}, nil
	case "admit":
		e := loop.Admitted{ID: id, Init: &message.Init{Model: "m"}, Context: textBlocks(l.opts["context"])}
		if v, ok := l.opts["prompt"]; ok {
			e.Content = message.TextContent(v)
		}
		return e, nil
	case "local":
		e := loop.Local{ID: id, Init: &message.Init{Model: "m"}, Text: l.arg(0), Keep: l.has("keep")}
		if v, ok := l.opts["notice"]; ok {
			e.Notices = []message.Message{&message.Informational{Content: v, Level: "warning"}}
		}
		return e, nil
	case "respond":
		return p.response(l, id)
	case "fail":
		status, _ := strconv.Atoi(l.arg(0))
		return loop.Failed{
			ID: id, Text: l.arg(2), Category: message.ErrorCategory(l.arg(1)), Status: status,
			Terminal: message.TerminalReason(l.opts["terminal"]), Spend: p.spend(usd), APITime: time.Second,
		}, nil
	case "toolong":
		return loop.TooLong{ID: id, Text: l.arg(0), Status: 400, Spend: p.spend(usd)}, nil
	case "nobudget":
		return loop.BudgetReached{ID: id, Spend: p.spend(usd)}, nil
	case "cancelled":
		return loop.Cancelled{ID: id}, nil
	case "batched":
		return loop.Batched{ID: id, Context: textBlocks(l.opts["context"]), Halt: l.halt()}, nil
	case "stopped":
		return loop.Stopped{ID: id, Block: l.opts["block"], Halt: l.halt()}, nil
	case "compacted":
		return loop.Compacted{
			ID: id, Summary: l.arg(0), KeepFrom: p.w.m.History().Len() - l.number("keep"), Tokens: int64(l.number("tokens")),
			PreTokens: p.w.m.Turn().Tokens, Trigger: "auto", Spend: p.spend(usd),
		}, nil
	case "compactfailed":
		return loop.Compacted{ID: id, Err: l.arg(0), Blocked: l.arg(0) == "", Spend: p.spend(usd)}, nil
	case "allow", "deny", "defer", "finish":
		key, err := p.key(l.arg(0))
		if err != nil {
			return nil, err
		}
		return p.callEvent(l, key)
	case "interrupt":
		return loop.Interrupt{Reply: "r", CancelQueue: l.has("cancel_queue")}, nil
	case "spent":
		return loop.Spent{Spend: p.spend(usd)}, nil
	case "configure":
		return loop.Configure{Model: l.opts["model"], Mode: l.opts["mode"]}, nil
	case "abort":
		return loop.Abort{Ending: loop.Ending{
			Subtype: message.ErrorDuringExecution, Errors: []string{l.arg(0)}, Refusal: l.arg(0),
		}}, nil
	case "endinput":
		return loop.EndInput{}, nil
	case "close":
		return loop.Close{Killed: l.has("killed")}, nil
	}
	return nil, fmt.Errorf("unknown event %q (money: %v)", l.name, spends)
}

func (p *player) callEvent(l line, key string) (loop.Event, error) {
	switch l.name {
	case "allow":
		d := loop.Decided{Key: key, Allow: true, Reason: "rule", Halt: l.halt()}
		if v, ok := l.opts["input"]; ok {
			d.Input = []byte(strings.ReplaceAll(v, "'", `"`))
		}
		return d, nil
	case "defer":
		return loop.Decided{Key: key, Defer: true}, nil
	case "deny":
		return loop.Decided{
			Key: key, Reason: "rule", Context: textBlocks(l.opts["context"]), Content: message.TextContent(l.arg(1)), Halt: l.halt(),
			Denial:  &message.PermissionDenial{ToolName: "T", ToolUseID: l.arg(0), ToolInput: []byte(`{}`)},
			Notices: []message.Message{&message.PermissionDenied{ToolUseID: l.arg(0)}},
		}, nil
	}
	f := loop.Finished{Key: key, Content: message.TextContent(l.arg(1)), IsError: l.has("error"), Halt: l.halt(), Context: textBlocks(l.opts["context"])}
	if v, ok := l.opts["valid"]; ok {
		f.Valid, f.Structured = true, []byte(strings.ReplaceAll(v, "'", `"`))
		if !json.Valid(f.Structured) {
			return nil, fmt.Errorf("valid=%s is no JSON", f.Structured)
		}
	}
	if usd, ok := l.money(); ok {
		f.Spend = new(p.spend(usd))
	}
	return f, nil
}

func (p *player) response(l line, id string) (loop.Event, error) {
	p.seq++
	usd, _ := l.money()
	e := loop.Response{
		ID: id, MsgID: "msg_" + strconv.Itoa(p.seq), Model: "m", Spend: p.spend(usd), Tokens: int64(l.number("tokens")),
		Usage: message.Usage{InputTokens: 10, OutputTokens: 1}, APITime: time.Second, Aborted: l.has("aborted"),
		SentAt: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
	}
	if s := l.arg(0); s != "-" {
		e.Stop = s
	}
	if v, ok := l.opts["broken"]; ok {
		e.Broken = &loop.Broken{Notice: v, Status: l.number("status"), Category: message.CategoryServerError}
	}
	for _, s := range l.sub {
		switch s.name {
		case "text":
			e.Blocks = append(e.Blocks, message.NewText(s.arg(0)))
			e.Text += s.arg(0)
		case "think":
			e.Blocks = append(e.Blocks, message.NewThinking(s.arg(0), "sig"))
		case "server":
			b, err := message.ParseBlock(fmt.Appendf(nil, `{"type":"server_tool_use","id":"srv","name":%q,"input":{}}`, s.arg(0)))
			if err != nil {
				return nil, err
			}
			e.Blocks = append(e.Blocks, b)
		case "call":
			c := loop.Call{
				ID: s.arg(0), Name: s.arg(1), Concurrent: s.has("concurrent"), Repeatable: s.has("repeatable"),
				Spawns: s.has("spawns"), Internal: s.has("internal"),
			}
			for _, f := range []loop.Fault{loop.FaultUnknown, loop.FaultMalformed, loop.FaultCut} {
				if s.has(string(f)) {
					c.Fault = f
				}
			}
			e.Blocks = append(e.Blocks, message.NewToolUse(c.ID, c.Name, nil))
			e.Calls = append(e.Calls, c)
		default:
			return nil, fmt.Errorf("unknown part %q", s.raw)
		}
	}
	return e, nil
}

func textBlocks(s string) []message.Block {
	if s == "" {
		return nil
	}
	return []message.Block{message.NewText(s)}
}

// play runs a script and returns what happened.
func play(t failer, script string) (string, error) {
	lines, err := parseScript(script)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	var p *player
	for _, l := range lines {
		fmt.Fprintf(&out, "> %s\n", l.raw)
		for _, s := range l.sub {
			fmt.Fprintf(&out, ">     %s\n", s.raw)
		}
		if l.name == "config" {
			p = &player{w: newWorld(t, l.config()), keys: map[string]string{}}
			continue
		}
		if p == nil {
			return "", errors.New("the first line is no config")
		}
		r, err := p.step(l)
		if err != nil {
			return "", fmt.Errorf("%s: %w", l.raw, err)
		}
		p.render(&out, r)
		p.w.replay(p.w.outcomes...)
	}
	return out.String(), nil
}

func (p *player) step(l line) (loop.Ready, error) {
	if l.name != "recover" {
		ev, err := p.event(l)
		if err != nil {
			return loop.Ready{}, err
		}
		return p.w.feed(ev), nil
	}
	how := loop.CloseOpen
	if l.arg(0) == "continue" {
		how = loop.Continue
	}
	known := map[string]loop.Known{}
	if id, ok := l.opts["known"]; ok {
		key, err := p.key(id)
		if err != nil {
			return loop.Ready{}, err
		}
		known[key] = loop.Known{Content: message.TextContent("The file has the intended content.")}
	}
	p.w.crash()
	return p.w.recover(how, known), nil
}
