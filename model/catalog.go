package model

import "github.com/turnwright/turnwright/message"

// Info is what is known of a model.
type Info struct {
	ID            string
	Aliases       []string
	Price         *Price // nil: unknown
	ContextWindow int64
	MaxOutput     int64
	Effort        []string // levels it takes, none: no effort parameter
	Thinking      string   // "", "enabled" or "adaptive"
	Retired       bool
}

// Price is in USD for one million tokens; WebSearch in USD for one request.
type Price struct {
	Input, Output, CacheWrite5m, CacheWrite1h, CacheRead, WebSearch float64
}

// Cost returns the price of u in USD.
func (p Price) Cost(u message.Usage) float64 { panic("to be written") }

// Catalog maps models to what is known of them. It is immutable.
type Catalog struct{ byName map[string]Info }
