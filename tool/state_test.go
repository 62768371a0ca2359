package tool_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/turnwright/turnwright/tool"
	"pgregory.net/rapid"
)

// TestState compares a State with a plain map, and what Dirty returns, applied
// to a copy, with the State: that is what a session relies on when it resumes.
func TestState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.MapOf(rapid.StringMatching("[a-d]"), rapid.SampledFrom([]json.RawMessage{json.RawMessage("1"), json.RawMessage("null")})).Draw(t, "start")
		want := map[string]string{}
		for k, v := range start {
			if string(v) != "null" {
				want[k] = string(v)
			}
		}
		stored := maps.Clone(want)
		s := tool.NewState(start)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, v := rapid.StringMatching("[a-d]").Draw(t, "key"), rapid.SampledFrom([]string{"1", "2", "null", ""}).Draw(t, "value")
				s.Set(k, json.RawMessage(v))
				if delete(want, k); v != "null" && v != "" {
					want[k] = v
				}
			},
			"dirty": func(t *rapid.T) {
				for k, v := range s.Dirty() {
					if delete(stored, k); string(v) != "null" {
						stored[k] = string(v)
					}
				}
				if !maps.Equal(stored, want) {
					t.Fatalf("stored %v, want %v", stored, want)
				}
				if d := s.Dirty(); d != nil {
					t.Fatalf("still dirty: %v", d)
				}
			},
			"": func(t *rapid.T) {
				if got := s.Keys(); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
					t.Fatalf("keys %v, want %v", got, want)
				}
				for k, v := range want {
					if string(s.Get(k)) != v {
						t.Fatalf("%s is %s, want %s", k, s.Get(k), v)
					}
				}
			},
		})
	})
}

func TestStateConcurrent(t *testing.T) {
	var s tool.State // the zero value works
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				key := fmt.Sprint(i)
				s.Set(key, json.RawMessage(fmt.Sprint(j)))
				s.Get(key)
				s.Keys()
				s.Dirty()
			}
		})
	}
	wg.Wait()
	if len(s.Keys()) != 8 || string(s.Get("3")) != "99" {
		t.Errorf("keys %v, 3 = %s", s.Keys(), s.Get("3"))
	}
	var none *tool.State
	none.Set("a", json.RawMessage("1"))
	if none.Get("a") != nil || none.Keys() != nil || none.Dirty() != nil {
		t.Error("a nil State holds something")
	}
}
