package message

import (
	"encoding/json"
	"strings"
	"testing"
)

// benchMessages are those of the hot path: 20 kB of blocks encoded before.
func benchMessages() map[string]Message {
	text := strings.Repeat("All tests pass now. \"Quoted\" and so on.\n", 500)
	usage := &Usage{InputTokens: 12345, OutputTokens: 678, CacheReadInputTokens: 90123, ServiceTier: "standard"}
	head := Header{UUID: "0e1a6f0c-0d6b-4c39-9a43-1f0c2b7d8a11", SessionID: "5b2f8a0e-6c1d-4f7e-8b3a-9d0c1e2f3a4b"}
	return map[string]Message{
		"Assistant": &Assistant{Message: APIMessage{
			ID: "msg_1", Model: "model-a", Content: []Block{NewText(text), NewToolUse("toolu_1", "Bash", json.RawMessage(`{"command":"ls"}`))},
			StopReason: new("tool_use"), Usage: *usage,
		}, Header: head},
		"User": &User{Message: UserBody{Content: BlockContent(NewToolResult("toolu_1", TextContent(text), false))}, Header: head},
		"StreamEvent": &StreamEvent{
			Event: json.RawMessage(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi there"}}`), Header: head,
		},
		"Result": &Result{
			Subtype: Success, Result: new("Fixed."), TotalCostUSD: new(0.0123), Usage: usage,
			ModelUsage: map[string]ModelUsage{"model-a": {InputTokens: 1, CostUSD: 0.0123}}, Header: head,
		},
	}
}

func BenchmarkMarshal(b *testing.B) {
	for name, m := range benchMessages() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Marshal(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for name, m := range benchMessages() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				var err error
				if buf, err = Append(buf[:0], m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, m := range benchMessages() {
		line, err := Marshal(m)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	text := strings.Repeat("All tests pass now. \"Quoted\" and so on.\n", 50)
	b.Run("NewText", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			NewText(text)
		}
	})
	b.Run("Encode", func(b *testing.B) { // what NewText saves
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Encode(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Block.Text", func(b *testing.B) {
		block := NewText(text)
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			_ = block.Text()
		}
	})
}

// TestMarshalCopiesBlocks holds the hot path's cost: one allocation, however
// many blocks.
func TestMarshalCopiesBlocks(t *testing.T) {
	for _, name := range []string{"Assistant", "User"} {
		m := benchMessages()[name]
		var buf []byte
		n := testing.AllocsPerRun(50, func() {
			var err error
			if buf, err = Append(buf[:0], m); err != nil {
				t.Fatal(err)
			}
		})
		if n > 1 { // the error path's bookkeeping may cost one
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
