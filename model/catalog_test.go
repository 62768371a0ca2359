package model

import (
	"math"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

func TestCost(t *testing.T) {
	conform.Covers(t, "L-224", "L-226", "B-024")
	sonnet, ok := DefaultCatalog().Lookup("claude-sonnet-4-5")
	if !ok {
		t.Fatal("claude-sonnet-4-5 is not known")
	}
	split := message.Usage{InputTokens: 3, OutputTokens: 80, CacheCreationInputTokens: 100_000}
	split.CacheCreation.Ephemeral5m, split.CacheCreation.Ephemeral1h = 60_000, 40_000
	search := message.Usage{}
	search.ServerToolUse.WebSearchRequests = 1000
	hourOnly := message.Usage{CacheCreationInputTokens: 100_000}
	hourOnly.CacheCreation.Ephemeral1h = 40_000
	for _, c := range []struct {
		name string
		u    message.Usage
		want float64
	}{
		// 3·3 + 80·15 + 60,000·3.75 + 40,000·6 = 466,209 millionths
		{"both write tiers", split, 0.466209},
		// 100,000·0.30
		{"cache read", message.Usage{CacheReadInputTokens: 100_000}, 0.03},
		{"writes without a split are five-minute ones", message.Usage{CacheCreationInputTokens: 100_000}, 0.375},
		{"a split that leaves a rest", hourOnly, 0.465},
		{"web search", search, 10},
		{"nothing", message.Usage{}, 0},
	} {
		if got := sonnet.Price.Cost(c.u); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCostByPromptLength(t *testing.T) {
	haiku, _ := DefaultCatalog().Lookup("haiku")
	short := message.Usage{InputTokens: 1000, CacheReadInputTokens: 99_000, OutputTokens: 1000}
	long := short
	long.CacheReadInputTokens++
	if got := haiku.Price.Cost(short); math.Abs(got-(0.0001+0.00099+0.0005)) > 1e-12 {
		t.Error(got)
	}
	if got := haiku.Price.Cost(long); math.Abs(got-(0.0005+0.05*99_001/1e6+0.0025)) > 1e-12 {
		t.Error(got)
	}
}

func TestLookup(t *testing.T) {
	conform.Covers(t, "L-224")
	c := DefaultCatalog()
	for name, id := range map[string]string{
		"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5", "haiku": "claude-haiku-5-5", "fable": "claude-fable-5-2",
		"Sonnet":                                      "claude-sonnet-5-5",
		"claude-sonnet-4-5":                           "claude-sonnet-4-5",
		"claude-sonnet-4-5-20250929":                  "claude-sonnet-4-5",
		"claude-sonnet-4-5[1m]":                       "claude-sonnet-4-5",
		"claude-opus-4-1-20250805":                    "claude-opus-4-1",
		"claude-opus-4-20250514":                      "claude-opus-4-0",
		"claude-3-5-haiku-20241022":                   "claude-3-5-haiku-20241022",
		"claude-3-5-haiku-latest":                     "claude-3-5-haiku-20241022",
		"claude-3-5-haiku":                            "claude-3-5-haiku-20241022",
		"us.anthropic.claude-haiku-4-5-20251001-v1:0": "claude-haiku-4-5",
		"anthropic.claude-opus-4-6-v1":                "claude-opus-4-6",
		"claude-haiku-4-5@20251001":                   "claude-haiku-4-5",
		"anthropic/claude-haiku-4.5":                  "claude-haiku-4-5",
		"anthropic/claude-sonnet-4-6":                 "claude-sonnet-4-6",
	} {
		if info, ok := c.Lookup(name); !ok || info.ID != id {
			t.Errorf("Lookup(%q) = %q, %v; want %q", name, info.ID, ok, id)
		}
	}
	for _, name := range []string{"", "gpt-x", "claude", "claude-opus-9-9", "acme-x1", "20250929", "-20250929"} {
		if info, ok := c.Lookup(name); ok {
			t.Errorf("Lookup(%q) = %q, a guess", name, info.ID)
		}
	}
	if _, ok := (*Catalog)(nil).Lookup("opus"); ok {
		t.Error("a nil catalog knows nothing")
	}
}

func TestResolve(t *testing.T) {
	c := DefaultCatalog()
	for name, want := range map[string]string{
		"opus":                       "claude-opus-5-5",
		"claude-sonnet-4-5-20250929": "claude-sonnet-4-5-20250929", // a pinned date stays pinned
		"claude-opus-4":              "claude-opus-4-0",
		"acme-x1":                    "acme-x1",
	} {
		if got := c.Resolve(name); got != want {
			t.Errorf("Resolve(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestUserPricesWin(t *testing.T) {
	conform.Covers(t, "B-027", "L-224")
	base := DefaultCatalog()
	c := base.With(
		Info{ID: "acme-x1", Aliases: []string{"cheap"}, Price: &Price{Input: 0.1, Output: 0.4}},
		Info{ID: "claude-opus-5-5", Price: &Price{Input: 1, Output: 2}},
		Info{ID: "claude-sonnet-5-5"},
	)
	acme, ok := c.Lookup("acme-x1")
	if !ok || math.Abs(acme.Price.Cost(message.Usage{InputTokens: 3_900_000, OutputTokens: 500_000})-0.59) > 1e-12 {
		t.Error(acme)
	}
	for _, name := range []string{"opus", "claude-opus-5-5", "claude-opus-5-5-20260922"} {
		if info, _ := c.Lookup(name); info.Price == nil || info.Price.Input != 1 {
			t.Errorf("%s: %+v", name, info)
		}
	}
	if info, _ := c.Lookup("sonnet"); info.Price != nil {
		t.Error("a price that was not given is unknown")
	}
	if info, _ := base.Lookup("opus"); info.Price.Input != 4 {
		t.Error("With changed the catalog it was called on")
	}
	// What Lookup hands out is the caller's own.
	info, _ := base.Lookup("haiku")
	info.Price.Input, info.Price.Long.Input, info.Effort[0] = 99, 99, "x"
	if again, _ := base.Lookup("haiku"); again.Price.Input == 99 || again.Price.Long.Input == 99 || again.Effort[0] == "x" {
		t.Error("the catalog can be changed from outside")
	}
}

func TestTableIsSound(t *testing.T) {
	if _, err := time.Parse(time.DateOnly, CatalogDate); err != nil {
		t.Error(err)
	}
	names := map[string]string{}
	for _, m := range table() {
		for _, n := range append([]string{m.ID}, m.Aliases...) {
			if names[n] != "" {
				t.Errorf("%q is a name of %s and %s", n, names[n], m.ID)
			}
			names[n] = m.ID
		}
		p := m.Price
		if p == nil || m.ContextWindow == 0 || m.MaxOutput == 0 {
			t.Errorf("%s is incomplete", m.ID)
			continue
		}
		if !(p.CacheRead > 0 && p.CacheRead < p.Input && p.Input < p.CacheWrite5m && p.CacheWrite5m < p.CacheWrite1h && p.Input < p.Output) {
			t.Errorf("%s: odd prices %+v", m.ID, *p)
		}
		if (len(m.Effort) == 0) && m.Thinking == ThinkingAdaptive {
			t.Errorf("%s thinks adaptively without effort levels", m.ID)
		}
	}
	if len(DefaultCatalog().All()) != len(table()) {
		t.Error("All does not list every model once")
	}
}
