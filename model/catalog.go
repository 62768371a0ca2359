package model

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/message"
)

// Info is what is known of a model.
type Info struct {
	ID            string
	Aliases       []string // further names, such as "opus" or a dated id
	Price         *Price   // nil: unknown
	ContextWindow int64    // tokens, 0: unknown
	MaxOutput     int64    // the most max_tokens may be, 0: unknown
	Effort        []string // levels it takes, none: no effort parameter
	Thinking      string   // "", ThinkingEnabled or ThinkingAdaptive
	Retired       bool     // no longer served by the vendor's own API
}

// Price is in USD for one million tokens; WebSearch in USD for one request.
type Price struct {
	Input, Output, CacheWrite5m, CacheWrite1h, CacheRead, WebSearch float64

	// Long, when not nil, is the price of a request whose prompt (input and
	// cache tokens together) has more than LongAbove tokens.
	Long      *Price
	LongAbove int64
}

// Cost returns the price in USD of one request with the usage u (L-226). All
// four kinds of tokens and both tiers of cache writes are counted; writes that
// the server did not split are five-minute writes (B-024). It is an estimate
// from the table, not a bill (L-224). For a price with a Long part, u must be
// one request's usage, not a sum.
func (p Price) Cost(u message.Usage) float64 {
	if p.Long != nil && u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens > p.LongAbove {
		return p.Long.Cost(u)
	}
	hour := u.CacheCreation.Ephemeral1h
	// The split and the sum are two reports of one figure: whatever the split
	// leaves open is priced as the default tier.
	five := max(u.CacheCreation.Ephemeral5m, u.CacheCreationInputTokens-hour)
	tokens := float64(u.InputTokens)*p.Input +
		float64(u.OutputTokens)*p.Output +
		float64(five)*p.CacheWrite5m +
		float64(hour)*p.CacheWrite1h +
		float64(u.CacheReadInputTokens)*p.CacheRead
	return tokens/1e6 + float64(u.ServerToolUse.WebSearchRequests)*p.WebSearch
}

// Catalog maps models to what is known of them. It is immutable.
type Catalog struct{ byName map[string]Info }

// Lookup returns what is known of the model called name; ok is false when
// nothing is. Beside ids and aliases it knows dated ids (claude-…-20250929),
// the forms of the cloud platforms (us.anthropic.claude-…-v1:0,
// claude-…@20250929, anthropic/claude-…) and the suffix [1m].
func (c *Catalog) Lookup(name string) (info Info, ok bool) {
	if c == nil {
		return Info{}, false
	}
	name = strings.ToLower(strings.TrimSpace(name))
	for {
		if info, ok = c.byName[name]; ok {
			return info.clone(), true
		}
		shorter := reduce(name)
		if shorter == name {
			return Info{}, false
		}
		name = shorter
	}
}

// The parts around a model's own name, outermost first: what is tried next
// when a name is not known.
var (
	windowSuffix  = regexp.MustCompile(`\[[0-9]+[km]\]$`)
	versionSuffix = regexp.MustCompile(`-v[0-9]+(:[0-9]+)?$`)
	dateSuffix    = regexp.MustCompile(`[-@]20[0-9]{6}$|@default$|-latest$`)
	platform      = regexp.MustCompile(`^.*[./](claude-)`)
)

// dotted is how some gateways write a version.
var dotted = regexp.MustCompile(`([0-9])\.([0-9])`)

// Resolve returns the id to ask the API for: that of the model whose alias
// name is, and name itself when it is no alias.
func (c *Catalog) Resolve(name string) string {
	if c != nil {
		if info, ok := c.byName[strings.ToLower(strings.TrimSpace(name))]; ok {
			return info.ID
		}
	}
	return name
}

// reduce takes one such part away; it returns name when there is none.
func reduce(name string) string {
	for _, re := range [...]*regexp.Regexp{windowSuffix, versionSuffix, dateSuffix} {
		if i := re.FindStringIndex(name); i != nil {
			return name[:i[0]]
		}
	}
	if own := platform.ReplaceAllString(name, "$1"); own != name {
		return own
	}
	if strings.HasPrefix(name, "claude-") {
		return dotted.ReplaceAllString(name, "$1-$2")
	}
	return name
}

// With returns a catalog that also holds infos. Each stands in place of
// whatever was known under its id and aliases, as a whole: a price that it
// does not give is unknown (B-027). Later infos win over earlier ones.
func (c *Catalog) With(infos ...Info) *Catalog {
	n := &Catalog{byName: make(map[string]Info)}
	if c != nil {
		maps.Copy(n.byName, c.byName)
	}
	for _, info := range infos {
		info = info.clone()
		for name, old := range n.byName {
			if old.ID == info.ID {
				n.byName[name] = info // "opus" follows its model
			}
		}
		for _, name := range append([]string{info.ID}, info.Aliases...) {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
				n.byName[name] = info
			}
		}
	}
	return n
}

// All returns every model of the catalog once, sorted by id.
func (c *Catalog) All() []Info {
	if c == nil {
		return nil
	}
	byID := make(map[string]Info)
	for _, info := range c.byName {
		byID[info.ID] = info
	}
	all := make([]Info, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, byID[id].clone())
	}
	return all
}

// clone keeps the catalog's own values out of callers' hands.
func (i Info) clone() Info {
	i.Aliases, i.Effort = slices.Clone(i.Aliases), slices.Clone(i.Effort)
	if i.Price != nil {
		i.Price = new(*i.Price)
		if i.Price.Long != nil {
			i.Price.Long = new(*i.Price.Long)
		}
	}
	return i
}
