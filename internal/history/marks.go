package history

import "slices"

// The two life times of a cache mark.
const (
	ttl5m = "5m"
	ttl1h = "1h"
)

// maxMarks is the API's limit for one request.
const maxMarks = 4

// placeMarks returns the marks of a request (L-182, B-176, B-188).
//
// The caller's own marks come first. Of more than four the last four stay: a
// mark covers all that stands before it, so the late ones are worth the most.
// Places that are left go, in this order, to the last user message, the one
// before it (where the last request ended), the system prompt with the tools,
// and the prelude. The API wants one-hour marks before five-minute ones: a mark
// before a caller's one-hour mark becomes one too, which costs nothing (what
// stands before a one-hour mark is written for one hour anyway), and ours
// behind a five-minute mark takes five minutes.
func (a *Assembler) placeMarks(msgs []Message, open []Mark) []Mark {
	if a.opts.Cache == CacheOff {
		return nil
	}
	marks := make([]Mark, 0, maxMarks)
	for i, p := range a.system.parts {
		if p.ttl != "" {
			marks = append(marks, Mark{InSystem, 0, i, p.ttl})
		}
	}
	marks = append(append(marks, a.marks...), open...)
	marks = marks[max(0, len(marks)-maxMarks):]
	for i := len(marks) - 2; i >= 0; i-- {
		if marks[i+1].TTL == ttl1h {
			marks[i].TTL = ttl1h
		}
	}
	for _, m := range a.ours(msgs) {
		if len(marks) == maxMarks {
			break
		}
		at, found := slices.BinarySearchFunc(marks, m, comparePlace)
		if !found {
			marks = slices.Insert(marks, at, m)
		}
	}
	a.setTTL(marks)
	return marks
}

// ours returns our marks, the most useful first, without life time.
func (a *Assembler) ours(msgs []Message) []Mark {
	var out []Mark
	for i := len(msgs) - 1; i >= 0 && len(out) < 2; i-- {
		if msgs[i].Role == "user" {
			out = append(out, Mark{Where: InMessages, Index: i, Block: len(msgs[i].Blocks) - 1})
		}
	}
	switch {
	case len(a.system.blocks) > 0:
		out = append(out, Mark{Where: InSystem, Block: len(a.system.blocks) - 1})
	case a.opts.Tools > 0:
		out = append(out, Mark{Where: InTools, Index: a.opts.Tools - 1})
	}
	if n := len(a.prelude.blocks); n > 0 && len(msgs) > 0 {
		out = append(out, Mark{Where: InMessages, Block: n - 1})
	}
	return out
}

// setTTL gives ours, which have none yet, a life time that keeps the order valid.
func (a *Assembler) setTTL(marks []Mark) {
	lastHour := -1
	for i, m := range marks {
		if m.TTL == ttl1h {
			lastHour = i
		}
	}
	ttl := ttl5m
	if a.opts.Cache == Cache1h {
		ttl = ttl1h
	}
	for i := range marks {
		m := &marks[i]
		switch {
		case a.opts.Cache == CacheForce5m:
			m.TTL = ttl5m
		case m.TTL == ttl5m:
			ttl = ttl5m
		case i < lastHour:
			m.TTL = ttl1h
		case m.TTL == "":
			m.TTL = ttl
		}
	}
}

// comparePlace orders marks as the API reads a request.
func comparePlace(a, b Mark) int {
	for _, d := range [...]int{int(a.Where - b.Where), a.Index - b.Index, a.Block - b.Block} {
		if d != 0 {
			return d
		}
	}
	return 0
}
