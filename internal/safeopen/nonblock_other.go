//go:build !unix

package safeopen

const nonblock = 0
