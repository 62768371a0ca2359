//go:build !linux

package search

import "os"

// handle is a file open for reading.
type handle struct{ *os.File }

func openFile(path string) (handle, error) {
	f, err := os.Open(path)
	return handle{f}, err
}

func (h handle) close() { h.File.Close() }
