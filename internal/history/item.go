package history

import (
	"slices"

	"github.com/turnwright/turnwright/internal/apiblock"
	"github.com/turnwright/turnwright/message"
)

// Flags say how an item is treated. The zero value is a plain item.
type Flags uint8

// The flags of an item.
const (
	Meta     Flags = 1 << iota // no person and no model wrote it
	Notice                     // an error notice of ours: shown, never sent (README decision 56)
	Aborted                    // an interrupted partial response (L-194)
	Summary                    // the summary that a compaction left
	Elided                     // its tool outputs are replaced when a request is assembled
	Refused                    // so is what it brought along: the API refused the request with it
	Oversize                   // so are its long texts: the request did not fit the window
)

// Item is one line of the chain. It must not change once it was appended.
type Item struct {
	Role   message.Role
	Blocks []message.Block
	Text   *string // a prompt kept as a string; sent as one text block before Blocks
	UUID   string
	Model  string // assistant items: the model that answered, "" when unknown
	MsgID  string // assistant items: the API message id, shared by the parts of one response
	Flags  Flags

	node *node // what assembling needs to know of the blocks, set by Append
}

// node is an item's prepared form. A node belongs to one place of one chain:
// two chains that have the same node at an index are equal up to there.
type node struct {
	prev  *node
	parts []part
}

// History is the chain of one session. The zero value is empty and ready. One
// goroutine owns it; what Items returned may be read by others at any time. A
// History must not be copied; Clone does that.
type History struct {
	items []Item
}

// Append adds it to the end of the chain.
func (h *History) Append(it Item) {
	var prev *node
	if n := len(h.items); n > 0 {
		prev = h.items[n-1].node
	}
	it.node = &node{prev: prev, parts: prepare(it)}
	h.items = append(h.items, it)
}

// Len returns the number of items.
func (h *History) Len() int { return len(h.items) }

// Items returns the chain as it is now. Later changes of h do not show in it;
// the caller must not change it.
func (h *History) Items() []Item { return h.items[:len(h.items):len(h.items)] }

// Clone returns a History that starts with h's items and grows on its own.
func (h *History) Clone() *History { return &History{items: h.Items()} }

// Reset starts a new chain of the items in keep, as a compaction or a /clear
// does. The old snapshots stay as they are.
func (h *History) Reset(keep ...Item) {
	h.items = make([]Item, 0, len(keep)+8)
	for _, it := range keep {
		h.Append(it)
	}
}

// Elide marks the items with these uuids: from now on their tool outputs are
// assembled as a short notice. It returns how many items it newly marked;
// uuids that are not in the chain are passed over.
func (h *History) Elide(uuids ...string) int {
	return h.mark(Elided, func(_ int, it *Item) bool { return it.UUID != "" && slices.Contains(uuids, it.UUID) })
}

// RefusedFor hears the API error that answered the end of the chain. Where it
// blames what the user items there brought along, they are marked: from now on a
// text stands for that (L-200).
func (h *History) RefusedFor(text string) {
	flag := Refused
	blame := apiblock.Blamed(text)
	switch blame {
	case apiblock.Nothing:
		return
	case apiblock.Window:
		flag = Oversize
	}
	from := len(h.items)
	for from > 0 && (h.items[from-1].Role == message.RoleUser || h.items[from-1].Flags&Notice != 0) {
		from--
	}
	h.mark(flag, func(i int, it *Item) bool {
		// What a file or a URL names may be gone since: then no item that names one
		// can be sent again.
		return it.Role == message.RoleUser && (i >= from || blame == apiblock.Address && slices.ContainsFunc(it.Blocks, apiblock.Named))
	})
}

// mark gives the flag to the items that want it and lack it.
func (h *History) mark(flag Flags, want func(i int, it *Item) bool) int {
	marked, first := 0, len(h.items)
	for i := range h.items {
		if it := &h.items[i]; it.Flags&flag == 0 && want(i, it) {
			marked++
			first = min(first, i)
		}
	}
	if marked == 0 {
		return 0
	}
	old := h.items
	h.items = append(make([]Item, 0, len(old)+8), old[:first]...)
	for i, it := range old[first:] {
		if want(first+i, &it) {
			it.Flags |= flag
		}
		h.Append(it)
	}
	return marked
}
