package loop

import (
	"fmt"
	"strconv"

	"github.com/turnwright/turnwright/message"
)

func completed() Ending {
	return Ending{Subtype: message.Success, Terminal: message.TerminalCompleted}
}

func (s *step) maxTurnsEnding() Ending {
	return Ending{
		Subtype: message.ErrorMaxTurns, Terminal: message.TerminalMaxTurns,
		Errors:  []string{fmt.Sprintf("Reached maximum number of turns (%d)", *s.cfg.MaxTurns)},
		Refusal: fmt.Sprintf("the run reached its maximum number of turns (%d).", *s.cfg.MaxTurns),
	}
}

func (s *step) budgetEnding() Ending {
	limit := "$" + strconv.FormatFloat(*s.cfg.MaxBudgetUSD, 'f', -1, 64)
	return Ending{
		Subtype: message.ErrorMaxBudgetUSD, Terminal: message.TerminalBudgetExhausted,
		Errors:  []string{"Reached maximum budget (" + limit + ")"},
		Refusal: "Budget limit reached (" + limit + ").",
		LetRun:  true,
	}
}

// abortEnding is an interrupt: its reason tells whether the model was
// answering or tools were running (L-60).
func (s *step) abortEnding() Ending {
	terminal := message.TerminalAbortedStreaming
	if s.turn.State == Tools || s.turn.State == Batch {
		terminal = message.TerminalAbortedTools
	}
	return Ending{
		Subtype: message.ErrorDuringExecution, Terminal: terminal,
		Errors: []string{"Request interrupted"}, Refusal: "the request was interrupted.", By: "interrupt",
	}
}

func (s *step) refusalEnding(e Response) Ending {
	text := e.Text
	if text == "" {
		text = fmt.Sprintf("The model %s declined to answer this request (stop reason: refusal).", e.Model)
	}
	text = s.turn.Text + text
	s.setTurn(func(t *Turn) { t.Final = true })
	return Ending{
		Subtype: message.Success, Terminal: message.TerminalCompleted, Text: &text,
		Refusal: "the model declined to go on.",
	}
}

func (s *step) malformedEnding() Ending {
	return Ending{
		Subtype: message.ErrorDuringExecution, Terminal: message.TerminalMalformedToolUse,
		Errors: []string{fmt.Sprintf("The model made %d responses in a row in which no tool call could be run (unknown tool, input that is no JSON object, or cut off by the output limit)", maxMalformed)},
	}
}

func (s *step) pausesEnding() Ending {
	return Ending{
		Subtype: message.ErrorDuringExecution, Terminal: message.TerminalModelError,
		Errors: []string{fmt.Sprintf("The model paused its turn more than %d times (stop reason: pause_turn)", maxPauses)},
	}
}

// brokenEnding ends after a stream that broke once text was complete (L-95).
func (s *step) brokenEnding(e Response) Ending {
	s.notice(e.Broken.Notice, e.Model, e.Broken.Category)
	return Ending{
		Subtype: message.Success, IsError: true, Terminal: message.TerminalAPIError,
		Text: &e.Broken.Notice, Status: e.Broken.Status,
	}
}

// cutShort ends an answer that the output limit or the window cut for good
// (L-74, L-79).
func (s *step) cutShort(stop, model string) Ending {
	text := "The answer was cut off: the model's output limit was reached again after " + strconv.Itoa(maxContinuations) + " continuations. Split the task into smaller parts."
	if stop == stopWindow {
		text = "The answer was cut off: the model's context window is full. Continue in a new session, or compact this one."
	}
	s.notice(text, model, message.CategoryMaxOutputTokens)
	return Ending{Subtype: message.Success, IsError: true, Terminal: message.TerminalCompleted}
}

func (s *step) schemaEnding() Ending {
	return Ending{
		Subtype: message.ErrorMaxStructuredOutputRetries, Terminal: message.TerminalStructuredOutputRetries,
		Errors: []string{fmt.Sprintf("The model produced no output that fits the schema in %d attempts", s.cfg.schemaRetries()+1)},
	}
}
