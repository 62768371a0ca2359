// Package engine is the local driver of the loop: it does what internal/loop
// decides. One goroutine owns the machine of a running session and takes
// events from a mailbox; model requests, permission checks and tool calls are
// goroutines that post exactly one outcome each. An idle session has no
// goroutine, timer, open file or lock (docs/design.md, decision 17).
package engine
