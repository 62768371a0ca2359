package leased

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turnwright/turnwright/session"
)

// fake is a database in memory, with the clock of the test.
type fake struct {
	mu     sync.Mutex
	rows   map[Key]*row
	next   int64
	renews int
	fail   func(op string) error // before an operation
	lose   func(op string) error // after it: the answer is lost
}

type row struct {
	State
	owner, holder, writer string
	expires               time.Time
	lines                 [][]byte
	blobs                 map[string][]byte
	modified              time.Time
	spoken                bool
}

var errLost = errors.New("the connection is lost")

func newFake() *fake { return &fake{rows: map[Key]*row{}} }

// do runs an operation as one transaction.
func (f *fake) do(ctx context.Context, op string, run func() error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		if err := f.fail(op); err != nil {
			return err
		}
	}
	if err := run(); err != nil {
		return err
	}
	if f.lose != nil {
		return f.lose(op)
	}
	return nil
}

func (f *fake) row(number int64) *row {
	for _, r := range f.rows {
		if r.Session == number {
			return r
		}
	}
	return nil
}

// held runs something with the row if the lease holds.
func (f *fake) held(ctx context.Context, op string, l Lease, run func(*row) error) error {
	return f.do(ctx, op, func() error {
		r := f.row(l.Session)
		if r == nil || r.owner != l.Owner || r.Epoch != l.Epoch {
			return ErrFenced
		}
		return run(r)
	})
}

func (f *fake) Look(ctx context.Context, k Key) (s State, holder string, err error) {
	err = f.do(ctx, "look", func() error {
		r := f.rows[k]
		if r == nil {
			return ErrNone
		}
		if s = r.State; r.owner != "" && time.Now().Before(r.expires) {
			holder = r.holder
		}
		return nil
	})
	return s, holder, err
}

func (f *fake) Take(ctx context.Context, k Key, owner, holder string, length time.Duration) (s State, other string, err error) {
	err = f.do(ctx, "take", func() error {
		r := f.rows[k]
		if r == nil {
			f.next++
			r = &row{State: State{Session: f.next}, blobs: map[string][]byte{}}
			f.rows[k] = r
		}
		if r.owner != "" && r.owner != owner && time.Now().Before(r.expires) {
			other = r.holder
			return nil
		}
		r.Epoch++
		r.owner, r.holder, r.expires = owner, holder, time.Now().Add(length)
		s = r.State
		s.Own = r.writer == owner
		return nil
	})
	return s, other, err
}

func (f *fake) Renew(ctx context.Context, all []Lease) error {
	return f.do(ctx, "renew", func() error {
		f.renews++
		for _, l := range all {
			if r := f.row(l.Session); r != nil && r.owner == l.Owner {
				r.expires = time.Now().Add(DefaultLease)
			}
		}
		return nil
	})
}

func (f *fake) Give(ctx context.Context, l Lease) error {
	return f.do(ctx, "give", func() error {
		for k, r := range f.rows {
			if r.Session == l.Session && r.owner == l.Owner {
				r.owner = ""
				if r.Size == 0 && len(r.blobs) == 0 {
					delete(f.rows, k)
				}
			}
		}
		return nil
	})
}

func (f *fake) Check(ctx context.Context, l Lease) (s State, err error) {
	err = f.held(ctx, "check", l, func(r *row) error { s = r.State; return nil })
	return s, err
}

func (r *row) add(lines Lines) {
	for _, line := range lines.Lines {
		r.lines = append(r.lines, bytes.Clone(line))
	}
	r.Version++
	r.Size += lines.Size
	r.modified, r.spoken = time.Now(), r.spoken || lines.Spoken
}

func (f *fake) Append(ctx context.Context, l Lease, lines Lines) (s State, err error) {
	err = f.held(ctx, "append", l, func(r *row) error {
		if len(lines.Lines) > 0 {
			r.add(lines)
			r.writer = l.Owner
		}
		s = r.State
		return nil
	})
	return s, err
}

func (f *fake) Add(ctx context.Context, k Key, lines Lines) error {
	return f.do(ctx, "add", func() error {
		r := f.rows[k]
		if r == nil || r.Size == 0 {
			return ErrNone
		}
		r.add(lines)
		r.writer = ""
		return nil
	})
}

func (f *fake) Delete(ctx context.Context, k Key) error {
	return f.do(ctx, "delete", func() error {
		r := f.rows[k]
		if r == nil || r.Size == 0 {
			return ErrNone
		}
		if r.owner == "" {
			delete(f.rows, k)
			return nil
		}
		r.lines, r.blobs, r.Size, r.writer = nil, map[string][]byte{}, 0, ""
		r.Version++
		return nil
	})
}

func (f *fake) Cut(ctx context.Context, l Lease, at State) error {
	return f.held(ctx, "cut", l, func(r *row) error {
		if r.Version != at.Version {
			return ErrFenced
		}
		r.Version++
		for r.Size > at.Size {
			last := len(r.lines) - 1
			r.Size -= int64(len(r.lines[last])) + 1
			r.lines = r.lines[:last]
		}
		return nil
	})
}

func (f *fake) PutBlob(ctx context.Context, l Lease, name string, data []byte) error {
	return f.held(ctx, "blob", l, func(r *row) error { r.blobs[name] = data; return nil })
}

func (f *fake) Blob(ctx context.Context, k Key, name string) (data []byte, err error) {
	err = f.do(ctx, "read", func() error {
		r := f.rows[k]
		if r == nil || r.blobs[name] == nil {
			return ErrNone
		}
		data = r.blobs[name]
		return nil
	})
	return data, err
}

func (f *fake) Read(ctx context.Context, number, from, to int64) (part [][]byte, err error) {
	err = f.do(ctx, "read", func() error {
		r := f.row(number)
		if r == nil {
			return nil
		}
		at := int64(0)
		for _, line := range r.lines {
			if at >= from && at < to {
				part = append(part, bytes.Clone(line))
			}
			at += int64(len(line)) + 1
		}
		return nil
	})
	return part, err
}

func (f *fake) Ends(ctx context.Context, k Key, n int64) (head, tail []byte, err error) {
	err = f.do(ctx, "read", func() error {
		r := f.rows[k]
		if r == nil || r.Size == 0 {
			return ErrNone
		}
		text := append(bytes.Join(r.lines, []byte("\n")), '\n')
		n = min(n, r.Size)
		head, tail = text[:n], text[r.Size-n:]
		return nil
	})
	return head, tail, err
}

func (f *fake) List(ctx context.Context, id string, projects []string) (all []Found, err error) {
	err = f.do(ctx, "read", func() error {
		for k, r := range f.rows {
			near := projects == nil
			for _, p := range projects {
				near = near || p == k.Project
			}
			if near && r.Size > 0 && (id == "" || id == k.ID) {
				all = append(all, Found{Info: session.Info{ID: k.ID, Project: k.Project, Modified: r.modified, Size: r.Size}, Spoken: r.spoken})
			}
		}
		return nil
	})
	return all, err
}

func (f *fake) Code(error) string     { return "" }
func (f *fake) Unsure(err error) bool { return errors.Is(err, errLost) }
func (f *fake) Close() error          { return nil }
