// Package permission decides whether a tool call may run: allowed, denied, or
// to be asked about.
//
// A [Policy] holds rules, mode and working directories; [Policy.Decide] is a
// pure function of them and of a [Request]. It touches no file and asks nobody.
// Paths come in twice, as written and as resolved through links, made with
// [NewPathAccess]; resolving ([Resolve]) is the only work on disk in here.
//
// The order is that of docs/contract/permissions.md, P-27: deny rules, ask
// rules, mode, allow rules, prompt.
package permission
