package budget

import (
	"math"
	"sync"

	"github.com/turnwright/turnwright/message"
)

// Mode says what the ledger does before a request.
type Mode uint8

const (
	// Observed compares the cap with what was spent: the response that crosses
	// it is paid for and reported (L-42, L-43).
	Observed Mode = iota
	// Strict lets a request start only when its worst case fits under the cap:
	// spent + held ≤ cap at every instant.
	Strict
)

// Ledger counts the money of one tree. It is safe for concurrent use. Make one
// with New.
type Ledger struct {
	mode   Mode
	capped bool
	limit  nano

	mu       sync.Mutex
	spent    nano
	held     nano // open holds and kept ones
	kept     nano // the part of held that no one will give back
	open     int
	models   map[string]*account
	seen     map[string]struct{} // response ids that were charged
	waiting  []*waiter           // first come, first served
	watchers map[*watcher]struct{}
}

// account is what one model cost.
type account struct {
	usage message.ModelUsage
	cost  nano
}

// Total is what the tree cost so far.
type Total struct {
	USD    float64                       // total_cost_usd
	Models map[string]message.ModelUsage // by model; context window and the like are left to the caller
}

// State is a picture of the ledger for explanations. Amounts are in USD.
type State struct {
	Cap     *float64 // nil: none
	Spent   float64
	Held    float64 // reserved by requests, open ones and those that kept their hold
	Kept    float64 // the part of Held that belongs to requests that were cut off
	Open    int     // requests under way
	Waiting int     // requests that wait for room
}

// New returns an empty ledger. capUSD nil means no limit (L-41). A cap that is
// not positive was refused at startup (L-52); here it counts as reached.
func New(capUSD *float64, mode Mode) *Ledger {
	l := &Ledger{
		mode:   mode,
		models: map[string]*account{},
		seen:   map[string]struct{}{},
	}
	if capUSD != nil {
		l.capped = true
		l.limit, _ = toNano(*capUSD) // what is no amount leaves nothing to spend
		if *capUSD > 0 {
			l.limit = max(l.limit, 1)
		}
	}
	return l
}

// Charge books one response: its usage under its model, and its cost in USD.
// Each response id counts once (B-025); an empty id always counts. It reports
// whether it counted. A cost that is no amount counts as 0. For a request that
// has a hold use the hold's Charge.
func (l *Ledger) Charge(model string, u message.Usage, cost float64, id string) bool {
	return l.charge(nil, model, u, cost, id)
}

func (l *Ledger) charge(h *Hold, model string, u message.Usage, cost float64, id string) bool {
	n, _ := toNano(cost)
	l.mu.Lock()
	if id != "" {
		if _, known := l.seen[id]; known {
			l.mu.Unlock()
			return false
		}
		l.seen[id] = struct{}{}
	}
	if h != nil {
		// The money moves from held to spent in one step.
		part := min(n, h.left)
		h.left -= part
		l.held -= part
	}
	a := l.models[model]
	if a == nil {
		a = &account{}
		l.models[model] = a
	}
	n = min(n, maxNano-min(l.spent, maxNano))
	a.cost += n
	a.usage.InputTokens += u.InputTokens
	a.usage.OutputTokens += u.OutputTokens
	a.usage.CacheReadInputTokens += u.CacheReadInputTokens
	a.usage.CacheCreationInputTokens += u.CacheCreationInputTokens
	a.usage.WebSearchRequests += u.ServerToolUse.WebSearchRequests
	before := l.reached()
	l.spent += n
	var tell []*watcher
	if !before && l.reached() {
		tell = l.takeWatchers()
	}
	l.serve()
	l.mu.Unlock()
	for _, w := range tell {
		w.call(l.Total())
	}
	return true
}

// Total returns what was spent, in all and by model. The costs of the models
// add up to USD (M-64).
func (l *Ledger) Total() Total {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := Total{USD: l.spent.usd(), Models: make(map[string]message.ModelUsage, len(l.models))}
	for name, a := range l.models {
		u := a.usage
		u.CostUSD = a.cost.usd()
		t.Models[name] = u
	}
	return t
}

// State returns a picture of the ledger.
func (l *Ledger) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{
		Spent: l.spent.usd(), Held: l.held.usd(), Kept: l.kept.usd(),
		Open: l.open, Waiting: len(l.waiting),
	}
	if l.capped {
		s.Cap = new(l.limit.usd())
	}
	return s
}

// Left returns what is neither spent nor held, in USD, not under 0; +Inf
// without a cap.
func (l *Ledger) Left() float64 {
	if !l.capped {
		return math.Inf(1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room().usd()
}

// room is what is neither spent nor held.
func (l *Ledger) room() nano { return max(0, l.limit-l.spent-l.held) }

// Reached reports whether the total is at or above the cap (L-42).
func (l *Ledger) Reached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reached()
}

func (l *Ledger) reached() bool { return l.capped && l.spent >= l.limit }

// Reset starts total and budget again, as /clear does (L-51, B-029). Requests
// under way keep their holds and are charged to the new total: money is never
// lost sight of. Watchers that were called are called again at the next time.
func (l *Ledger) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent = 0
	l.held -= l.kept
	l.kept = 0
	l.models = map[string]*account{}
	for w := range l.watchers {
		w.called = false
	}
	l.serve()
}
