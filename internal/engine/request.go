package engine

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/budget"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/tool"
)

// blankPrompt is the refusal of L-192.
const blankPrompt = "Blank prompt — the message was only whitespace, so nothing was sent to the model."

// strayResult is said of a message that has nothing else to send.
const strayResult = "The message was only a tool result that belongs to no call, so nothing was sent to the model."

// defaultMaxTokens is asked for where the model allows it (L-130).
const defaultMaxTokens = 32000

// admit lets an input start its turn: it makes init, refuses blank prompts and
// asks the hooks. Commands come here with a later issue.
func (s *Session) admit(id string) func(context.Context) loop.Event {
	in := s.machine.Prompt()
	init := new(s.cfg.Init())
	init.Tools = initTools(s.shown())
	init.Model, init.PermissionMode = s.machine.Settings().Model, s.machine.Settings().Mode
	about, start := s.about(), (*hook.SessionStartInput)(nil)
	if in != nil && !blank(in.Content) {
		start = s.starting()
	}
	gone := s.unavailable()
	return func(ctx context.Context) loop.Event {
		s.refresh()
		if in == nil || blank(in.Content) {
			text := blankPrompt
			if in != nil && slices.ContainsFunc(in.Content.Blocks(), func(b message.Block) bool { return b.Type() == message.TypeToolResult }) {
				text = strayResult
			}
			return loop.Local{ID: id, Init: init, Text: text, Notices: []message.Message{
				&message.Informational{Content: text, Level: "warning"},
			}}
		}
		s.prelude(ctx) // here, where reading files keeps nobody waiting
		shown := false
		a := s.admitHooks(ctx, id, in, about, start, func() {
			s.emit(init)
			shown = true
		})
		if a.first != "" {
			return loop.Preceded{ID: id, Input: loop.Input{
				ID: uuidText(s.cfg.NewUUID()), Content: message.TextContent(a.first),
				Origin: &message.Origin{Kind: message.OriginAutoContinuation},
			}}
		}
		if shown {
			init = nil
		}
		if !isInjected(in) {
			s.checkpoint(in.ID) // before the message is on record, so that none is without
		}
		if a.local == nil && gone != nil {
			a.local = &loop.Local{ID: id, Ending: gone}
		}
		if a.local != nil {
			a.local.Init = init
			return *a.local
		}
		return loop.Admitted{ID: id, Init: init, Before: a.before, Context: a.context}
	}
}

// blank reports whether there is nothing in c that can be sent: white space, and
// results, which belong to no call when a person sends them.
func blank(c message.Content) bool {
	return !slices.ContainsFunc(c.Blocks(), func(b message.Block) bool {
		return b.Type() != message.TypeToolResult && (b.Type() != message.TypeText || strings.TrimSpace(b.Text()) != "")
	})
}

// request assembles the next model request from the history.
func (s *Session) request() *model.Request {
	name := s.machine.Settings().Model
	maxTokens := defaultMaxTokens
	if info, ok := s.cfg.Catalog.Lookup(name); ok {
		if info.MaxOutput > 0 {
			maxTokens = min(maxTokens, int(info.MaxOutput))
		}
		if s.cfg.MaxTokens > 0 && info.MaxOutput > 0 {
			maxTokens = min(s.cfg.MaxTokens, int(info.MaxOutput))
		}
	} else if s.cfg.MaxTokens > 0 {
		maxTokens = s.cfg.MaxTokens
	}
	r := &model.Request{
		Model: name, MaxTokens: maxTokens, System: s.cfg.System,
		Tools: s.shown().Definitions(), Betas: s.cfg.Betas,
	}
	s.assemble(r)
	if s.cfg.Loop.MaxTurns != nil && *s.cfg.Loop.MaxTurns == 0 && len(r.Tools) > 0 {
		r.ToolChoice = json.RawMessage(`{"type":"none"}`) // L-32
	}
	return r
}

// callModel makes one model request with all its attempts.
func (s *Session) callModel(id string) func(context.Context) loop.Event {
	r := s.request()
	about, said := s.about(), s.machine.Turn().Text
	return func(ctx context.Context) (ev loop.Event) {
		if s.hooks.run.Has(hook.StopFailure) {
			defer func() { s.stopFailure(ctx, about, ev, said) }()
		}
		if err := s.out.waitRoom(ctx); err != nil {
			return loop.Cancelled{ID: id}
		}
		hold, err := s.cfg.Ledger.Hold(ctx, 0)
		if err != nil {
			if ctx.Err() != nil {
				return loop.Cancelled{ID: id}
			}
			return loop.BudgetReached{ID: id, Spend: s.spend()}
		}
		s.checkpoint()
		start := s.cfg.Now()
		opts := s.cfg.Call
		opts.OnEvent = s.onEvent(start)
		opts.OnRetry = func(m message.APIRetry) { s.emit(&m) }
		defer hold.Settle()
		attempt := 0
		opts.OnSpend = func(sp model.Spend) {
			// Each attempt is charged once. The response's own id is no key
			// for that: nothing makes a server's ids unique.
			attempt++
			s.charge(hold, r.Model, sp, id+"/"+strconv.Itoa(attempt))
		}
		s.debugRequest(id, r)
		resp, err := model.Call(ctx, s.cfg.Model, r, opts)
		hold.Settle() // before the total is read
		s.debugResponse(id, resp, err, start)
		return s.outcome(id, r, resp, err, start)
	}
}

// onEvent passes streaming events on, when they are asked for (M-45).
func (s *Session) onEvent(start time.Time) func(model.Event) {
	if !s.cfg.Partial {
		return nil
	}
	return func(ev model.Event) {
		m := &message.StreamEvent{Event: ev.Data}
		if ev.Type == "message_start" {
			m.TTFTMS = new(s.since(start).Milliseconds())
		}
		s.emit(m)
	}
}

// charge prices what an attempt was billed. A model without a price counts 0
// (L-224); the public API has warned, or refused a budgeted run.
func (s *Session) charge(h *budget.Hold, requested string, sp model.Spend, key string) {
	info, ok := s.cfg.Catalog.Lookup(requested)
	if !ok && sp.Model != "" {
		info, _ = s.cfg.Catalog.Lookup(sp.Model)
	}
	var cost float64
	if info.Price != nil {
		cost = info.Price.Cost(sp.Usage)
	}
	h.Charge(requested, sp.Usage, cost, s.cfg.Loop.SessionID+"/"+key)
}

// spend is the tree's running total with what is known of its models (M-63).
func (s *Session) spend() loop.Spend {
	t := s.cfg.Ledger.Total()
	for name, u := range t.Models {
		if info, ok := s.cfg.Catalog.Lookup(name); ok {
			u.ContextWindow, u.MaxOutputTokens = info.ContextWindow, info.MaxOutput
			if info.ID != name {
				u.CanonicalModel = info.ID
			}
			t.Models[name] = u
		}
	}
	return loop.Spend{USD: t.USD, Models: t.Models}
}

// outcome turns what model.Call returned into the one event of the effect.
func (s *Session) outcome(id string, r *model.Request, resp *model.Response, err error, start time.Time) loop.Event {
	apiTime := s.since(start)
	if err == nil {
		ev := s.respond(id, r, resp, start)
		ev.APITime = apiTime
		return ev
	}
	var me *model.Error
	if !errors.As(err, &me) {
		me = &model.Error{Kind: model.KindUnknown, Message: err.Error(), Text: "API Error: " + err.Error(), Err: err}
	}
	switch {
	case me.Kind == model.KindAborted:
		if resp == nil {
			return loop.Cancelled{ID: id}
		}
		ev := s.respond(id, r, resp, start)
		ev.APITime, ev.Aborted, ev.Stop = apiTime, true, ""
		return ev
	case me.Progress == model.ProgressBlock && resp != nil:
		ev := s.respond(id, r, resp, start)
		ev.APITime = apiTime
		ev.Broken = &loop.Broken{Notice: me.Error(), Status: me.Status, Category: me.Category()}
		return ev
	case me.Kind == model.KindTooLong:
		return loop.TooLong{ID: id, Text: me.Error(), Status: me.Status, Model: r.Model, APITime: apiTime, Spend: s.spend()}
	}
	terminal := message.TerminalReason("")
	switch me.Kind {
	case model.KindImage:
		terminal = message.TerminalImageError
	case model.KindModelNotFound:
		terminal = message.TerminalModelError
	}
	return loop.Failed{
		ID: id, Text: me.Error(), Category: me.Category(), Status: me.Status, Terminal: terminal,
		Model: r.Model, APITime: apiTime, Spend: s.spend(),
	}
}

// respond states the facts of a response. What was not finished is left out:
// unsigned thinking and unfinished calls always, unfinished text except in an
// interrupted response (decision 56).
func (s *Session) respond(id string, r *model.Request, resp *model.Response, start time.Time) loop.Response {
	ev := loop.Response{
		ID: id, MsgID: resp.ID, Model: resp.Model, Stop: resp.StopReason, StopSeq: resp.StopSequence,
		Usage: resp.Usage, StartUsage: resp.StartUsage, Spend: s.spend(),
		FirstEvent: resp.FirstEvent, SentAt: start.UTC().Round(0),
	}
	if ev.Model == "" {
		ev.Model = r.Model
	}
	u := resp.Usage
	ev.Tokens = u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens + u.OutputTokens
	seen := map[string]bool{}
	var text strings.Builder
	for i, b := range resp.Blocks {
		last := i == len(resp.Blocks)-1
		switch b.Type() {
		case message.TypeText:
			t := b.Text()
			if t == "" || !b.Done && resp.StopReason != "" && resp.StopReason != "max_tokens" {
				continue
			}
			text.WriteString(t)
		case message.TypeThinking:
			if th, ok := b.Thinking(); !b.Done || !ok || th.Signature == "" {
				if !b.Done || resp.StopReason == "" {
					continue
				}
			}
		case message.TypeToolUse:
			cut := resp.StopReason == "max_tokens" && (last || !b.Done)
			if !b.Done && !cut {
				continue
			}
			block, call, ok := s.callFacts(b, cut, seen)
			if !ok {
				continue
			}
			ev.Blocks = append(ev.Blocks, block)
			ev.Calls = append(ev.Calls, call)
			continue
		default:
			if !b.Done {
				continue
			}
		}
		ev.Blocks = append(ev.Blocks, b.Block)
	}
	ev.Text = text.String()
	return ev
}

// callFacts states the facts of one tool_use block. A cut block is stored with
// the input {} (L-75). An id that another call of the response has already is
// made unique, since each call has its own result.
func (s *Session) callFacts(b model.Block, cut bool, seen map[string]bool) (message.Block, loop.Call, bool) {
	u, ok := b.ToolUse()
	if !ok {
		return message.Block{}, loop.Call{}, false
	}
	block := b.Block
	id, name, input := s.callID(u.ID, seen), apiName(u.Name), rawjson.WholeText(u.Input)
	if id != u.ID || name != u.Name || len(input) != len(u.Input) {
		// The API would refuse the block when it comes back, and with it every
		// later request of the session.
		u.ID, u.Name, u.Input = id, name, input
		block = message.NewToolUse(u.ID, u.Name, u.Input)
	}
	seen[u.ID] = true
	call := loop.Call{ID: u.ID, Name: u.Name}
	_, spec, known := s.tools.Get(u.Name)
	call.Concurrent, call.Repeatable = spec.Traits.Concurrent, spec.Traits.Repeatable
	switch {
	case cut:
		call.Fault = loop.FaultCut
		call.FaultText = (&tool.RefusedError{
			Tool: u.Name, Reason: "this call was cut off by the output limit (stop reason max_tokens) and was not run. Split the work into smaller calls.",
		}).Error()
		if string(u.Input) != "{}" {
			block = message.NewToolUse(u.ID, u.Name, nil)
		}
	case !known:
		call.Fault = loop.FaultUnknown
		call.FaultText = (&tool.UnknownToolError{Name: u.Name, Known: s.tools.Names()}).Error()
	case b.BadInput:
		call.Fault = loop.FaultMalformed
		call.FaultText = (&tool.RefusedError{Tool: u.Name, Reason: "the input is not a JSON object", Input: b.RawInput}).Error()
	}
	return block, call, true
}

// callID returns an id that the API takes and that no other call of the
// response has.
func (s *Session) callID(id string, seen map[string]bool) string {
	if len(id) > maxCallID || !callIDForm.MatchString(id) {
		id = "toolu_" + strings.ReplaceAll(uuidText(s.cfg.NewUUID()), "-", "")
	}
	for n := 2; seen[id]; n++ {
		id = strings.TrimSuffix(id, "_"+strconv.Itoa(n-1)) + "_" + strconv.Itoa(n)
	}
	return id
}

var (
	callIDForm = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	notInName  = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

// maxCallID is the length of a call's id, in bytes. It is not in the expression,
// because repetitions are what makes compiling one slow, at every start.
const maxCallID = 256

// apiName returns a tool name that the API takes in a tool_use block. A name
// that it changes is no tool's.
func apiName(name string) string {
	if name == "" {
		return "unnamed"
	}
	name = notInName.ReplaceAllString(name, "_")
	return name[:min(len(name), 128)]
}
