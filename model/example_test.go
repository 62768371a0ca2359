package model_test

import (
	"fmt"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// A model of one's own gets its price, and the price of a known one is
// replaced.
func ExampleCatalog_With() {
	catalog := model.DefaultCatalog().With(
		model.Info{ID: "acme-x1", Price: &model.Price{Input: 0.10, Output: 0.40}, ContextWindow: 128_000, MaxOutput: 8_000},
		model.Info{ID: "claude-opus-5-5", Price: &model.Price{Input: 3, Output: 15, CacheRead: 0.15, CacheWrite5m: 3.75, CacheWrite1h: 6}},
	)
	for _, name := range []string{"acme-x1", "opus"} {
		info, _ := catalog.Lookup(name)
		fmt.Printf("%s: $%.2f\n", info.ID, info.Price.Cost(message.Usage{InputTokens: 1_000_000, OutputTokens: 100_000}))
	}
	// Output:
	// acme-x1: $0.14
	// claude-opus-5-5: $4.50
}
