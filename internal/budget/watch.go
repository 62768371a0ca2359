package budget

// watcher is a function to call when the cap is reached.
type watcher struct {
	call   func(Total)
	called bool
}

// Watch has f called once when the total reaches the cap (L-46, L-47), at once
// when it has already, and again after a Reset. f runs on the goroutine that
// charged, outside the ledger's lock, and must not block. After stop no new
// call begins; one that began at that moment may still be running.
func (l *Ledger) Watch(f func(Total)) (stop func()) {
	w := &watcher{call: f}
	l.mu.Lock()
	if l.watchers == nil {
		l.watchers = map[*watcher]struct{}{}
	}
	l.watchers[w] = struct{}{}
	now := l.reached()
	w.called = now
	l.mu.Unlock()
	if now {
		f(l.Total())
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watchers, w)
	}
}

// takeWatchers returns the watchers that are to be called now.
func (l *Ledger) takeWatchers() []*watcher {
	var out []*watcher
	for w := range l.watchers {
		if !w.called {
			w.called = true
			out = append(out, w)
		}
	}
	return out
}
