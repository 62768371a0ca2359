// Package replay feeds a recorded journal through the machine of internal/loop and
// reports the first difference: the first line that the machine would not have
// written.
//
// A journal holds what was decided, not what happened. So at each point the event
// that must have happened is inferred from the machine's state and the lines that
// follow: a prompt from its input line, a model's response from the message, its
// calls and the growth of the totals, a decision from its call line, and so on. The
// facts of an event are taken from the lines, as they came from outside; everything
// that the machine decides by itself (counters, caps, budget, order, pairing,
// texts, the ending, the result) is compared. What no event explains is a
// difference as well.
//
// It is a pure function of the lines.
package replay
