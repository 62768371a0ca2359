package explain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// conclude says how the user turn ended and what decided it. The result is nil
// where there was none.
func (u *UserTurn) conclude(e *loop.Ending, r *message.Result, t loop.Turn, open loop.Settings) {
	if e == nil {
		e = &loop.Ending{}
	}
	u.TerminalReason = e.Terminal
	if r != nil {
		u.Subtype, u.TerminalReason, u.IsError, u.Errors = r.Subtype, r.TerminalReason, r.IsError, r.Errors
		if r.StopReason != nil {
			u.StopReason = *r.StopReason
		}
	}
	status := ""
	if e.Status != 0 {
		status = strconv.Itoa(e.Status)
	}
	set := func(p Path, field, value, limit string) { u.Path, u.Field, u.Value, u.Limit = p, field, value, limit }
	switch {
	case e.Silent:
		set(ProcessEnded, "process", cmp.Or(e.By, "end of the process"), "")
	case r == nil:
		set(Unknown, "result", "missing", "")
	case u.TerminalReason == message.TerminalMaxTurns:
		set(Cap, "max_turns", strconv.Itoa(u.ToolTurns), cmp.Or(open.MaxTurns, inBrackets(u.Errors)))
	case u.TerminalReason == message.TerminalBudgetExhausted:
		spent := t.Spend.USD
		if r.TotalCostUSD != nil {
			spent = *r.TotalCostUSD
		}
		set(Budget, "max_budget_usd", dollars(spent), cmp.Or(open.MaxBudgetUSD, strings.TrimPrefix(inBrackets(u.Errors), "$")))
	case u.TerminalReason == message.TerminalAbortedStreaming:
		set(Interrupted, cmp.Or(e.By, "interrupt"), "while the model answered", "")
	case u.TerminalReason == message.TerminalAbortedTools:
		set(Interrupted, cmp.Or(e.By, "interrupt"), "while tools ran", "")
	case u.TerminalReason == message.TerminalHookStopped || u.TerminalReason == message.TerminalStopHookPrevented:
		set(Hook, "continue", "false", "")
		u.Value = cmp.Or(e.By, "false")
	case u.TerminalReason == message.TerminalToolDeferred, u.TerminalReason == message.TerminalToolDeferredUnavailable:
		name := ""
		if r.DeferredToolUse != nil {
			name = r.DeferredToolUse.Name
		}
		set(Deferred, "deferred_tool_use", name, "")
	case u.TerminalReason == message.TerminalStructuredOutputRetries:
		set(Schema, "structured_output", "no output fitted", strconv.Itoa(max(t.Attempts, 1))+" attempts")
	case u.TerminalReason == message.TerminalPromptTooLong, u.TerminalReason == message.TerminalRapidRefillBreaker, u.TerminalReason == message.TerminalBlockingLimit:
		set(Context, "context_tokens", strconv.FormatInt(t.Tokens, 10), window(t.Spend))
	case u.TerminalReason == message.TerminalImageError:
		set(Image, "api_error_status", cmp.Or(status, "400"), "")
	case u.TerminalReason == message.TerminalModelError:
		set(ModelError, "model", open.Model, "")
	case u.TerminalReason == message.TerminalMalformedToolUse:
		set(Malformed, "malformed responses in a row", strconv.Itoa(t.Malformed+1), strconv.Itoa(t.Malformed+1))
	case u.TerminalReason == message.TerminalTurnSetupFailed:
		set(Setup, "journal", strings.Join(u.Errors, "; "), "")
	case u.TerminalReason == message.TerminalAPIError:
		set(APIError, "api_error_status", cmp.Or(status, "none: no answer"), "")
		if u.Subtype == message.Success {
			u.Field, u.Value = "stream", "broke after part of the answer"
		}
	case u.TerminalReason == message.TerminalCompleted && u.StopReason == "refusal":
		set(Refused, "stop_reason", u.StopReason, "")
	case u.TerminalReason == message.TerminalCompleted && u.IsError:
		set(CutOff, "stop_reason", u.StopReason, "")
	case u.TerminalReason == message.TerminalCompleted:
		set(Natural, "stop_reason", u.StopReason, "")
	case u.Subtype == message.Success && u.TerminalReason == "":
		set(Local, "prompt", clip(cmp.Or(deref(r.Result), "handled without the model"), textSize), "")
	case e.By == "end of the process":
		set(ProcessEnded, "process", e.By, "")
	default:
		set(Unknown, "terminal_reason", string(u.TerminalReason), "")
	}
	u.Why = u.why(r)
}

// why is the sentence of Why, with what only the journal knows.
func (u *UserTurn) why(r *message.Result) string {
	switch u.Path {
	case ProcessEnded:
		return "the process ended before this turn was finished; calls that ran then say so in their results."
	case Interrupted:
		return fmt.Sprintf("it was interrupted %s, by: %s.", u.Value, u.Field)
	case Hook:
		return "a hook ended the turn (" + u.Value + ")."
	case Local:
		return "it was answered without the model: " + u.Value
	case Cap:
		return fmt.Sprintf("the cap of tool turns was reached (max_turns %s): %s had run and the model asked for one more, which was not executed.", u.Limit, Turns(u.ToolTurns))
	case Budget:
		return fmt.Sprintf("the budget was reached after %s: $%s of $%s.", Turns(u.ToolTurns), u.Value, u.Limit)
	case Unknown:
		return "the journal does not tell."
	}
	return Why(r)
}

// unfinished concludes a user turn that has no end in the journal.
func (u *UserTurn) unfinished(t loop.Turn) {
	u.Path, u.Field, u.Value = Unfinished, "state", string(t.State)
	if u.DurationMS == 0 && u.Ended.After(u.Begun) {
		u.DurationMS = u.Ended.Sub(u.Begun).Milliseconds()
	}
	u.Why = "it has no end in the journal: it still runs, or its process ended " + map[loop.State]string{
		loop.Admit: "before the first model request", loop.Model: "during a model request", loop.Tools: "while tools ran or were decided on",
		loop.Batch: "during hooks after tools", loop.Compact: "during a compaction", loop.Stop: "during Stop hooks", loop.Settle: "while the turn was ending",
	}[t.State] + "."
}

// foreign concludes a user turn of another program from its messages.
func (u *UserTurn) foreign() {
	if n := len(u.Responses); n > 0 {
		u.StopReason = u.Responses[n-1].StopReason
	}
	for i := range u.Responses {
		if len(u.Responses[i].Calls) > 0 {
			u.ToolTurns++
			u.Responses[i].ToolTurn = u.ToolTurns
		}
	}
	if !u.Ended.IsZero() {
		u.DurationMS = u.Ended.Sub(u.Begun).Milliseconds()
	}
	u.Field, u.Value = "stop_reason", u.StopReason
	switch {
	case len(u.Errors) > 0:
		u.Path, u.IsError, u.Why = APIError, true, "the last thing in it is an error: "+strings.Join(u.Errors, "; ")
	case u.StopReason == "refusal":
		u.Path, u.Why = Refused, "the model declined to go on (stop_reason refusal)."
	case u.StopReason == "max_tokens" || u.StopReason == "model_context_window_exceeded":
		u.Path, u.Why = CutOff, "the answer was cut off by the model's output limit or context window."
	case len(u.Responses) > 0 && len(u.Responses[len(u.Responses)-1].Calls) == 0:
		u.Path, u.Why = Natural, "the model answered without asking for a tool, after "+Turns(u.ToolTurns)+"."
	default:
		u.Path, u.Why = Unfinished, "the conversation ends in the middle of this turn."
	}
}

// Why says in one sentence why a run with this result stopped.
func Why(r *message.Result) string {
	switch r.Subtype {
	case message.Success:
		switch {
		case r.TerminalReason == message.TerminalHookStopped:
			return "a hook ended the turn."
		case r.TerminalReason == message.TerminalToolDeferred:
			return "a hook left a call open; the next message goes on with it."
		case r.TerminalReason == message.TerminalToolDeferredUnavailable:
			return "a call was left open whose tool is not in this session."
		case r.StopReason != nil && *r.StopReason == "refusal":
			return "the model declined to go on (stop_reason refusal)."
		case r.IsError && r.TerminalReason == message.TerminalAPIError:
			return "the connection to the model broke after part of the answer had arrived."
		case r.IsError:
			return "the answer was cut off by the model's output limit or context window."
		}
		return "the model answered without asking for a tool, after " + Turns(r.ToolTurns) + "."
	case message.ErrorMaxTurns:
		return fmt.Sprintf("the cap of tool turns was reached: %d had run and the model asked for one more, which was not executed.", r.ToolTurns)
	case message.ErrorMaxBudgetUSD:
		return "the budget was reached after " + Turns(r.ToolTurns) + "."
	case message.ErrorMaxStructuredOutputRetries:
		return "the model gave no output that fits the schema."
	}
	return fmt.Sprintf("the run failed (%s): %s.", r.TerminalReason, strings.TrimRight(strings.Join(r.Errors, "; "), "."))
}

// Turns counts tool turns in words.
func Turns(n int) string {
	if n == 1 {
		return "1 tool turn"
	}
	return fmt.Sprintf("%d tool turns", n)
}

// window is the context window of the models that were used, the largest.
func window(s loop.Spend) string {
	most := int64(0)
	for _, m := range s.Models {
		most = max(most, m.ContextWindow)
	}
	if most == 0 {
		return ""
	}
	return strconv.FormatInt(most, 10)
}

// inBrackets is the limit in an error of the loop, such as "… turns (3)".
func inBrackets(errs []string) string {
	for _, e := range errs {
		if i, j := strings.LastIndexByte(e, '('), strings.LastIndexByte(e, ')'); i >= 0 && j > i {
			return e[i+1 : j]
		}
	}
	return ""
}

// dollars writes an amount to a millionth.
func dollars(usd float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(usd, 'f', 6, 64), "0"), ".")
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
