//go:build !unix

package instructions

const openNonblock = 0
