// Package builtin holds the tools that come with the loop: Read, Edit and
// Bash. One file a tool, with what it stands on beside it: paths and opening
// (path.go), what was read (filestate.go), writing (replace.go), processes
// (proc_*.go) and their output (output.go).
package builtin
