package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/internal/wire"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// laterRequests are control requests of the contract whose feature is not built
// yet, with the letter of docs/roadmap.md that brings it.
var laterRequests = map[string]string{
	"mcp_status": "G", "get_context_usage": "H", "mcp_reconnect": "G", "mcp_toggle": "G",
	"stop_task": "G", "set_max_thinking_tokens": "H", "apply_flag_settings": "G", "mcp_set_servers": "G",
	"read_file": "G", "get_settings": "G", "update_settings": "G", "rename_session": "G",
	"register_repo_root": "G", "reload_plugins": "J", "mcp_authenticate": "F",
}

// Control implements wire.Handler.
func (c *client) Control(r *wire.Request) {
	var err error
	switch r.Subtype {
	case "initialize":
		err = c.initialize(r)
	case "interrupt":
		err = c.interruptBy(r)
	case "set_model":
		err = c.setModel(r)
	case "set_permission_mode":
		err = c.setMode(r)
	case "rewind_files":
		err = c.rewind(r)
	default:
		if letter, ok := laterRequests[r.Subtype]; ok {
			err = fmt.Errorf("the control request %q is not supported yet (issue %s of docs/roadmap.md brings it)", r.Subtype, letter)
		} else {
			err = fmt.Errorf("unknown control request %.80q", r.Subtype)
		}
	}
	if err != nil {
		r.Fail(err)
	}
}

// interruptBy ends the running turn. The receipt stands before its result
// (W-170, M-111).
func (c *client) interruptBy(r *wire.Request) error {
	var f struct {
		CancelQueued bool `json:"cancel_queued"`
	}
	if err := r.Decode(&f); err != nil {
		return err
	}
	var opts []turnwright.InterruptOption
	if f.CancelQueued {
		opts = append(opts, turnwright.CancelQueued())
	}
	var err error
	c.conn.Ahead(func() {
		var found turnwright.Receipt
		ctx, cancel := context.WithTimeout(r.Context(), commandWait)
		defer cancel()
		found, err = c.s.Interrupt(ctx, opts...)
		if err != nil && !errors.Is(err, turnwright.ErrClosed) {
			return
		}
		err = nil
		answer := map[string][]string{"still_queued": orNone(found.StillQueued)}
		if f.CancelQueued {
			answer["cancelled"] = orNone(found.Cancelled)
		}
		r.Succeed(answer)
	})
	return err
}

// orNone makes a list of nil, which JSON would show as null.
func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (c *client) setModel(r *wire.Request) error {
	var f struct {
		Model *string `json:"model"` // null, absent: the session's default (W-92)
	}
	if err := r.Decode(&f); err != nil {
		return err
	}
	name := ""
	if f.Model != nil {
		name = *f.Model
	}
	if err := c.s.SetModel(r.Context(), name); err != nil {
		return err
	}
	r.Succeed(nil)
	return nil
}

func (c *client) setMode(r *wire.Request) error {
	var f struct {
		Mode *string `json:"mode"`
	}
	if err := r.Decode(&f); err != nil {
		return err
	}
	if f.Mode == nil || *f.Mode == "" {
		return errors.New(`set_permission_mode: the field "mode" is missing`)
	}
	if err := c.s.SetPermissionMode(r.Context(), turnwright.PermissionMode(*f.Mode)); err != nil {
		return err
	}
	r.Succeed(nil)
	return nil
}

// laterInitialize are fields of initialize whose feature is not built yet.
var laterInitialize = []struct{ name, letter string }{
	{"agents", "I"},
	{"skills", "J"},
	{"excludeDynamicSections", "H"},
	{"forwardSubagentText", "I"},
	{"sdkMcpServers", "F"},
	{"systemPrompt", "G"},
	{"appendSystemPrompt", "G"},
	{"jsonSchema", "H"},
	{"title", "G"},
	{"agentProgressSummaries", "I"},
	{"promptSuggestions", "J"},
	{"planModeInstructions", "J"},
}

// initialized is the answer to initialize (W-67).
type initialized struct {
	Commands     []message.SlashCommand `json:"commands"`
	Agents       []struct{}             `json:"agents"`
	OutputStyle  string                 `json:"output_style"`
	OutputStyles []string               `json:"available_output_styles"`
	Models       []modelInfo            `json:"models"`
	Account      struct{}               `json:"account"`
	HooksApplied bool                   `json:"hooks_applied,omitempty"` // W-68
}

// modelInfo describes a model that a client may choose.
type modelInfo struct {
	Value            string   `json:"value"`
	DisplayName      string   `json:"displayName"`
	Description      string   `json:"description"`
	SupportsEffort   bool     `json:"supportsEffort,omitempty"`
	EffortLevels     []string `json:"supportedEffortLevels,omitempty"`
	AdaptiveThinking bool     `json:"supportsAdaptiveThinking,omitempty"`
}

// initialize answers with what there is. A field that asks for more is an
// error, since a client would take silence for consent; unknown fields are
// ignored (W-63).
func (c *client) initialize(r *wire.Request) error {
	var fields map[string]json.RawMessage
	if err := r.Decode(&fields); err != nil {
		return err
	}
	if h := fields["hooks"]; len(h) > 0 && h[0] != '{' && string(h) != "null" {
		return errors.New(`initialize: the field "hooks" must be an object or null`)
	}
	for _, later := range laterInitialize {
		if asksFor(fields[later.name]) {
			return fmt.Errorf("initialize: %q is not supported yet (issue %s of docs/roadmap.md brings it)", later.name, later.letter)
		}
	}
	answer := initialized{
		Commands: []message.SlashCommand{}, Agents: []struct{}{},
		OutputStyle: "default", OutputStyles: []string{"default"}, Models: modelList(),
	}
	if h := fields["hooks"]; asksFor(h) || c.hooked {
		if !asksFor(h) {
			h = json.RawMessage("{}") // a client that has begun anew, without hooks
		}
		if err := c.useHooks(h); err != nil {
			return err
		}
		c.hooked, answer.HooksApplied = true, asksFor(fields["hooks"])
	}
	if c.begun {
		r.SucceedAgain(answer)
		return nil
	}
	c.begun = true
	r.Succeed(answer)
	return nil
}

// asksFor reports whether the value asks for something, rather than for nothing.
func asksFor(raw json.RawMessage) bool {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// modelList are the models of the catalog that are still served.
func modelList() []modelInfo {
	list := []modelInfo{{Value: "default", DisplayName: "Default", Description: "the model that the session started with"}}
	for _, m := range model.DefaultCatalog().All() {
		if m.Retired {
			continue
		}
		about := []string{}
		if m.ContextWindow > 0 {
			about = append(about, fmt.Sprintf("context of %d tokens", m.ContextWindow))
		}
		if m.Price != nil {
			about = append(about, fmt.Sprintf("$%g in and $%g out a million tokens", m.Price.Input, m.Price.Output))
		}
		list = append(list, modelInfo{
			Value: m.ID, DisplayName: m.ID, Description: strings.Join(about, ", "),
			SupportsEffort: len(m.Effort) > 0, EffortLevels: slices.Clone(m.Effort),
			AdaptiveThinking: m.Thinking == model.ThinkingAdaptive,
		})
	}
	return list
}
