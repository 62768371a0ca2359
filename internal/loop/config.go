package loop

import "strconv"

// Config is what a run was started with. It never changes the meaning of an
// entry: apply does not look at it.
type Config struct {
	SessionID     string
	MaxTurns      *int     // cap on tool turns of a user turn, nil: none (L-23)
	MaxBudgetUSD  *float64 // nil: none (L-41)
	Width         int      // concurrent calls of a window, 0: 10 (L-134)
	Steer         bool     // absorb inputs that do not say otherwise (L-188)
	Replay        bool     // emit user messages back (M-40)
	BatchHooks    bool     // AfterBatch is wanted after the calls of a response
	StopHooks     bool     // StopHooks is wanted before a user turn ends by itself
	StopBlockCap  int      // consecutive Stop blocks, 0: 8, negative: no cap (L-216)
	CompactAt     int64    // compact when the context has this many tokens, 0: never
	Schema        bool     // structured output is asked for (L-151)
	SchemaRetries *int     // nil: 5 (L-152)
}

// Bounds of one user turn.
const (
	maxContinuations = 3  // L-73
	maxPauses        = 10 // L-78
	maxMalformed     = 3  // L-138
	maxBroken        = 5  // L-94
	maxCompactFails  = 3  // L-178
	maxRefills       = 3  // L-179
	defaultWidth     = 10
	defaultStopCap   = 8
	defaultSchema    = 5
)

func (c *Config) limits() (l Limits) {
	if c.MaxTurns != nil {
		l.MaxTurns = strconv.Itoa(*c.MaxTurns)
	}
	if c.MaxBudgetUSD != nil {
		l.MaxBudgetUSD = strconv.FormatFloat(*c.MaxBudgetUSD, 'f', -1, 64)
	}
	return l
}

func (c *Config) run() Run {
	r := Run{
		Width: c.width(), StopBlockCap: c.stopCap(), CompactAt: c.CompactAt, Schema: c.Schema,
		Steer: c.Steer, BatchHooks: c.BatchHooks, StopHooks: c.StopHooks,
	}
	if c.Schema {
		r.SchemaRetries = c.schemaRetries()
	}
	return r
}

// Config returns the configuration that the settings tell of. What a journal of
// before does not tell is as in a zero Config; ok is false when that is so. Replay
// is never told: no entry depends on it.
func (s *Settings) Config() (c Config, ok bool) {
	c = Config{
		SessionID: s.SessionID, Width: s.Width, Steer: s.Steer, BatchHooks: s.BatchHooks, StopHooks: s.StopHooks,
		StopBlockCap: s.StopBlockCap, CompactAt: s.CompactAt, Schema: s.Schema,
	}
	if s.Schema {
		c.SchemaRetries = &s.SchemaRetries
	}
	if n, err := strconv.Atoi(s.MaxTurns); err == nil {
		c.MaxTurns = &n
	}
	if usd, err := strconv.ParseFloat(s.MaxBudgetUSD, 64); err == nil {
		c.MaxBudgetUSD = &usd
	}
	return c, s.Width != 0
}

func (c *Config) width() int {
	if c.Width <= 0 {
		return defaultWidth
	}
	return c.Width
}

func (c *Config) stopCap() int {
	if c.StopBlockCap == 0 {
		return defaultStopCap
	}
	return c.StopBlockCap
}

func (c *Config) schemaRetries() int {
	if c.SchemaRetries == nil {
		return defaultSchema
	}
	return *c.SchemaRetries
}
