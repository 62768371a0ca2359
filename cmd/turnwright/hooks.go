package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/wire"
	"github.com/turnwright/turnwright/message"
)

// hookGroup is hooks of a client with one matcher (W-60).
type hookGroup struct {
	Matcher     *string  `json:"matcher"`
	CallbackIDs []string `json:"hookCallbackIds"`
	Timeout     float64  `json:"timeout"` // seconds; 0: the event's
}

// useHooks takes the hooks of an initialize request in place of earlier ones
// (W-69). An event that there is not never fires (W-154); a matcher that cannot
// be used matches nothing, which is told (H-21).
func (c *client) useHooks(raw json.RawMessage) error {
	var events map[string][]hookGroup
	if err := json.Unmarshal(raw, &events); err != nil {
		return fmt.Errorf("initialize: the field %q cannot be read: %w", "hooks", err)
	}
	table := hook.Table{}
	for _, name := range slices.Sorted(maps.Keys(events)) {
		ev := hook.Event(name)
		if !ev.Known() {
			continue
		}
		for _, g := range events[name] {
			if g.Timeout < 0 || g.Timeout > math.MaxInt64/float64(time.Second) {
				return fmt.Errorf("initialize: hooks of %s: the timeout %v is not a number of seconds", name, g.Timeout)
			}
			group := hook.Group{Timeout: time.Duration(g.Timeout * float64(time.Second))}
			if g.Matcher != nil {
				group.Matcher = *g.Matcher
			}
			for _, id := range g.CallbackIDs {
				group.Hooks = append(group.Hooks, c.hookCallback(id))
			}
			if err := (hook.Table{ev: {group}}).Check(); err != nil {
				c.notice(fmt.Sprintf("Hooks of the client never run: %v", err))
				continue
			}
			table[ev] = append(table[ev], group)
		}
	}
	return c.s.SetHooks(table)
}

// hookCallback asks the client what one of its hooks has to say (W-135, W-136).
// When the time is over the question is withdrawn (W-117).
func (c *client) hookCallback(id string) hook.Func {
	return func(ctx context.Context, in hook.Input, toolUseID string) (o hook.Output, err error) {
		input, err := message.Encode(in)
		if err != nil {
			return o, err
		}
		request := struct {
			CallbackID string          `json:"callback_id"`
			Input      json.RawMessage `json:"input"`
			ToolUseID  *string         `json:"tool_use_id"` // null: the event is about no call (W-152)
		}{CallbackID: id, Input: input}
		if toolUseID != "" {
			request.ToolUseID = &toolUseID
			answered, err := c.ask(ctx, toolUseID)
			if err != nil {
				return o, err
			}
			defer answered()
		}
		raw, err := c.conn.Call(ctx, "hook_callback", request)
		var refused *wire.CallError
		switch {
		case errors.Is(err, wire.ErrInputEnded):
			return o, fmt.Errorf("%w: %w", turnwright.ErrChannelLost, err)
		case errors.As(err, &refused) && refused.Text != "": // W-155
			return o, errors.New(refused.Text)
		case err != nil:
			return o, err
		}
		return hook.ParseOutput(in.Event(), raw)
	}
}
