package engine

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
)

// TestBeats: each call tells every 30 seconds of its own time, however many
// share the timer, and after a rest as before it.
func TestBeats(t *testing.T) {
	conform.Covers(t, "M-88")
	synctest.Test(t, func(t *testing.T) {
		var b beats
		var got []string
		begin := time.Now()
		call := func(name string) *beating {
			return b.add(func() { got = append(got, fmt.Sprint(name, time.Since(begin).Seconds())) })
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		b.remove(call("short ")) // leaves the timer set
		pass(10 * time.Second)
		one := call("a ")
		pass(15 * time.Second)
		two := call("b ")
		pass(50 * time.Second) // 75
		b.remove(one)
		pass(15 * time.Second) // 90
		b.remove(two)
		b.rest()
		pass(time.Hour)
		if want := []string{"a 40", "b 55", "a 70", "b 85"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		got, begin = nil, time.Now()
		last := call("c ")
		pass(61 * time.Second)
		b.remove(last)
		b.rest()
		if want := []string{"c 30", "c 60"}; !slices.Equal(got, want) {
			t.Errorf("after a rest: %q, want %q", got, want)
		}
	})
}
