package builtin

import (
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

// TestReadBack: how much output is read back has a ceiling, and a setting that
// makes no sense is as none.
func TestReadBack(t *testing.T) {
	conform.Covers(t, "T-119")
	s := newSession(t)
	for value, want := range map[string]int{
		"": 30_000, "0": 30_000, "-1": 30_000, "many": 30_000, "1": 1, "31000": 31_000,
		"149999": 149_999, "150000": 150_000, "150001": 150_000, "99999999": 150_000,
	} {
		s.vars["BASH_MAX_OUTPUT_LENGTH"] = value
		if got := readBack(s.env); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
}

// TestKillSize: what users get, where TestTooMuch sets a smaller limit.
func TestKillSize(t *testing.T) {
	conform.Covers(t, "T-120")
	if got := (&output{}).max(); got != 5<<30 {
		t.Errorf("a command may write %d bytes", got)
	}
	if opts := NewBash(BashOptions{}).opts; opts.killSize != 0 {
		t.Errorf("the tool sets %d", opts.killSize)
	}
}

// TestShownFile reads the arguments of every viewer, whether it is installed or
// not.
func TestShownFile(t *testing.T) {
	conform.Covers(t, "T-77")
	for command, want := range map[string]string{
		"cat f": "f", "nl f": "f", "bat f": "f", "batcat f": "f", "head f": "f", "tail f": "f", "sed -n 1,5p f": "f",
		"grep x f": "f", "egrep x f": "f", "fgrep x f": "f", "rg x f": "f",
		"bat -n f": "f", "bat --plain f": "f", "bat --style=plain f": "f", "bat -l go f": "f", "batcat -r 1:5 f": "f", "bat --paging=never -- f": "f",
		"rg -n x f": "f", "rg -C 2 x f": "f", "rg -e x f": "f", "rg -i -e x -- f": "f",
		"bat f g": "", "batcat": "", "bat -": "", "bat --unknown f": "", "bat -x f": "",
		"rg x": "", "rg x f g": "", "rg --files f": "", "rg -f f g": "", "rg -e x": "", "ag x f": "", "less f": "", "f": "",
	} {
		if got, ok := shownFile(strings.Fields(command)); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", command, got, ok, want)
		}
	}
}
