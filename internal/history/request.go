package history

import (
	"slices"
	"strings"

	"github.com/turnwright/turnwright/message"
)

// Message is one message of an assembled request.
type Message struct {
	Role   message.Role
	Blocks []message.Block
}

// Where says which list of a request a Mark is in.
type Where int

// The three lists, in the order in which the API caches them.
const (
	InTools Where = iota
	InSystem
	InMessages
)

// Mark places a cache mark on one block.
type Mark struct {
	Where Where
	Index int    // message index; tool index for tools; unused for system
	Block int    // block index within the message or the system prompt
	TTL   string // "5m" or "1h"
}

// CacheMode says which cache marks a request gets (L-184).
type CacheMode uint8

// The cache modes.
const (
	Cache5m      CacheMode = iota // ours live 5 minutes, the caller's as they ask
	Cache1h                       // ours live one hour, the caller's as they ask
	CacheForce5m                  // all live 5 minutes, the caller's too
	CacheOff                      // no marks at all, the caller's are removed
)

// Options is what a request holds besides the chain. Slices must not be
// changed after they were handed over.
type Options struct {
	// Model is the model that is asked. Thinking of another model is left out;
	// names that differ in a date at their end ("-20250929", "@20250929",
	// "-latest") are the same model. Empty: all signed thinking is sent.
	Model string
	// Aliases are further names of Model, as items may have them.
	Aliases []string
	// System is the system prompt. Its caller's cache marks are counted.
	System []message.Block
	// Tools is how many tool definitions the request has.
	Tools int
	// Prelude is project context. It stands before the first user message's
	// own blocks in every request and is no part of the chain (L-164).
	Prelude []message.Block
	// Cache says which cache marks to set.
	Cache CacheMode
}

// Request is the assembled part of a model request. It shares memory with
// other requests of the same chain: nothing in it may be changed.
type Request struct {
	System   []message.Block // Options.System without empty blocks and marks
	Messages []Message
	Marks    []Mark // in request order, at most four

	// ThinkingCut reports that the last assistant message holds tool calls and
	// lost thinking of another model. The API refuses it while thinking of the
	// type "enabled" is asked for.
	ThinkingCut bool
}

// Assemble returns the messages and cache marks of a request for the chain
// items. A session that asks again and again uses an Assembler.
func Assemble(items []Item, o Options) ([]Message, []Mark) {
	r := new(Assembler).Assemble(items, o)
	return r.Messages, r.Marks
}

// sameModel reports whether thinking of the model named have may be sent to o.Model.
func (o *Options) sameModel(have string) bool {
	if o.Model == "" || have == "" || have == o.Model || slices.Contains(o.Aliases, have) {
		return true
	}
	return undated(have) == undated(o.Model)
}

// undated returns the model name without the date of its snapshot.
func undated(name string) string {
	if s, ok := strings.CutSuffix(name, "-latest"); ok {
		return s
	}
	i := len(name) - 9
	if i <= 0 || (name[i] != '-' && name[i] != '@') {
		return name
	}
	for _, c := range name[i+1:] {
		if c < '0' || c > '9' {
			return name
		}
	}
	return name[:i]
}
