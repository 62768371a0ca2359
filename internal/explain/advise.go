package explain

import (
	"cmp"
	"fmt"
	"strconv"
)

// advise says what can be done about the way the user turn ended.
func (u *UserTurn) advise(id string) {
	next := func(format string, args ...any) { u.Next = append(u.Next, fmt.Sprintf(format, args...)) }
	resume := "turnwright -p --resume " + id
	switch u.Path {
	case Cap:
		limit, _ := strconv.Atoi(u.Limit)
		next("Go on with a higher cap: %s --max-turns %d \"Go on.\" (Options.MaxTurns).", resume, max(2*limit, limit+5))
		next("Ask the model to plan first, or to make several calls in one response: a turn is one response, however many calls it has.")
	case Budget:
		limit, _ := strconv.ParseFloat(u.Limit, 64)
		next("Go on with a higher budget, counted anew: %s --max-budget-usd %s \"Go on.\" (Options.MaxBudgetUSD).", resume, dollars(max(2*limit, 0.01)))
		if r := u.dearest(); r != nil && r.CostUSD > 0 {
			next("The dearest response cost $%s (%d input, %d output tokens, model %s). A cheaper model or smaller tool outputs help.", dollars(r.CostUSD), r.Usage.InputTokens+r.Usage.CacheReadInputTokens+r.Usage.CacheCreationInputTokens, r.Usage.OutputTokens, r.Model)
		}
	case Interrupted:
		next("Go on with the next message: %s \"…\".", resume)
	case Hook:
		next("Ask whoever wrote the hook, or see its output with --include-hook-events; it runs again at the next event.")
	case Deferred:
		next("Go on when the call may run: %s \"…\", with the tool %s in the session.", resume, cmp.Or(u.Value, "of the call"))
	case Schema:
		next("Loosen the schema, or allow more attempts (MAX_STRUCTURED_OUTPUT_RETRIES).")
	case APIError:
		u.adviseStatus(next)
		next("Nothing is lost: %s \"Go on.\"", resume)
	case ModelError:
		next("Check the model's name and that the account may use it: %s --model NAME \"Go on.\"", resume)
	case Context:
		next("Begin a new session, or use a model with a larger window: %s --model NAME \"Go on.\"", resume)
	case Image:
		next("Remove or shrink the image. Later messages of the session go without it: %s \"Go on.\"", resume)
	case Malformed:
		next("Offer fewer or simpler tools, or another model: %s --model NAME \"Go on.\"", resume)
	case Setup:
		next("Free the disk or mend its permissions, then: %s \"Go on.\"", resume)
	case CutOff:
		next("Split the task into smaller parts.")
	case Refused:
		next("Change the request; a fork without the last message keeps the rest: %s --fork-session \"…\".", resume)
	case ProcessEnded, Unfinished:
		next("Unless it still runs, go on: %s \"Go on.\" Calls that had begun are not run again by themselves.", resume)
	}
	u.adviseCalls(next)
}

func (u *UserTurn) adviseStatus(next func(format string, args ...any)) {
	switch status, _ := strconv.Atoi(u.Value); {
	case status == 401 || status == 403:
		next("Check the key (ANTHROPIC_API_KEY) and what it may do.")
	case status == 402:
		next("Check the account's credit.")
	case status == 429:
		next("The rate limit holds: wait, or run fewer agents at once.")
	case status == 413:
		next("Send less at once: the last message brought more than the API takes.")
	case status >= 500:
		next("The API had trouble: try again later.")
	case status >= 400:
		next("The API refused the request; the text of the error says what it did not like.")
	default:
		next("Check the network and ANTHROPIC_BASE_URL, then try again.")
	}
}

// adviseCalls tells of denied calls and of those whose outcome is not known.
func (u *UserTurn) adviseCalls(next func(format string, args ...any)) {
	type cause struct{ name, reason string }
	var order []cause
	denied, first := map[cause]int{}, map[cause]string{}
	for _, r := range u.Responses {
		for _, c := range r.Calls {
			switch c.Outcome {
			case Denied:
				k := cause{c.Name, c.Reason}
				if denied[k]++; denied[k] == 1 {
					order, first[k] = append(order, k), c.Input
				}
			case Lost, Killed, Open:
				next("See what this call did before it is repeated: %s %s", c.Name, c.Input)
			}
		}
	}
	for _, k := range order {
		times := "1 call"
		if n := denied[k]; n > 1 {
			times = strconv.Itoa(n) + " calls"
		}
		next("%s of %s denied (%s), such as %s. If that should be allowed, change the rule or add one (--allowedTools, settings); turnwright permissions check tells what a rule does.", times, k.name, cmp.Or(k.reason, "no reason recorded"), first[k])
	}
}

func (u *UserTurn) dearest() (best *Response) {
	for i := range u.Responses {
		if r := &u.Responses[i]; best == nil || r.CostUSD > best.CostUSD {
			best = r
		}
	}
	return best
}
