package settings

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/permission"
)

// Settings are all sources merged, as they were at one moment. They do not
// change.
type Settings struct {
	// Layers are the sources that count, from the lowest precedence to the
	// highest: user, project, local, --settings, managed (C-4).
	Layers []*Layer
	// Notes are for the debug log: keys without an effect (C-18, C-21).
	Notes []string

	merged     *node
	rules      []permission.RuleSet
	dirs       []Directory
	env        map[string]string
	managedEnv map[string]string
}

// Directory is an entry of permissions.additionalDirectories, as written.
type Directory struct {
	Path  string
	Where Problem // its place; Text is empty
}

// Value is a key's value and where it comes from.
type Value struct {
	JSON   json.RawMessage
	Source permission.Source
	File   string // or the name of an option
}

// Text is the value of a string; "" for everything else.
func (v *Value) Text() string {
	if v == nil || !rawjson.IsString(v.JSON) {
		return ""
	}
	return rawjson.Unquote(v.JSON)
}

// Texts is the value of a list of strings; nil for everything else.
func (v *Value) Texts() (list []string) {
	if v == nil || json.Unmarshal(v.JSON, &list) != nil {
		return nil
	}
	return list
}

// newSettings merges layers.
func newSettings(layers []*Layer, t *trust, notes []string) (s *Settings, problems []Problem) {
	s = &Settings{Layers: layers, Notes: notes, merged: &node{kind: object}, env: map[string]string{}, managedEnv: map[string]string{}}
	trusted, asked := false, false
	ask := func(l *Layer) bool { // once, and only where it matters
		if !t.waits(l) {
			return true
		}
		if !asked {
			trusted, asked = t.given(), true
		}
		return trusted
	}
	for i, l := range layers {
		allow, dirs := l.root.get("permissions", "allow"), l.root.get("permissions", "additionalDirectories")
		if (some(allow) || some(dirs)) && !ask(l) {
			for _, key := range []struct {
				name string
				list *node
			}{{"allow", allow}, {"additionalDirectories", dirs}} {
				if some(key.list) {
					problems = append(problems, Problem{Text: fmt.Sprintf("Ignoring %d permissions.%s entries from %s: %s", len(key.list.elems), key.name, l.Name(), t.how())})
				}
			}
			l = l.without("allow", "additionalDirectories")
			layers[i], allow, dirs = l, nil, nil
		}
		s.merged = merge(s.merged, l.root, "", l.Source == permission.SourceManaged)
		s.addRules(l)
		s.addEnv(l)
		if dirs != nil {
			for _, e := range dirs.elems {
				s.dirs = append(s.dirs, Directory{Path: e.text(), Where: l.place(e, fmt.Sprintf("permissions.additionalDirectories[%d]", e.index))})
			}
		}
	}
	return s, problems
}

func some(n *node) bool { return n != nil && len(n.elems) > 0 }

// place is where a value stands.
func (l *Layer) place(n *node, key string) Problem {
	line, col := position(l.doc, n.at)
	return Problem{File: l.Name(), Line: line, Col: col, Key: key}
}

// without is the layer without some keys of permissions.
func (l *Layer) without(keys ...string) *Layer {
	kept, root := *l, *l.root
	root.members = slices.Clone(root.members)
	for i, m := range root.members {
		if m.key == "permissions" && m.value.kind == object {
			p := *m.value
			p.members = slices.DeleteFunc(slices.Clone(p.members), func(m member) bool { return slices.Contains(keys, m.key) })
			root.members[i].value = &p
		}
	}
	kept.root = &root
	return &kept
}

// addRules takes the layer's rules over.
func (s *Settings) addRules(l *Layer) {
	lists := map[string]*node{}
	texts := func(kind string) (all []string) {
		n := l.root.get("permissions", kind)
		if n == nil {
			return nil
		}
		lists[kind] = n
		for _, e := range n.elems {
			all = append(all, e.text())
		}
		return all
	}
	set := permission.RuleSet{Source: l.Source, Dir: l.Dir, Allow: texts("allow"), Ask: texts("ask"), Deny: texts("deny")}
	if len(lists) == 0 {
		return
	}
	set.Where = func(kind string, i int) string {
		e := lists[kind].elems[i]
		place := l.place(e, fmt.Sprintf("permissions.%s[%d]", kind, e.index)).String()
		return strings.TrimSuffix(place, ": ")
	}
	s.rules = append(s.rules, set)
}

// Rules are the permission rules of all layers. Where only managed ones count
// there are no others (P-139).
func (s *Settings) Rules() []permission.RuleSet {
	if !s.ManagedRulesOnly() {
		return s.rules
	}
	return slices.DeleteFunc(slices.Clone(s.rules), func(r permission.RuleSet) bool { return r.Source != permission.SourceManaged })
}

// ManagedRulesOnly reports whether rules that are not managed count for nothing,
// and none may be saved (P-139).
func (s *Settings) ManagedRulesOnly() bool {
	return s.merged.get("allowManagedPermissionRulesOnly").isTrue()
}

// Directories are the additional working directories of all layers (P-96).
func (s *Settings) Directories() []Directory { return s.dirs }

// Get returns the merged value at a path of keys, and the highest layer that
// has a part in it; nil: no layer has it.
func (s *Settings) Get(path ...string) *Value {
	n := s.merged.get(path...)
	if n == nil {
		return nil
	}
	v := &Value{JSON: n.append(nil)}
	for _, l := range s.Layers {
		if l.root.get(path...) != nil {
			v.Source, v.File = l.Source, l.Name()
		}
	}
	return v
}

// JSON is everything merged, with unknown keys, as one object.
func (s *Settings) JSON() json.RawMessage { return s.merged.append(nil) }

// Keys are the top-level keys and the highest source of each (C-25).
func (s *Settings) Keys() map[string]permission.Source {
	keys := map[string]permission.Source{}
	for _, l := range s.Layers {
		for _, m := range l.root.members {
			keys[m.key] = l.Source
		}
	}
	return keys
}

// DefaultMode is the mode to start in; nil: no layer names one. "auto" is not
// for a project to choose, and hides what lower layers say (P-3).
func (s *Settings) DefaultMode() *Value {
	v := s.Get("permissions", "defaultMode")
	if v.Text() == string(permission.ModeAuto) && (v.Source == permission.SourceProject || v.Source == permission.SourceLocal) {
		v.JSON = json.RawMessage(`"default"`)
	}
	return v
}

// NoBypass names the file that disables the mode bypassPermissions; "": none
// does. Any layer can (P-24).
func (s *Settings) NoBypass() (file string) {
	return s.said("permissions", "disableBypassPermissionsMode")
}

// NoAuto names the file that disables the mode auto; "": none does (P-26).
func (s *Settings) NoAuto() (file string) {
	if file := s.said("permissions", "disableAutoMode"); file != "" {
		return file
	}
	return s.said("disableAutoMode")
}

func (s *Settings) said(path ...string) string {
	if v := s.Get(path...); v != nil {
		return v.File
	}
	return ""
}

// addEnv takes the layer's variables over.
func (s *Settings) addEnv(l *Layer) {
	to := s.env
	if l.Source == permission.SourceManaged {
		to = s.managedEnv
	}
	if n := l.root.get("env"); n != nil {
		for _, m := range n.members {
			to[m.key] = m.value.text()
		}
	}
}

// Env are the variables of all layers below managed ones, and those of managed
// layers, which stand above the program's own options (O-4). An empty value
// takes the variable away (C-36). The maps are not to be changed.
func (s *Settings) Env() (env, managed map[string]string) { return s.env, s.managedEnv }

// Hooks is the key hooks of one layer.
type Hooks struct {
	Source permission.Source
	File   string          // or the name of an option
	JSON   json.RawMessage // the object: event to matchers, not checked
}

// Hooks are those that may run, from the lowest layer to the highest; they add
// up (C-7). Left out are those that disableAllHooks and allowManagedHooksOnly
// turn off (H-7, H-8), and in bare mode those that nobody passed (C-135).
func (s *Settings) Hooks(bare bool) (all []Hooks) {
	off := s.merged.get("disableAllHooks").isTrue()
	managedOnly, managedOff := s.merged.get("allowManagedHooksOnly").isTrue(), false
	for _, l := range s.Layers {
		if v := l.root.get("disableAllHooks"); v != nil && l.Source == permission.SourceManaged {
			managedOff = v.isTrue()
		}
	}
	for _, l := range s.Layers {
		n := l.root.get("hooks")
		managed := l.Source == permission.SourceManaged
		switch {
		case n == nil, managed && managedOff, !managed && (off || managedOnly), bare && !managed && l.Source != permission.SourceFlag:
			continue
		}
		all = append(all, Hooks{Source: l.Source, File: l.Name(), JSON: n.append(nil)})
	}
	return all
}

// Resolve returns the directory as an absolute path: "~/" is the home directory, and
// everything that is not absolute is relative to dir.
func (d Directory) Resolve(dir, home string) string {
	rest, ok := strings.CutPrefix(filepath.ToSlash(d.Path), "~")
	switch {
	case ok && home != "" && (rest == "" || rest[0] == '/'):
		return filepath.Join(home, filepath.FromSlash(rest))
	case filepath.IsAbs(d.Path):
		return filepath.Clean(d.Path)
	}
	return filepath.Join(dir, d.Path)
}
