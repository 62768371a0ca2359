package message

import (
	"encoding/json"
	"strings"
)

// Result ends a user turn; there is exactly one a turn (M-53 to M-67).
//
// Which keys it has follows from Subtype: Result is written for Success only,
// also when it is "" or nil; Errors for the error subtypes only, as [] when
// nil (M-54, M-55). A field that the subtype does not allow is left out of the
// JSON. A result of a subtype that this package does not know is written with
// what it has.
type Result struct {
	Subtype           Subtype               `json:"subtype"`
	IsError           bool                  `json:"is_error"`        // true on every error subtype, and when a success ends on a failure (M-58)
	DurationMS        int64                 `json:"duration_ms"`     // wall time of the user turn
	DurationAPIMS     int64                 `json:"duration_api_ms"` // the part of it spent in API calls (M-57)
	NumTurns          int                   `json:"num_turns"`       // completed turns, the final text-only one included (L-20)
	ToolTurns         int                   `json:"tool_turns"`      // finished tool turns alone (L-20)
	Result            *string               `json:"result,omitempty"`
	Errors            []string              `json:"errors,omitempty"`
	StopReason        *string               `json:"stop_reason"`                               // of the last response; nil: none
	TotalCostUSD      *float64              `json:"total_cost_usd,omitempty"`                  // running total of the session's process; nil: unknown, not 0 (M-65)
	Usage             *Usage                `json:"usage,omitempty"`                           // this user turn's main conversation (W-268); nil: unknown
	ModelUsage        map[string]ModelUsage `json:"modelUsage,omitzero"`                       // running totals by model, subagents included; nil: unknown
	PermissionDenials []PermissionDenial    `json:"permission_denials"`                        // every denied call (M-61)
	StructuredOutput  json.RawMessage       `json:"structured_output,omitempty"`               // success only
	DeferredToolUse   *ToolUse              `json:"deferred_tool_use,omitempty"`               // success only
	APIErrorStatus    *int                  `json:"api_error_status,omitempty" wire:"lenient"` // HTTP status of the failure; nil: none
	TerminalReason    TerminalReason        `json:"terminal_reason,omitempty" wire:"lenient"`  // "": the loop was bypassed (L-61)
	Origin            *Origin               `json:"origin,omitempty" wire:"lenient"`           // of the message that started the turn (M-66)
	UserMessageUUID   string                `json:"user_message_uuid,omitempty"`               // success only, together with the next (M-59)
	RequestSentWallMS int64                 `json:"request_sent_wall_ms,omitempty"`            // milliseconds since the Unix epoch
	TTFTMS            *int64                `json:"ttft_ms,omitempty"`                         // success only: milliseconds to the first complete response (M-60)
	TTFTStreamMS      *int64                `json:"ttft_stream_ms,omitempty"`                  // success only: milliseconds to the first message_start
	Header
}

// Kind implements Message.
func (r *Result) Kind() (typ, subtype string) { return "result", string(r.Subtype) }

// Text returns the final text of a success and "" for every error (L-67). The
// last text of a turn that ended in an error is LastText of its messages.
func (r *Result) Text() string {
	if r == nil || r.Result == nil || r.Subtype.IsError() {
		return ""
	}
	return *r.Result
}

// keyRule holds M-54, M-55 and M-59.
func (r *Result) keyRule(name string) rule {
	success, failed := r.Subtype == Success, r.Subtype.IsError()
	switch name {
	case "result":
		if success {
			return force
		}
	case "errors":
		if success {
			return drop
		}
		if failed {
			return force
		}
		return byTag
	case "user_message_uuid", "request_sent_wall_ms":
		if r.IsError || r.UserMessageUUID == "" || r.RequestSentWallMS == 0 {
			return drop
		}
	case "structured_output", "deferred_tool_use", "ttft_ms", "ttft_stream_ms":
	default:
		return byTag
	}
	if failed {
		return drop
	}
	return byTag
}

// PermissionDenial is one denied call (M-61).
type PermissionDenial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input" wire:"object"`
}

// Subtype says how a user turn ended (L-54).
type Subtype string

// The five result subtypes.
const (
	Success                         Subtype = "success"
	ErrorMaxTurns                   Subtype = "error_max_turns"
	ErrorMaxBudgetUSD               Subtype = "error_max_budget_usd"
	ErrorDuringExecution            Subtype = "error_during_execution"
	ErrorMaxStructuredOutputRetries Subtype = "error_max_structured_output_retries"
)

// IsError reports whether s is an error subtype. Every subtype that begins
// with "error" is one, so that those of a later version are not taken for
// successes.
func (s Subtype) IsError() bool { return strings.HasPrefix(string(s), "error") }

// TerminalReason is the finer cause beside the subtype (L-60).
type TerminalReason string

// The terminal reasons of L-60.
const (
	TerminalCompleted               TerminalReason = "completed"
	TerminalMaxTurns                TerminalReason = "max_turns"
	TerminalBudgetExhausted         TerminalReason = "budget_exhausted"
	TerminalStructuredOutputRetries TerminalReason = "structured_output_retry_exhausted"
	TerminalAbortedStreaming        TerminalReason = "aborted_streaming"
	TerminalAbortedTools            TerminalReason = "aborted_tools"
	TerminalToolDeferred            TerminalReason = "tool_deferred"
	TerminalToolDeferredUnavailable TerminalReason = "tool_deferred_unavailable"
	TerminalHookStopped             TerminalReason = "hook_stopped"
	TerminalStopHookPrevented       TerminalReason = "stop_hook_prevented"
	TerminalPromptTooLong           TerminalReason = "prompt_too_long"
	TerminalImageError              TerminalReason = "image_error"
	TerminalModelError              TerminalReason = "model_error"
	TerminalAPIError                TerminalReason = "api_error"
	TerminalMalformedToolUse        TerminalReason = "malformed_tool_use_exhausted"
	TerminalTurnSetupFailed         TerminalReason = "turn_setup_failed"
	TerminalBlockingLimit           TerminalReason = "blocking_limit"
	TerminalRapidRefillBreaker      TerminalReason = "rapid_refill_breaker"
)
