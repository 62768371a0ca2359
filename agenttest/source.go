package agenttest

import "sync"

// A Source chooses the answer to a request; ok is false when it has none left.
// It is called from many goroutines at once. A server with several sources asks
// them in order, so that Script(a, b), Forever(c) answers a, b, c, c, ….
type Source func(r *Request) (step Step, ok bool)

// Script answers with each step once, in order of arrival.
func Script(steps ...Step) Source {
	var mu sync.Mutex
	next := 0
	return func(*Request) (Step, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(steps) {
			return Step{}, false
		}
		next++
		return steps[next-1], true
	}
}

// Forever answers every request with the same step.
func Forever(step Step) Source {
	return func(*Request) (Step, bool) { return step, true }
}

// Respond answers with what the function returns for the request. The function
// is called from many goroutines at once.
func Respond(respond func(r *Request) Step) Source {
	return func(r *Request) (Step, bool) { return respond(r), true }
}

// ByTurn answers by the place in the conversation: a request that holds n
// assistant messages gets step n (from 0). It keeps no state, so any number of
// sessions can share it, and a repeated request gets the same answer again.
func ByTurn(steps ...Step) Source {
	return func(r *Request) (Step, bool) {
		if n := r.Turn(); n < len(steps) {
			return steps[n], true
		}
		return Step{}, false
	}
}

// Conversations gives each conversation a source of its own: key names the
// conversation of a request, and source is called once for each key.
func Conversations(key func(*Request) string, source func(key string) Source) Source {
	var mu sync.Mutex
	sources := map[string]Source{}
	return func(r *Request) (Step, bool) {
		k := key(r)
		mu.Lock()
		next, ok := sources[k]
		if !ok {
			next = source(k)
			sources[k] = next
		}
		mu.Unlock()
		return next(r)
	}
}
