// Package permission decides whether a tool call may run: allowed, denied, or
// to be asked about.
//
// A [Policy] holds rules, mode and working directories; [Policy.Decide] is a
// function of them, of a [Request] and, for the paths in a command, of the links on
// disk. It changes nothing and asks nobody. Paths come in twice, as written and
// as resolved through links, made with [NewPathAccess]; resolving ([Resolve]) is
// the only work on disk in here.
//
// Commands of the shell are taken apart by internal/shell: a rule for one part
// never approves another, and what cannot be read is asked about.
//
// The order is that of docs/contract/permissions.md, P-27: deny rules, ask
// rules, mode, allow rules, prompt.
package permission
