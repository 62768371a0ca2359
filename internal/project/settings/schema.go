package settings

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/permission"
)

// rule is what the schema says of a key.
type rule struct {
	kinds []kind
	items kind                    // of a list, or of the entries of an object; null: anything
	check func(n *node) string    // a value of the right type that cannot be used: why
	entry func(key string) string // the same for a key of an object
	from  scope
}

// scope says in which sources a key counts (C-21).
type scope int

const (
	everywhere  scope = iota
	notProject        // not in the files of a project: user, --settings, managed
	managedOnly       // managed settings alone
)

func (s scope) counts(in permission.Source) bool {
	switch s {
	case notProject:
		return in != permission.SourceProject && in != permission.SourceLocal
	case managedOnly:
		return in == permission.SourceManaged
	}
	return true
}

func of(k kind) rule       { return rule{kinds: []kind{k}} }
func listOf(k kind) rule   { return rule{kinds: []kind{list}, items: k} }
func objectOf(k kind) rule { return rule{kinds: []kind{object}, items: k} }

func (r rule) only(s scope) rule { r.from = s; return r }

func (r rule) that(check func(*node) string) rule { r.check = check; return r }

// schema are the keys that are known (C-26 to C-35), by path. All others are
// kept and mentioned in the debug log (C-18).
var schema = map[string]rule{
	"$schema": of(text),

	"permissions":                              of(object),
	"permissions.allow":                        listOf(text),
	"permissions.ask":                          listOf(text),
	"permissions.deny":                         listOf(text),
	"permissions.additionalDirectories":        listOf(text),
	"permissions.defaultMode":                  of(text).that(isMode),
	"permissions.disableBypassPermissionsMode": of(text).that(is("disable")),
	"permissions.disableAutoMode":              of(text).that(is("disable")),
	"disableAutoMode":                          of(text).that(is("disable")),
	"allowManagedPermissionRulesOnly":          of(boolean).only(managedOnly),
	"parentSettingsBehavior":                   of(text).only(managedOnly),

	"hooks":                  of(object),
	"disableAllHooks":        of(boolean),
	"allowManagedHooksOnly":  of(boolean).only(managedOnly),
	"allowedHttpHookUrls":    listOf(text),
	"httpHookAllowedEnvVars": listOf(text),

	"env": {kinds: []kind{object}, items: text, entry: isVariable},

	"model":                  of(text),
	"fallbackModel":          {kinds: []kind{text, list}, items: text},
	"availableModels":        listOf(text),
	"effortLevel":            of(text),
	"agent":                  of(text),
	"outputStyle":            of(text),
	"includeGitInstructions": of(boolean),

	"enabledMcpjsonServers":      listOf(text),
	"disabledMcpjsonServers":     listOf(text),
	"enableAllProjectMcpServers": of(boolean),
	"allowedMcpServers":          listOf(object),
	"deniedMcpServers":           listOf(object),

	"autoCompactEnabled":  of(boolean),
	"autoCompactWindow":   of(number).that(between(100_000, 1_000_000)),
	"autoMemoryEnabled":   of(boolean),
	"autoMemoryDirectory": of(text),
	"claudeMdExcludes":    listOf(text),
	"claudeMd":            of(text).only(managedOnly),
	"memoryFiles":         listOf(text),
	"cleanupPeriodDays":   of(number).that(between(1, math.MaxInt32)),

	"fileCheckpointingEnabled": of(boolean),

	"skillOverrides":             objectOf(text),
	"disableBundledSkills":       of(boolean),
	"disableSkillShellExecution": of(boolean),
	"skillListingBudgetFraction": of(number),
	"skillListingMaxDescChars":   of(number).that(between(0, math.MaxInt32)),

	"enabledPlugins":         of(object),
	"extraKnownMarketplaces": objectOf(object),
	"pluginConfigs":          objectOf(object).only(notProject),

	"sandbox":                         of(object),
	"sandbox.filesystem":              of(object),
	"sandbox.filesystem.disabled":     of(boolean).only(notProject),
	"sandbox.network":                 of(object),
	"sandbox.network.strictAllowlist": of(boolean).only(notProject),
	"sandbox.network.tlsTerminate":    {kinds: []kind{boolean, object}, from: notProject},

	"autoMode":               of(object).only(notProject),
	"askUserQuestionTimeout": of(text).only(notProject),
	"plansDirectory":         of(text),
	"worktree":               of(object),
	"apiKeyHelper":           of(text),
}

// restricts are the keys that can only forbid.
var restricts = [][]string{
	{"permissions", "deny"},
	{"permissions", "ask"},
	{"permissions", "disableBypassPermissionsMode"},
	{"permissions", "disableAutoMode"},
	{"disableAutoMode"},
	{"allowManagedPermissionRulesOnly"},
	{"allowManagedHooksOnly"},
}

// protects are the keys that hold also where the rest of their file is skipped.
// Hooks are among them, since one may deny a call, and so is what hooks may send.
var protects = append(slices.Clone(restricts), []string{"hooks"}, []string{"disableAllHooks"}, []string{"allowedHttpHookUrls"}, []string{"httpHookAllowedEnvVars"})

func isMode(n *node) string {
	if m := n.text(); m != "" {
		if _, err := permission.ParseMode(m); err == nil {
			return ""
		}
	}
	return "must be one of default, acceptEdits, plan, dontAsk, bypassPermissions, auto, manual, not " + string(n.raw)
}

func is(want string) func(*node) string {
	return func(n *node) string {
		if n.text() == want {
			return ""
		}
		return fmt.Sprintf("must be %q, not %s", want, n.raw)
	}
}

// between allows whole numbers in a range.
func between(from, to int) func(*node) string {
	return func(n *node) string {
		x, err := strconv.ParseFloat(string(n.raw), 64)
		if err == nil && x == math.Trunc(x) && x >= float64(from) && x <= float64(to) {
			return ""
		}
		if to == math.MaxInt32 {
			return fmt.Sprintf("must be a whole number of at least %d, not %s", from, n.raw)
		}
		return fmt.Sprintf("must be a whole number from %d to %d, not %s", from, to, n.raw)
	}
}

// fixedVars are variables that say where rules and settings are found. A file
// that moved them would make rules with "~" mean other files than they say.
var fixedVars = []string{"HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR"}

func isVariable(key string) string {
	switch {
	case key == "" || strings.ContainsAny(key, "=\x00"):
		return "is not the name of a variable"
	case slices.ContainsFunc(fixedVars, func(v string) bool { return strings.EqualFold(v, key) }):
		return "cannot be set by a settings file, because rules and settings are found with it"
	}
	return ""
}

// checker goes through one file. It takes out of the tree what cannot be used.
type checker struct {
	layer    *Layer
	problems []Problem
	notes    []string // for the debug log
	broken   bool     // a value of the wrong type: the schema is broken (C-16)
}

func (c *checker) problem(at int, key, format string, args ...any) {
	line, col := position(c.layer.doc, at)
	c.problems = append(c.problems, Problem{File: c.layer.Name(), Line: line, Col: col, Key: key, Text: fmt.Sprintf(format, args...)})
}

// object checks the members of an object at a path.
func (c *checker) object(n *node, path string) {
	n.members = c.unique(n.members, path)
	n.members = slices.DeleteFunc(n.members, func(m member) bool {
		key := m.key
		if path != "" {
			key = path + "." + m.key
		}
		r, known := schema[key]
		switch {
		case strings.ContainsRune(m.key, '.'), !known: // a key with a dot is no path
			switch path {
			case "":
				c.notes = append(c.notes, fmt.Sprintf("%s: the key %q is not known and has no effect", c.layer.Name(), key))
			case "permissions": // a slip of the pen here takes protection away
				c.problem(m.at, key, "is not known and has no effect")
			}
			return false
		case m.value.kind == null:
			return true // as if it were not there
		case !r.from.counts(c.layer.Source):
			c.notes = append(c.notes, fmt.Sprintf("%s: the key %q does not count in this file", c.layer.Name(), key))
			return true
		}
		return !c.value(m.value, key, r)
	})
}

// value checks a value; ok is false when it cannot be used at all.
func (c *checker) value(n *node, key string, r rule) (ok bool) {
	if !slices.Contains(r.kinds, n.kind) {
		c.broken = true
		c.problem(n.at, key, "must be %s, not %s", orList(r.kinds), n.kind)
		return false
	}
	switch n.kind {
	case list:
		n.elems = slices.DeleteFunc(n.elems, func(e *node) bool {
			if r.items == null || e.kind == r.items {
				return false
			}
			c.problem(e.at, fmt.Sprintf("%s[%d]", key, e.index), "must be %s, not %s; the entry is skipped", r.items, e.kind)
			return true
		})
	case object:
		c.object(n, key)
		n.members = slices.DeleteFunc(n.members, func(m member) bool { return !c.entry(m, key, r) })
	}
	if r.check != nil {
		if why := r.check(n); why != "" {
			c.problem(n.at, key, "%s; the key is skipped", why)
			return false
		}
	}
	return true
}

// entry checks an entry of an object whose keys are the user's.
func (c *checker) entry(m member, key string, r rule) (ok bool) {
	if r.items != null && m.value.kind != r.items {
		c.problem(m.value.at, key+"."+m.key, "must be %s, not %s; the entry is skipped", r.items, m.value.kind)
		return false
	}
	if r.entry != nil {
		if why := r.entry(m.key); why != "" {
			c.problem(m.at, key+"."+m.key, "%s; the entry is skipped", why)
			return false
		}
		if strings.ContainsRune(m.value.text(), 0) {
			c.problem(m.value.at, key+"."+m.key, "has a NUL character; the entry is skipped")
			return false
		}
	}
	return true
}

// unique joins the values of a key that stands twice as if they stood in two
// files, so that a second list of rules does not silence the first.
func (c *checker) unique(members []member, path string) []member {
	seen := map[string]int{}
	out := members[:0:0]
	for _, m := range members {
		i, twice := seen[m.key]
		if !twice {
			seen[m.key] = len(out)
			out = append(out, m)
			continue
		}
		key := m.key
		if path != "" {
			key = path + "." + m.key
		}
		c.problem(m.at, key, "stands twice; lists and objects are joined, of other values the later one counts")
		switch had := out[i].value; {
		case had.kind == m.value.kind, had.kind != list && had.kind != object && m.value.kind != null:
			out[i].value = merge(had, m.value, key, false)
		default: // what can hold rules stays
		}
	}
	return out
}

func orList(kinds []kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
	}
	return strings.Join(names, " or ")
}
