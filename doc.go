// Package turnwright runs agents: a prompt goes in, a model is called, tools
// run, and a typed stream of messages comes out until the model is done or a
// limit is reached. It keeps the contract of docs/contract.
//
// Query runs one prompt. NewSession keeps a conversation that takes many.
// NewTool makes a tool of a Go function. Every run ends with exactly one
// ResultMessage for each user message, and its Subtype, StopReason and
// TerminalReason say why it ended.
package turnwright
