//go:build !linux

package search

import "os"

// readDir lists a directory.
func readDir(path string, _ []byte, list []entry) ([]entry, error) {
	d, err := os.Open(path)
	if err != nil {
		return list, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	for _, e := range entries {
		list = append(list, entry{e.Name(), kindOf(e.Type())})
	}
	return list, err
}
