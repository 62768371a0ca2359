package history

import "github.com/turnwright/turnwright/message"

// What the estimate counts for a block whose size in bytes says little.
const (
	imageTokens       = 1600 // the most that an image costs after the API has scaled it
	documentTokens    = 3000 // a page or two
	bytesPerDocTokens = 32   // of a base64 document, above that minimum
)

// Estimate returns about how many input tokens the items cost: one for four
// bytes of JSON, 1,600 for an image, and for a base64 document one for 32
// bytes but at least 3,000. What is never sent counts nothing, elided outputs
// count as their notice. System prompt, tools and prelude are not in it. It is
// good to a factor of about two; decisions that cost money use the figures
// that responses report.
func Estimate(items []Item) int64 {
	var sum int64
	for _, it := range items {
		for _, p := range parts(it) {
			sum += p.tokens
		}
	}
	return sum
}

// parts returns it's prepared blocks, also of an item that no History has.
func parts(it Item) []part {
	if it.node != nil {
		return it.node.parts
	}
	return prepare(it)
}

func tokens(typ string, raw []byte) int64 {
	switch typ {
	case message.TypeImage:
		return imageTokens
	case message.TypeDocument:
		if s, _ := unquote(member(member(raw, "source"), "type")); s == "base64" {
			return max(documentTokens, int64(len(raw))/bytesPerDocTokens)
		}
	case message.TypeToolResult:
		content := member(raw, "content")
		if len(content) == 0 || content[0] != '[' {
			break
		}
		sum := int64(len(raw)-len(content)+3) / 4
		for e := range elements(content) {
			t, _ := unquote(member(e, "type"))
			sum += tokens(t, e)
		}
		return sum
	}
	return int64(len(raw)+3) / 4
}
