package builtin

import (
	"context"
	"sync"
)

// fileLocks are held by the tools that change files, one call at a time on a
// file, also when the calls come from several goroutines, tools or sessions of
// this process (B-089).
var fileLocks pathLocks

// pathLocks lets one call at a time work on a file.
type pathLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the holder is done
}

func (l *pathLocks) lock(ctx context.Context, path string) (unlock func(), err error) {
	for {
		l.mu.Lock()
		wait, busy := l.held[path]
		if !busy {
			if l.held == nil {
				l.held = map[string]chan struct{}{}
			}
			done := make(chan struct{})
			l.held[path] = done
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.held, path)
				l.mu.Unlock()
				close(done)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
