package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/internal/wire"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
)

// question is a can_use_tool request (W-120).
type question struct {
	ToolName    string              `json:"tool_name"`
	Input       json.RawMessage     `json:"input"`
	Suggestions []permission.Update `json:"permission_suggestions"` // null: none
	BlockedPath *string             `json:"blocked_path"`           // null: none
	ToolUseID   string              `json:"tool_use_id"`
	AgentID     string              `json:"agent_id,omitempty"`
	Reason      string              `json:"decision_reason,omitempty"`
	Title       string              `json:"title,omitempty"`
	DisplayName string              `json:"display_name,omitempty"`
	Description string              `json:"description,omitempty"`
}

// verdict is the client's answer (W-124, W-125).
type verdict struct {
	Behavior  string            `json:"behavior"`
	Input     json.RawMessage   `json:"updatedInput"`
	Updates   []json.RawMessage `json:"updatedPermissions"` // W-122; one by one, so that a fault in one leaves the others
	Message   string            `json:"message"`
	Interrupt bool              `json:"interrupt"`
}

// approve asks the client about a call. It waits for the answer as long as
// the turn goes on (W-118); without anybody to ask the turn ends (W-378).
func (c *client) approve(ctx context.Context, q turnwright.PermissionRequest) (a turnwright.PermissionAnswer, err error) {
	answered, err := c.ask(ctx, q.ToolUseID)
	if err != nil {
		return a, err
	}
	ask := question{
		ToolName: q.ToolName, Input: q.Input, Suggestions: q.Suggestions, ToolUseID: q.ToolUseID, AgentID: q.AgentID,
		Reason: q.Reason, Title: q.Title, DisplayName: q.DisplayName, Description: q.Description,
	}
	if q.BlockedPath != "" {
		ask.BlockedPath = &q.BlockedPath
	}
	raw, err := c.conn.Call(ctx, "can_use_tool", ask)
	answered()
	var refused *wire.CallError
	switch {
	case errors.Is(err, wire.ErrInputEnded):
		return a, fmt.Errorf("%w: %w", turnwright.ErrChannelLost, err)
	case errors.As(err, &refused) && refused.Text != "": // W-128
		return turnwright.PermissionAnswer{Message: refused.Text}, nil
	case err != nil:
		return a, err
	}
	var v verdict
	if err := json.Unmarshal(raw, &v); err != nil {
		return a, fmt.Errorf("the client's answer cannot be read: %w", err)
	}
	switch v.Behavior {
	case "allow":
	case "deny":
		return turnwright.PermissionAnswer{Message: v.Message, Interrupt: v.Interrupt}, nil
	default:
		return a, fmt.Errorf("the client's answer has the behavior %.40q, must be allow or deny", v.Behavior)
	}
	if string(v.Input) == "null" {
		v.Input = nil
	}
	a = turnwright.PermissionAnswer{Allow: true, Input: v.Input}
	for _, raw := range v.Updates {
		var u turnwright.PermissionUpdate
		if err := json.Unmarshal(raw, &u); err != nil {
			c.notice(fmt.Sprintf("A permission update cannot be read and was left out: %v", err))
			continue
		}
		a.Updates = append(a.Updates, u)
	}
	return a, nil
}

// openCall is a tool call without result.
type openCall struct {
	shown chan struct{}   // closed when the line with the call is written
	asked []chan struct{} // a question each, closed when the client has answered (client.mu)
}

// ask waits until a question about a call may be asked: it goes past the
// messages that wait for their reader, and must not overtake the call that it
// is about (W-322). answered must be called when the question is over.
func (c *client) ask(ctx context.Context, id string) (answered func(), err error) {
	call := c.call(id)
	select {
	case <-call.shown:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	asked := make(chan struct{})
	c.mu.Lock()
	call.asked = append(call.asked, asked)
	c.mu.Unlock()
	return func() { close(asked) }, nil
}

func (c *client) call(id string) *openCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[id] == nil {
		c.calls[id] = &openCall{shown: make(chan struct{})}
	}
	return c.calls[id]
}

// show lets the questions about the calls of a written line be asked.
func (c *client) show(m *turnwright.AssistantMessage) {
	for _, u := range m.ToolUses() {
		call := c.call(u.ID)
		select {
		case <-call.shown: // a model that repeats an id
		default:
			close(call.shown)
		}
	}
}

// settle waits until the questions about the calls that m has results of are
// answered or withdrawn, so that this stands before the results. It takes no
// time: such a call has been decided, or its context has ended.
func (c *client) settle(m *message.User) {
	for _, r := range m.ToolResults() {
		c.mu.Lock()
		call := c.calls[r.ToolUseID]
		delete(c.calls, r.ToolUseID)
		var asked []chan struct{}
		if call != nil {
			asked = call.asked
		}
		c.mu.Unlock()
		for _, question := range asked {
			<-question
		}
	}
}
