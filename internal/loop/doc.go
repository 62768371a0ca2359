// Package loop is the agent loop as a pure state machine: it decides, it never
// does. It has no I/O, no clock, no goroutine, no randomness and no JSON
// (docs/design.md, "The one idea").
//
// A driver feeds events into Step and gets back a Ready: entries to write,
// then messages to emit, then replies, then the set of all work that is owed
// (Want). Five rules carry everything:
//
//  1. State changes only in apply(Entry), so that the fold of the journal is
//     the state.
//  2. Want is a level, not an edge: a pure function of the state. The driver
//     starts what is missing and cancels what is no longer wanted.
//  3. Every effect has an id made from the state, is started at most once and
//     has exactly one outcome event with that id, also when it is cancelled.
//     Outcomes that the machine does not await change nothing.
//  4. Payloads are opaque: events carry the facts that the machine needs.
//  5. Time and ids come in with the Stamp. A replay gives the same bytes.
package loop
