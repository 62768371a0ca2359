package permission

import (
	"path/filepath"
	"slices"
)

// ReadDenied reports whether a deny rule of Read covers a file, by the name
// given or by the one that links lead to (T-65, T-71, T-95). A rule without a
// specifier covers every file. The path is absolute; one that is not, or whose
// links cannot be followed, counts as covered where there is any such rule.
func (p *Policy) ReadDenied(path string) bool {
	any := false
	for _, r := range p.Deny {
		switch {
		case r.Bare():
			if matchName(r.Tool, "Read") {
				return true
			}
		case r.Tool == "Read" && r.param == nil:
			if r.path == nil || !filepath.IsAbs(path) || r.path.match(filepath.Clean(path)) {
				return true
			}
			any = true
		}
	}
	if !any {
		return false
	}
	target, err := Resolve(path)
	return err != nil || slices.ContainsFunc(p.Deny, func(r Rule) bool {
		return r.Tool == "Read" && r.path != nil && r.path.match(target)
	})
}

// NeedsApprovalToRead reports whether a Read of the file would not be allowed
// without asking, or not at all (T-64). The path is absolute.
func (p *Policy) NeedsApprovalToRead(path string) bool {
	a, err := NewPathAccess(Read, path)
	if err != nil {
		return true
	}
	return p.Decide(Request{Tool: "Read", Accesses: []Access{a}}).Behavior != Allow
}
