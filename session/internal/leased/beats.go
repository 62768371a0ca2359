package leased

import (
	"context"
	"sync"
	"time"
)

// renewals is how often a lease is renewed within its length: three may fail.
const renewals = 4

// beats renews the leases that are held. Its goroutine runs only while there is
// one.
type beats struct {
	store *Store
	mu    sync.Mutex
	held  map[*journal]Lease
	stop  chan struct{}
	ended bool
}

// add renews the lease from now on.
func (b *beats) add(j *journal, l Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	if b.held == nil {
		b.held = map[*journal]Lease{}
	}
	b.held[j] = l
	if b.stop == nil {
		b.stop = make(chan struct{})
		go b.run(b.stop)
	}
}

// remove lets the lease run out, if Give does not end it.
func (b *beats) remove(j *journal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, j)
	if len(b.held) == 0 && b.stop != nil {
		close(b.stop)
		b.stop = nil
	}
}

// end stops for good.
func (b *beats) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended, b.held = true, nil
	if b.stop != nil {
		close(b.stop)
		b.stop = nil
	}
}

func (b *beats) run(stop chan struct{}) {
	every := b.store.c.Lease / renewals
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		b.mu.Lock()
		all := make([]Lease, 0, len(b.held))
		for _, l := range b.held {
			all = append(all, l)
		}
		b.mu.Unlock()
		// A database that does not answer is asked again at the next beat; what
		// comes of it the next append says.
		ctx, cancel := context.WithTimeout(context.Background(), b.store.c.Lease)
		_ = b.store.db.Renew(ctx, all)
		cancel()
	}
}
