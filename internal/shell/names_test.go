package shell

import "testing"

// TestLongestName: lastName compares only the end of a word.
func TestLongestName(t *testing.T) {
	all := []names{runners, shells, evaluators, asShell, fileReaders, fileWriters, movers, lastWrites, namesOf("xargs parallel -exec -execdir -ok -okdir fd watch repeat")}
	for name := range movingOptions {
		all = append(all, namesOf(name))
	}
	for _, set := range all {
		for name := range set {
			if len(name) > longestName {
				t.Errorf("%q is longer than %d", name, longestName)
			}
			for _, path := range []string{name, "/" + name, "/usr/local/some/long/bin/" + name, "x/" + name} {
				if got := lastName(path); got != name {
					t.Errorf("%q: %q", path, got)
				}
			}
			if got := lastName("a-long-word-before-" + name); got == name {
				t.Errorf("%q is taken for a name", name)
			}
		}
	}
}
