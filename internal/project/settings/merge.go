package settings

import "slices"

// whole are objects whose entries are replaced and not merged (C-8).
var whole = []string{"extraKnownMarketplaces"}

// replaced are lists that are taken whole from the highest source (C-6).
var replaced = []string{"fallbackModel"}

// fixed are lists that a managed value replaces (C-6).
var fixed = []string{"availableModels"}

// merge puts one value over another at a path: objects key by key, lists one
// after the other, and of all else the higher one (C-5 to C-8). Neither is
// changed.
func merge(low, high *node, path string, managed bool) *node {
	switch {
	case low == nil:
		return high
	case high == nil:
		return low
	case low.kind == list && high.kind == list && !slices.Contains(replaced, path) && !(managed && slices.Contains(fixed, path)):
		return &node{kind: list, at: high.at, elems: slices.Concat(low.elems, high.elems)}
	case low.kind != object || high.kind != object:
		return high
	}
	out := &node{kind: object, at: high.at, members: slices.Clone(low.members)}
	at := make(map[string]int, len(low.members))
	for i, m := range low.members {
		at[m.key] = i
	}
	for _, m := range high.members {
		i, both := at[m.key]
		switch {
		case !both:
			out.members = append(out.members, m)
		case slices.Contains(whole, path):
			out.members[i].value = m.value
		default:
			key := m.key
			if path != "" {
				key = path + "." + m.key
			}
			out.members[i].value = merge(out.members[i].value, m.value, key, managed)
		}
	}
	return out
}

// keep returns an object with nothing but the given paths of n.
func keep(n *node, paths [][]string) *node {
	out := &node{kind: object, at: n.at}
	for _, path := range paths {
		if v := n.get(path...); v != nil {
			out = merge(out, nest(v, path), "", false)
		}
	}
	return out
}

// nest puts a value at a path of keys.
func nest(v *node, path []string) *node {
	for _, key := range slices.Backward(path) {
		v = &node{kind: object, at: v.at, members: []member{{key: key, at: v.at, value: v}}}
	}
	return v
}
