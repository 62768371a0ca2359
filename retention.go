package turnwright

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/session/file"
)

// clientHome is how the name of a configuration home begins that an official
// client makes for one resume and fills with old entries (K-295).
const clientHome = "claude-resume-"

// sweeper is what looks for old sessions while a session runs.
type sweeper struct {
	stop context.CancelFunc
	done chan struct{}
}

// swept are the configuration homes that this process has swept, or is sweeping:
// once is enough.
var swept sync.Map

// sweep removes old sessions in the background (S-32). A nil sweeper: there is
// nothing to do, because they are kept elsewhere, or nothing is kept, or the
// machine's files do not count (Bare), or it cannot be told how long to keep them.
func (o *Options) sweep(cfg *engine.Config, set *live) *sweeper {
	store, ok := cfg.Store.(*file.Store)
	if !ok || o.Store != nil || o.bare(set.launched) {
		return nil
	}
	days, ok := o.cleanupDays(set)
	if !ok || strings.HasPrefix(filepath.Base(store.Dir()), clientHome) {
		return nil
	}
	if _, was := swept.LoadOrStore(store.Dir(), true); was {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &sweeper{stop, make(chan struct{})}
	before := time.Now().AddDate(0, 0, -days)
	go func() {
		defer close(s.done)
		if _, err := store.Sweep(ctx, before); err != nil {
			swept.Delete(store.Dir()) // the next session tries again
		}
	}()
	return s
}

// cleanupDays is after how many days sessions are removed; false when it is not
// known: a source that may say it was not to be read, or could not be.
func (o *Options) cleanupDays(set *live) (days int, ok bool) {
	days, named := set.reader.Settings().CleanupDays()
	if set.unsure || !named && !o.loads(SourceUser) {
		return 0, false
	}
	return days, true
}

// end stops the sweeping; nobody waits for it longer than for one file.
func (s *sweeper) end() {
	if s != nil {
		s.stop()
		<-s.done
	}
}
