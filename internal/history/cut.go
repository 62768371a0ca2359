package history

import "github.com/turnwright/turnwright/message"

// SafeCuts returns, in ascending order, the indexes i at which the chain can
// be cut into items[:i] and items[i:] so that no call is parted from its
// result and no response from its own rest (B-136, B-138). len(items) is one
// of them when no call of the newest response is still open; 0 never is.
func SafeCuts(items []Item) []int {
	// bad[i] counts what a cut at i would part, as differences.
	bad := make([]int, len(items)+2)
	forbid := func(first, last int) { // cuts in first+1 … last
		if first < last {
			bad[first+1]++
			bad[last+1]--
		}
	}
	type call struct {
		at       int
		answered bool
	}
	calls := map[string]*call{}
	var order []*call
	begin := map[string]int{} // message id: its first item
	run := -1                 // first item of the assistant run that i is in
	newest := -1              // first item of the newest response

	for i, it := range items {
		ps := parts(it)
		if len(ps) == 0 {
			continue
		}
		if it.Role != message.RoleAssistant {
			run = -1
		} else {
			// Neighbours are one message of a request, also without an id.
			if run < 0 {
				run = i
			}
			first := run
			if f, known := begin[it.MsgID]; known {
				first = min(first, f)
			} else if it.MsgID != "" {
				begin[it.MsgID] = i
			}
			forbid(first, i)
			newest = max(newest, first)
		}
		for _, p := range ps {
			switch p.kind {
			case kindToolUse:
				if calls[p.id] == nil {
					calls[p.id] = &call{at: i}
					order = append(order, calls[p.id])
				}
			case kindToolResult:
				if c := calls[p.id]; c != nil && !c.answered {
					c.answered = true
					forbid(c.at, i)
				}
			}
		}
	}
	for _, c := range order {
		if !c.answered && c.at >= newest {
			forbid(c.at, len(items)) // its result is still to come
		}
	}
	var cuts []int
	for i, n := 1, bad[0]; i <= len(items); i++ {
		n += bad[i]
		if n == 0 {
			cuts = append(cuts, i)
		}
	}
	return cuts
}
