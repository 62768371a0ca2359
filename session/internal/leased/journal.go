package leased

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/turnwright/turnwright/session"
)

// journal is one open session.
type journal struct {
	store *Store
	key   Key
	owner string
	wait  time.Duration

	mu     sync.Mutex // Release may come from another goroutine
	closed bool
	held   bool  // the lease, as far as is known here
	mayGet bool  // the database may have a lease of ours
	opened bool  // at was read once
	at     State // what the caller knows, but for what stale says
	stale  bool  // somebody else wrote while the lease was not held
	unsure bool  // one append behind at may have come through
}

var _ session.Journal = (*journal)(nil)

func (j *journal) lease() Lease {
	return Lease{Session: j.at.Session, Epoch: j.at.Epoch, Owner: j.owner}
}

// wake takes the lease if it is not held.
func (j *journal) wake(ctx context.Context) error {
	if j.closed {
		return session.ErrClosed
	}
	if j.held {
		return nil
	}
	before := j.at
	came, err := j.hold(ctx, j.wait)
	if err != nil || !came {
		return err
	}
	// The caller was told that these lines are not there, and may have written
	// them again by now if there had been a way.
	to, l := j.at, j.lease()
	to.Size = before.Size
	err = j.store.do(context.WithoutCancel(ctx), "write", func(ctx context.Context) error {
		return j.store.db.Cut(ctx, l, to)
	})
	if err != nil {
		j.letGo()
		j.at, j.unsure = before, true
		return j.inUse(err)
	}
	to.Version++
	j.at = to
	return nil
}

// hold takes the lease and compares the session with what was known of it.
// came says that the one append that was unsure is there; at includes it then.
func (j *journal) hold(ctx context.Context, wait time.Duration) (came bool, err error) {
	st, err := j.acquire(ctx, wait)
	if err != nil {
		return false, err
	}
	before := j.at
	j.at, j.held = st, true
	came = j.unsure && st.Session == before.Session && st.Version == before.Version+1 && st.Own
	same := st.Version == before.Version && (st.Session == before.Session || st.Version == 0)
	if j.opened && !came && !same {
		j.stale = true
	}
	j.opened, j.unsure = true, false
	j.store.beats.add(j, j.lease())
	return came, nil
}

// Pauses between two looks at a lease that somebody else has.
const (
	firstPause = 10 * time.Millisecond
	mostPause  = 200 * time.Millisecond
)

func (j *journal) acquire(ctx context.Context, wait time.Duration) (st State, err error) {
	var limit <-chan time.Time
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		other := ""
		j.mayGet = true
		err := j.store.do(ctx, "lock", func(ctx context.Context) (err error) {
			st, other, err = j.store.db.Take(ctx, j.key, j.owner, j.describe(), j.store.c.Lease)
			return err
		})
		if err != nil || other == "" {
			return st, err
		}
		locked := &session.LockedError{ID: j.key.ID, Holder: other}
		if wait <= 0 {
			return st, locked
		}
		if limit == nil {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			limit = timer.C
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
			continue
		case <-limit:
			err = locked
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		next.Stop()
		return st, err
	}
}

func (j *journal) describe() string {
	return j.store.c.Holder + " since " + time.Now().UTC().Format(time.RFC3339)
}

// letGo forgets a lease that is lost.
func (j *journal) letGo() {
	j.held = false
	j.store.beats.remove(j)
}

// inUse is what a caller is told when a lease was lost.
func (j *journal) inUse(err error) error {
	if errors.Is(err, ErrFenced) {
		return &session.LockedError{ID: j.key.ID, Holder: "another process, which took it over"}
	}
	return err
}

// Append writes all lines in one transaction; see session.Journal.
func (j *journal) Append(ctx context.Context, lines [][]byte, sync bool) error {
	if err := session.CheckLines(lines); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.wake(ctx); err != nil {
		return err
	}
	if j.stale {
		return session.ErrChanged
	}
	if len(lines) == 0 && (!sync || j.at.Size == 0) {
		return nil
	}
	err := j.write(ctx, newLines(lines, sync))
	if err != nil && len(lines) == 0 && errors.As(err, new(*session.IOError)) {
		return &session.SyncError{Err: err}
	}
	return err
}

// write writes, and once more when the first try ended in a way that is mended
// by taking the lease anew.
func (j *journal) write(ctx context.Context, batch Lines) error {
	always := context.WithoutCancel(ctx) // a context never ends a write
	for try := 0; ; try++ {
		var st State
		err := j.store.do(always, "write", func(ctx context.Context) (err error) {
			st, err = j.store.db.Append(ctx, j.lease(), batch)
			return err
		})
		switch {
		case err == nil:
			j.at = st
			return nil
		case errors.Is(err, ErrFenced):
			j.letGo()
			if try > 0 {
				return j.inUse(err)
			}
			if _, err := j.hold(ctx, j.wait); err != nil {
				return err
			}
		case j.store.db.Unsure(err):
			// A new epoch: whatever is still on its way is refused from now on,
			// and what is there will stay.
			j.letGo()
			j.unsure = len(batch.Lines) > 0
			if try > 0 {
				return err
			}
			came, holdErr := j.hold(always, 0)
			if holdErr != nil {
				return err
			}
			if came {
				return nil
			}
		default:
			return err
		}
		if j.stale {
			return session.ErrChanged
		}
	}
}

// Load yields the lines; see session.Journal.
func (j *journal) Load(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		st, err := j.startLoad(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		if !j.store.lines(ctx, st, yield) {
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.held && j.at.Epoch == st.Epoch && j.at.Version == st.Version {
			j.stale = false
		}
	}
}

// startLoad makes sure that the lease is held and returns what is there.
func (j *journal) startLoad(ctx context.Context) (st State, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held && !j.closed {
		err := j.store.do(ctx, "read", func(ctx context.Context) (err error) {
			st, err = j.store.db.Check(ctx, j.lease())
			return err
		})
		if err == nil {
			j.at = st // others may have added lines (session.Keeper)
		}
		if !errors.Is(err, ErrFenced) {
			return j.at, err
		}
		j.letGo()
	}
	err = j.wake(ctx)
	return j.at, err
}

// Tail returns the last bytes; see session.Tailer.
func (j *journal) Tail(ctx context.Context, n int) ([]byte, error) {
	_, tail, err := j.store.Ends(ctx, session.Info{ID: j.key.ID, Project: j.key.Project}, n)
	return tail, err
}

// PutBlob stores an output beside the session; see session.Journal.
func (j *journal) PutBlob(ctx context.Context, name string, data []byte) (string, error) {
	if err := session.CheckBlobName(name); err != nil {
		return "", err
	}
	data = bytes.Clone(data)
	j.mu.Lock()
	defer j.mu.Unlock()
	for try := 0; ; try++ {
		if err := j.wake(ctx); err != nil {
			return "", err
		}
		err := j.store.do(context.WithoutCancel(ctx), "write", func(ctx context.Context) error {
			return j.store.db.PutBlob(ctx, j.lease(), name, data)
		})
		switch {
		case err == nil:
			return j.store.blobPath(j.key, name), nil
		case !errors.Is(err, ErrFenced):
			return "", err
		}
		j.letGo()
		if try > 0 {
			return "", j.inUse(err)
		}
	}
}

// releaseTime bounds giving a lease back; after it the lease runs out.
const releaseTime = 5 * time.Second

// Release gives the lease back; see session.Journal. Where the database does
// not answer it returns a *session.IOError and the lease runs out.
func (j *journal) Release() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.release()
}

func (j *journal) release() error {
	if j.held {
		j.letGo()
	}
	if !j.mayGet || !j.opened {
		return nil
	}
	j.mayGet = false
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	err := j.store.do(ctx, "unlock", func(ctx context.Context) error { return j.store.db.Give(ctx, j.lease()) })
	if errors.Is(err, context.DeadlineExceeded) {
		err = &session.IOError{Op: "unlock", Path: j.store.c.Place, Err: err}
	}
	return err
}

// Close releases for good.
func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	return j.release()
}
