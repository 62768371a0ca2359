package model

import "sync"

// CatalogDate is the day to which the built-in table was checked. Prices
// change: later ones are given with Catalog.With.
const CatalogDate = "2026-11-30"

// The figures are those of the vendor's public pages (pricing, models
// overview, the page of each model, effort, adaptive thinking, deprecations:
// platform.claude.com/docs), for the vendor's own API at standard speed, no
// batch. The row of Fable 5.2, released on 2026-11-09, is from resellers that
// quote the list price; its one-hour write follows from the rule that all
// rows obey: a write costs 1.25 times the input for five minutes and twice
// the input for an hour.

// webSearch is USD for one search: 10 for 1,000.
const webSearch = 0.01

const (
	windowSmall = 200_000
	windowLarge = 1_000_000
)

// Effort levels by generation.
var (
	effortThree = []string{"low", "medium", "high"}
	effortFour  = []string{"low", "medium", "high", "max"}
	effortFive  = []string{"low", "medium", "high", "xhigh", "max"}
)

// The two kinds of Info.Thinking beside none.
const (
	ThinkingEnabled  = "enabled"  // {"type":"enabled","budget_tokens":n}
	ThinkingAdaptive = "adaptive" // {"type":"adaptive"}
)

// usd returns a price with the vendor's factors for cache writes.
func usd(input, output, cacheRead float64) *Price {
	return &Price{
		Input: input, Output: output, CacheRead: cacheRead,
		CacheWrite5m: input * 1.25, CacheWrite1h: input * 2, WebSearch: webSearch,
	}
}

// haiku55 is priced by the length of the prompt.
func haiku55() *Price {
	p := usd(0.10, 0.50, 0.01)
	p.Long, p.LongAbove = usd(0.50, 2.50, 0.05), 100_000
	return p
}

// table lists the models, newest first in each family. An id is one that the
// API takes; the short names go to the newest.
func table() []Info {
	return []Info{
		{ID: "claude-fable-5-2", Aliases: []string{"fable"}, Price: usd(8, 40, 0.20), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-fable-5-1", Price: usd(10, 50, 0.25), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-fable-5", Price: usd(10, 50, 1), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-mythos-5-1", Price: usd(10, 50, 0.25), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-mythos-5", Price: usd(10, 50, 1), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},

		{ID: "claude-opus-5-5", Aliases: []string{"opus"}, Price: usd(4, 20, 0.20), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-opus-5", Price: usd(5, 25, 0.50), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-opus-4-8", Price: usd(5, 25, 0.50), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-opus-4-7", Price: usd(5, 25, 0.50), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-opus-4-6", Price: usd(5, 25, 0.50), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFour, Thinking: ThinkingAdaptive},
		{ID: "claude-opus-4-5", Price: usd(5, 25, 0.50), ContextWindow: windowSmall, MaxOutput: 64_000, Effort: effortThree, Thinking: ThinkingEnabled},
		{ID: "claude-opus-4-1", Price: usd(15, 75, 1.50), ContextWindow: windowSmall, MaxOutput: 32_000, Thinking: ThinkingEnabled, Retired: true},
		{ID: "claude-opus-4-0", Aliases: []string{"claude-opus-4"}, Price: usd(15, 75, 1.50), ContextWindow: windowSmall, MaxOutput: 32_000, Thinking: ThinkingEnabled, Retired: true},
		{ID: "claude-3-opus-20240229", Aliases: []string{"claude-3-opus"}, Price: usd(15, 75, 1.50), ContextWindow: windowSmall, MaxOutput: 4096, Retired: true},

		{ID: "claude-sonnet-5-5", Aliases: []string{"sonnet"}, Price: usd(2, 10, 0.10), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-sonnet-5", Price: usd(2, 10, 0.20), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-sonnet-4-6", Price: usd(3, 15, 0.30), ContextWindow: windowLarge, MaxOutput: 64_000, Effort: effortFour, Thinking: ThinkingAdaptive},
		{ID: "claude-sonnet-4-5", Price: usd(3, 15, 0.30), ContextWindow: windowSmall, MaxOutput: 64_000, Thinking: ThinkingEnabled},
		{ID: "claude-sonnet-4-0", Aliases: []string{"claude-sonnet-4"}, Price: usd(3, 15, 0.30), ContextWindow: windowSmall, MaxOutput: 64_000, Thinking: ThinkingEnabled, Retired: true},
		{ID: "claude-3-7-sonnet-20250219", Aliases: []string{"claude-3-7-sonnet"}, Price: usd(3, 15, 0.30), ContextWindow: windowSmall, MaxOutput: 64_000, Thinking: ThinkingEnabled, Retired: true},
		{ID: "claude-3-5-sonnet-20241022", Aliases: []string{"claude-3-5-sonnet"}, Price: usd(3, 15, 0.30), ContextWindow: windowSmall, MaxOutput: 8192, Retired: true},

		{ID: "claude-haiku-5-5", Aliases: []string{"haiku"}, Price: haiku55(), ContextWindow: windowLarge, MaxOutput: 128_000, Effort: effortFive, Thinking: ThinkingAdaptive},
		{ID: "claude-haiku-4-5", Price: usd(1, 5, 0.10), ContextWindow: windowSmall, MaxOutput: 64_000, Thinking: ThinkingEnabled},
		{ID: "claude-3-5-haiku-20241022", Aliases: []string{"claude-3-5-haiku"}, Price: usd(0.80, 4, 0.08), ContextWindow: windowSmall, MaxOutput: 8192, Retired: true},
		// The one row off the rule: its list price is rounded.
		{ID: "claude-3-haiku-20240307", Aliases: []string{"claude-3-haiku"}, Price: &Price{Input: 0.25, Output: 1.25, CacheWrite5m: 0.30, CacheWrite1h: 0.50, CacheRead: 0.03, WebSearch: webSearch}, ContextWindow: windowSmall, MaxOutput: 4096, Retired: true},
	}
}

var defaultCatalog = sync.OnceValue(func() *Catalog { return (*Catalog)(nil).With(table()...) })

// DefaultCatalog returns the built-in table of CatalogDate.
func DefaultCatalog() *Catalog { return defaultCatalog() }
