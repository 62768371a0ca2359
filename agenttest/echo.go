package agenttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// broken reports whether the client may not have received the whole answer.
func (s Step) broken() bool {
	return s.fault != nil || s.cutByte != nil || s.cutEvent != nil || s.endless != "" || s.hold != nil
}

// pausedTexts remembers the answers that ended with pause_turn. A continuation
// sends such an answer back as the last message, which is no prefill.
type pausedTexts struct {
	mu   sync.Mutex
	last map[string]bool
}

func (p *pausedTexts) add(a answer) {
	if len(a.blocks) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]bool{}
	}
	p.last[canonical(a.blocks[len(a.blocks)-1].whole())] = true
}

// allow reports whether err only says that a paused answer came back.
func (p *pausedTexts) allow(err error, r *Request) bool {
	var invalid *InvalidError
	if !errors.As(err, &invalid) || !invalid.prefill {
		return false
	}
	msgs := r.Messages()
	blocks := msgs[len(msgs)-1].Content
	if len(blocks) == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[canonical(blocks[len(blocks)-1].Raw)]
}

// canonical is the meaning of a block: keys sorted, no cache mark, no null.
func canonical(block []byte) string {
	var m map[string]any
	if json.Unmarshal(block, &m) != nil {
		return string(block)
	}
	delete(m, "cache_control")
	for k, v := range m {
		if v == nil {
			delete(m, k)
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		return string(block)
	}
	return string(out)
}

// echo is the memory of StrictEcho: the answers that were sent whole, found
// again by what is unique in them.
type echo struct {
	mu   sync.Mutex
	byID map[string]*sent // tool_use ids, signatures, redacted data
}

// sent is one remembered answer. Empty text, which no request may carry, is
// left out.
type sent struct {
	model  string
	blocks []sentBlock
}

type sentBlock struct {
	key, meaning string
	thinking     bool
	anyInput     bool // a call cut by the output limit: its input may be replaced
}

func newEcho() *echo { return &echo{byID: map[string]*sent{}} }

func (e *echo) add(a answer) *sent {
	s := &sent{model: a.model}
	for i, b := range a.blocks {
		var decoded Block
		if json.Unmarshal(b.whole(), &decoded) != nil || decoded.Type == "text" && strings.TrimSpace(decoded.Text) == "" {
			continue
		}
		cut := a.stopReason == "max_tokens" && i == len(a.blocks)-1 && decoded.Type == "tool_use"
		s.blocks = append(s.blocks, sentBlock{
			key: echoKey(decoded), meaning: meaning(decoded, cut), thinking: isThinking(decoded), anyInput: cut,
		})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range s.blocks {
		if b.key != "" {
			e.byID[b.key] = s
		}
	}
	return s
}

// forget drops an answer that did not reach the client whole.
func (e *echo) forget(s *sent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range s.blocks {
		if e.byID[b.key] == s {
			delete(e.byID, b.key)
		}
	}
}

// echoKey is what tells a block from those of other answers, "" when nothing does.
func echoKey(b Block) string {
	switch b.Type {
	case "tool_use", "server_tool_use":
		return "id " + b.ID
	case "thinking":
		return "signature " + b.Signature
	case "redacted_thinking":
		return "data " + b.Data
	}
	return ""
}

func isThinking(b Block) bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

func meaning(b Block, anyInput bool) string {
	if anyInput {
		return "call " + b.Name + " " + b.ID
	}
	return canonical(b.Raw)
}

// placed is a block of a request with its place.
type placed struct {
	Block
	path string
}

// check compares each assistant turn of the request with the answers that its
// blocks come from.
func (e *echo) check(r *Request) error {
	turns, loop := assistantTurns(r)
	thinkingOn := false
	if kind, _ := asString(member(r.Field("thinking"), "type")); kind == "enabled" || kind == "adaptive" {
		thinkingOn = true
	}
	for i, t := range turns {
		seen := map[*sent]bool{}
		for at, b := range t {
			e.mu.Lock()
			s := e.byID[echoKey(b.Block)]
			e.mu.Unlock()
			if s == nil || seen[s] {
				continue
			}
			seen[s] = true
			mayDrop := i < loop || !thinkingOn || s.model != r.Model()
			if err := s.compare(t, at, mayDrop); err != nil {
				return err
			}
		}
	}
	return nil
}

// assistantTurns returns the assistant turns of a request, and the index of the
// first one of the tool loop that is still going on.
func assistantTurns(r *Request) (turns [][]placed, loop int) {
	role := ""
	for i, m := range r.Messages() {
		switch {
		case m.Role == "assistant":
			if role != "assistant" {
				turns = append(turns, nil)
			}
			for j, b := range m.Content {
				turns[len(turns)-1] = append(turns[len(turns)-1], placed{b, fmt.Sprintf("messages.%d.content.%d", i, j)})
			}
		case m.Role == "user" && role != "user" && !slices.ContainsFunc(m.Content, func(b Block) bool { return b.Type == "tool_result" }):
			loop = len(turns)
		}
		if m.Role != "system" {
			role = m.Role
		}
	}
	return turns, loop
}

// compare looks for the blocks of s in the turn, around the block at, which is
// one of them.
func (s *sent) compare(t []placed, at int, mayDrop bool) error {
	want := s.blocks
	key := echoKey(t[at].Block)
	if mayDrop && !slices.ContainsFunc(want, func(b sentBlock) bool {
		return b.thinking && slices.ContainsFunc(t, func(p placed) bool { return echoKey(p.Block) == b.key })
	}) {
		want = slices.DeleteFunc(slices.Clone(want), func(b sentBlock) bool { return b.thinking })
	}
	start := at - slices.IndexFunc(want, func(b sentBlock) bool { return b.key == key })
	for j, w := range want {
		k := start + j
		if k < 0 || k >= len(t) {
			return changed(t[at].path, w, "is missing")
		}
		if meaning(t[k].Block, w.anyInput) == w.meaning {
			continue
		}
		if slices.ContainsFunc(t, func(p placed) bool { return meaning(p.Block, w.anyInput) == w.meaning }) {
			return changed(t[k].path, w, "is not in its place")
		}
		return changed(t[k].path, w, "was changed or left out")
	}
	return nil
}

func changed(path string, w sentBlock, how string) *InvalidError {
	if w.thinking {
		return invalid(path, "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response. (agenttest: %s %s)", w.meaning, how)
	}
	return invalid(path, "agenttest: a block of the response %s: %s", how, w.meaning)
}
