// Package history keeps the conversation of one session as immutable items and
// assembles model requests from them (docs/design.md, decision 2).
//
// An [Item] is one line of the chain. [Assemble] groups items into messages of
// one role and makes the result valid whatever the chain looks like: each
// tool_use has exactly one tool_result right after it, nothing empty or
// unsigned is sent, and the first message is a user message. Block bytes are
// never edited in the chain; a request that grows keeps its earlier part byte
// for byte, so that the provider's prompt cache stays warm.
//
// The package is pure: no clock, no I/O, no randomness.
package history
