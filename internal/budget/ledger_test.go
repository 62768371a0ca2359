package budget

import (
	"math"
	"strconv"
	"sync"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"pgregory.net/rapid"
)

func TestChargeCountsEachResponseOnce(t *testing.T) {
	conform.Covers(t, "B-025", "L-222")
	l := New(nil, Observed)
	u := message.Usage{InputTokens: 1000, OutputTokens: 50, CacheReadInputTokens: 7, CacheCreationInputTokens: 9}
	u.ServerToolUse.WebSearchRequests = 2
	if !l.Charge("m", u, 0.25, "msg_1") {
		t.Error("the first charge did not count")
	}
	for range 3 {
		if l.Charge("m", u, 0.25, "msg_1") {
			t.Error("the same id counted again")
		}
	}
	for range 2 {
		if !l.Charge("n", message.Usage{OutputTokens: 1}, 0.05, "") {
			t.Error("a response without id did not count")
		}
	}
	got := l.Total()
	want := message.ModelUsage{InputTokens: 1000, OutputTokens: 50, CacheReadInputTokens: 7, CacheCreationInputTokens: 9, WebSearchRequests: 2, CostUSD: 0.25}
	if got.USD != 0.35 || got.Models["m"] != want || got.Models["n"].CostUSD != 0.1 {
		t.Errorf("got %+v", got)
	}
	got.Models["m"] = message.ModelUsage{}
	if l.Total().Models["m"] != want {
		t.Error("the caller's map is the ledger's")
	}
}

func TestReached(t *testing.T) {
	conform.Covers(t, "L-41", "L-42")
	tests := []struct {
		name  string
		cap   *float64
		costs []float64
		want  bool
	}{
		{"no cap", nil, []float64{1e6, math.MaxFloat64}, false},
		{"below", new(0.3), []float64{0.1, 0.1999}, false},
		{"exactly", new(0.3), []float64{0.1, 0.2}, true}, // 0.1 + 0.2 > 0.3 in float64
		{"exactly, many", new(1.0), []float64{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1}, true},
		{"above", new(0.3), []float64{5}, true},
		{"nothing spent", new(1e-12), nil, false},
		{"not an amount", new(1.0), []float64{math.NaN(), -3}, false},
		{"huge", new(math.MaxFloat64), []float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}, true},
		{"cap 0", new(0.0), nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := New(tt.cap, Observed)
			for _, c := range tt.costs {
				l.Charge("m", message.Usage{}, c, "")
			}
			if got := l.Reached(); got != tt.want {
				t.Errorf("Reached() = %v, want %v at %v", got, tt.want, l.Total().USD)
			}
		})
	}
}

// The sum over models is the total, whatever the order and however many.
func TestModelsAddUp(t *testing.T) {
	conform.Covers(t, "M-64")
	rapid.Check(t, func(t *rapid.T) {
		costs := rapid.SliceOfN(rapid.Float64Range(0, 20), 0, 200).Draw(t, "costs")
		a, b := New(nil, Observed), New(nil, Observed)
		for i, c := range costs {
			a.Charge(strconv.Itoa(i%3), message.Usage{}, c, strconv.Itoa(i))
		}
		for i := len(costs) - 1; i >= 0; i-- {
			b.Charge(strconv.Itoa(i%3), message.Usage{}, costs[i], strconv.Itoa(i))
		}
		ta, tb := a.Total(), b.Total()
		if ta.USD != tb.USD {
			t.Fatalf("the order matters: %v and %v", ta.USD, tb.USD)
		}
		var sum int64
		var exact float64
		for _, m := range ta.Models {
			sum += int64(math.Round(m.CostUSD * 1e9))
		}
		for _, c := range costs {
			exact += c
		}
		if sum != int64(math.Round(ta.USD*1e9)) {
			t.Fatalf("models %d, total %v", sum, ta.USD)
		}
		if math.Abs(exact-ta.USD) > 1e-9*float64(len(costs)+1) {
			t.Fatalf("total %v, want %v", ta.USD, exact)
		}
	})
}

func TestReset(t *testing.T) {
	conform.Covers(t, "L-51", "B-029")
	l := New(new(1.0), Observed)
	told := 0
	l.Watch(func(Total) { told++ })
	l.Charge("m", message.Usage{InputTokens: 5}, 2, "a")
	l.Charge("m", message.Usage{InputTokens: 5}, 2, "b")
	if !l.Reached() || told != 1 {
		t.Fatalf("reached %v, told %d times", l.Reached(), told)
	}
	l.Reset()
	if tot := l.Total(); tot.USD != 0 || len(tot.Models) != 0 || l.Reached() {
		t.Errorf("after Reset: %+v", tot)
	}
	if l.Charge("m", message.Usage{}, 2, "a") {
		t.Error("a response of before counted again")
	}
	l.Charge("m", message.Usage{InputTokens: 1}, 0.01, "c")
	if tot := l.Total(); tot.USD != 0.01 || tot.Models["m"].InputTokens != 1 {
		t.Errorf("the new total is %+v", tot)
	}
	l.Charge("m", message.Usage{}, 1, "d")
	if told != 2 {
		t.Errorf("told %d times after the second crossing, want 2", told)
	}
}

func TestWatch(t *testing.T) {
	conform.Covers(t, "L-42")
	l := New(new(1.0), Observed)
	var got []float64
	stop := l.Watch(func(tot Total) { got = append(got, tot.USD) })
	stopped := l.Watch(func(Total) { t.Error("called after stop") })
	stopped()
	stopped()
	l.Charge("m", message.Usage{}, 0.5, "a")
	l.Charge("m", message.Usage{}, 0.75, "b")
	l.Charge("m", message.Usage{}, 0.75, "c")
	if len(got) != 1 || got[0] != 1.25 {
		t.Errorf("called with %v, want one call with 1.25", got)
	}
	stop()
	late := 0
	defer l.Watch(func(Total) { late++ })()
	if late != 1 {
		t.Errorf("a late watcher was called %d times", late)
	}
	// A watcher may use the ledger.
	l.Reset()
	var inside bool
	l.Watch(func(Total) { inside = l.Reached() })
	l.Charge("m", message.Usage{}, 1, "d")
	if !inside {
		t.Error("Reached() was false inside the watcher")
	}
}

func TestWatchConcurrent(t *testing.T) {
	conform.Covers(t, "B-189")
	l := New(new(1.0), Observed)
	var mu sync.Mutex
	told := 0
	l.Watch(func(Total) { mu.Lock(); defer mu.Unlock(); told++ })
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 100 {
				id := strconv.Itoa(g*100 + i)
				l.Charge("m", message.Usage{OutputTokens: 1}, 0.001, id)
				l.Charge("m", message.Usage{OutputTokens: 1}, 0.001, id)
			}
		})
	}
	wg.Wait()
	if tot := l.Total(); tot.USD != 1.6 || tot.Models["m"].OutputTokens != 1600 || told != 1 {
		t.Errorf("total %+v, told %d times", tot, told)
	}
}

func BenchmarkCharge(b *testing.B) {
	l := New(new(1e9), Observed)
	ids := make([]string, b.N+1)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	b.ReportAllocs()
	for i := range b.N {
		l.Charge("m", message.Usage{}, 0.001, ids[i])
	}
}
