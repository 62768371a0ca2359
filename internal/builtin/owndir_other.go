//go:build !unix

package builtin

import "io/fs"

// ownDir reports whether it is a directory: temporary directories are a user's
// own here.
func ownDir(info fs.FileInfo) bool { return info.IsDir() }

// processGone cannot be told cheaply here.
func processGone(string) bool { return false }
