package envvar

import "testing"

func TestOn(t *testing.T) {
	for v, want := range map[string]bool{"1": true, "TRUE": true, "yes": true, "On": true, "": false, "0": false, "2": false, "no": false, " 1": false} {
		if On(v) != want {
			t.Errorf("%q", v)
		}
	}
}
