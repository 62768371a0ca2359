package leased

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/internal/place"
	"github.com/turnwright/turnwright/session/storetest"
)

func newStore(t *testing.T, db DB, holder string) *Store {
	t.Helper()
	c := Config{Holder: holder, Place: "fake"}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return New(db, c)
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) session.Store { return newStore(t, newFake(), "") })
}

func TestStorePair(t *testing.T) {
	storetest.RunPair(t, func(t *testing.T) (a, b session.Store) {
		db := newFake()
		return newStore(t, db, "a"), newStore(t, db, "b")
	})
}

var dir = place.Canonical(os.TempDir())

func open(t *testing.T, s *Store, id string, create bool, wait time.Duration) session.Journal {
	t.Helper()
	j, err := s.Open(t.Context(), id, session.OpenOptions{Dir: dir, Create: create, Wait: wait})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func appendLines(j session.Journal, lines ...string) error {
	all := make([][]byte, len(lines))
	for i, l := range lines {
		all[i] = []byte(l)
	}
	return j.Append(context.Background(), all, true)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantLines(t *testing.T, j session.Journal, want ...string) {
	t.Helper()
	var got []string
	for line, err := range j.Load(t.Context()) {
		must(t, err)
		got = append(got, string(line))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("lines %q, want %q", got, want)
	}
}

func locked(err error) bool {
	_, ok := errors.AsType[*session.LockedError](err)
	return ok
}

// TestRenewal counts the signs of life: none but while a session is held. The
// bubble ends only when no goroutine and no timer is left.
func TestRenewal(t *testing.T) {
	conform.Covers(t, "S-27")
	synctest.Test(t, func(t *testing.T) {
		db := newFake()
		s, other := newStore(t, db, "a"), newStore(t, db, "b")
		id := uuid.NewString()
		j := open(t, s, id, true, 0)
		must(t, appendLines(j, `{"n":1}`))
		k := open(t, s, uuid.NewString(), true, 0)
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := int(time.Hour / (DefaultLease / renewals)); db.renews < want-1 || db.renews > want {
			t.Errorf("%d renewals in an hour of two sessions, want %d", db.renews, want)
		}
		if _, err := other.Open(t.Context(), id, session.OpenOptions{Dir: dir}); !locked(err) {
			t.Errorf("a session that is held for an hour: error %v", err)
		}
		must(t, j.Release())
		must(t, k.Release())
		db.renews = 0
		time.Sleep(time.Hour)
		if db.renews != 0 {
			t.Errorf("%d renewals while no session is held", db.renews)
		}
		l := open(t, other, id, false, 0)
		must(t, l.Close())
		must(t, appendLines(j, `{"n":2}`))
		time.Sleep(time.Minute)
		synctest.Wait()
		if db.renews == 0 {
			t.Error("a session that woke is not renewed")
		}
		must(t, j.Close())
		must(t, k.Close())
	})
}

// TestTakeover has a holder that the database does not hear any more.
func TestTakeover(t *testing.T) {
	conform.Covers(t, "S-27")
	synctest.Test(t, func(t *testing.T) {
		db := newFake()
		s, other := newStore(t, db, "a"), newStore(t, db, "b")
		id := uuid.NewString()
		j := open(t, s, id, true, 0)
		defer j.Close() //nolint:errcheck // it lost the session
		must(t, appendLines(j, `{"n":1}`))
		cut := time.Now()
		db.mu.Lock()
		db.fail = func(op string) error {
			if op == "renew" {
				return errLost
			}
			return nil
		}
		db.mu.Unlock()
		// Who waits as long as a run does gets it (S-27).
		k := open(t, other, id, false, 5*time.Second)
		if took := time.Since(cut); took < DefaultLease || took > DefaultLease+mostPause {
			t.Errorf("taken over after %v, want %v", took, DefaultLease)
		}
		if err := appendLines(j, `{"lost":1}`); !locked(err) {
			t.Errorf("an append of who lost the session: %v", err)
		}
		must(t, appendLines(k, `{"n":2}`))
		must(t, k.Close())
		if err := appendLines(j, `{"lost":1}`); !errors.Is(err, session.ErrChanged) {
			t.Errorf("an append behind somebody else's: %v", err)
		}
		wantLines(t, j, `{"n":1}`, `{"n":2}`)
		must(t, appendLines(j, `{"n":3}`))
		wantLines(t, j, `{"n":1}`, `{"n":2}`, `{"n":3}`)
	})
}

// TestRanOut has a lease that ran out without anybody taking it: nothing is
// lost.
func TestRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFake()
		j := open(t, newStore(t, db, "a"), uuid.NewString(), true, 0)
		must(t, appendLines(j, `{"n":1}`))
		db.mu.Lock()
		db.fail = func(op string) error {
			if op == "renew" {
				return errLost
			}
			return nil
		}
		db.mu.Unlock()
		time.Sleep(time.Hour)
		must(t, appendLines(j, `{"n":2}`))
		wantLines(t, j, `{"n":1}`, `{"n":2}`)
		must(t, j.Close())
	})
}

// TestStoreClosed ends a store under a session that is held: no goroutine stays.
func TestStoreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFake()
		s := newStore(t, db, "a")
		j := open(t, s, uuid.NewString(), true, 0)
		must(t, s.Close())
		must(t, appendLines(j, `{"n":1}`)) // the fake does not mind
		time.Sleep(time.Hour)
		if db.renews != 0 {
			t.Errorf("%d renewals by a store that is closed", db.renews)
		}
	})
}

// TestWait waits exactly as long as it was told, and not at all after its
// context ends.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFake()
		s, other := newStore(t, db, "process 7 on host x"), newStore(t, db, "b")
		id := uuid.NewString()
		began := time.Now()
		j := open(t, s, id, true, 0)
		must(t, appendLines(j, `{"n":1}`))
		_, err := other.Open(t.Context(), id, session.OpenOptions{Dir: dir, Wait: 5 * time.Second})
		want := "process 7 on host x since " + began.UTC().Format(time.RFC3339)
		if took := time.Since(began); !locked(err) || took != 5*time.Second || !strings.Contains(err.Error(), want) {
			t.Errorf("after %v: error %v, want %q", took, err, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Millisecond)
		defer cancel()
		began = time.Now()
		_, err = other.Open(ctx, id, session.OpenOptions{Dir: dir, Wait: time.Hour})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute+time.Millisecond {
			t.Errorf("cancelled after %v: error %v", took, err)
		}
		must(t, j.Close())
	})
}

// TestLostAnswers loses the answer, or the request, of every operation in turn.
// In the end each append is there once.
func TestLostAnswers(t *testing.T) {
	for _, op := range []string{"take", "append", "cut", "check", "give"} {
		for _, after := range []bool{false, true} {
			for times := 1; times <= 3; times++ {
				db := newFake()
				s := newStore(t, db, "a")
				j := open(t, s, uuid.NewString(), true, 0)
				must(t, appendLines(j, `{"n":1}`))
				left := times
				lose := func(now string) error {
					if now != op && (op != "cut" || now != "take") || left == 0 {
						return nil
					}
					left--
					return errLost
				}
				if after {
					db.lose = lose
				} else {
					db.fail = lose
				}
				if op == "cut" || op == "take" {
					lost := false
					db.lose = func(now string) error { // so that there is something to be unsure of
						if now == "append" && !lost {
							lost = true
							return errLost
						}
						if after {
							return lose(now)
						}
						return nil
					}
				}
				tries := 0
				err := appendLines(j, `{"n":2}`)
				for ; err != nil && tries < 10; tries++ {
					if errors.Is(err, session.ErrChanged) {
						// Nobody but us wrote; the caller reads and sees what is there.
						n := 0
						for range j.Load(t.Context()) {
							n++
						}
						if n == 2 {
							break
						}
					} else if _, ok := errors.AsType[*session.IOError](err); !ok {
						t.Fatalf("%s lost %d times, after it %v: %v", op, times, after, err)
					}
					err = appendLines(j, `{"n":2}`)
				}
				db.fail, db.lose = nil, nil
				wantLines(t, j, `{"n":1}`, `{"n":2}`)
				must(t, j.Release())
				must(t, appendLines(j, `{"n":3}`))
				wantLines(t, j, `{"n":1}`, `{"n":2}`, `{"n":3}`)
				must(t, j.Close())
			}
		}
	}
}

// TestTwiceUnsure loses an append, or only its answer, and then the session: what
// came through is seen by reading, and nothing is cut that is somebody else's.
func TestTwiceUnsure(t *testing.T) {
	for _, came := range []bool{true, false} {
		db := newFake()
		s, other := newStore(t, db, "a"), newStore(t, db, "b")
		id := uuid.NewString()
		j := open(t, s, id, true, 0)
		must(t, appendLines(j, `{"n":1}`))
		down := false
		db.fail = func(op string) error {
			if down || op == "append" && !came {
				down = true
				return errLost
			}
			return nil
		}
		db.lose = func(op string) error {
			if op == "append" {
				down = true
				return errLost
			}
			return nil
		}
		if _, ok := errors.AsType[*session.IOError](appendLines(j, `{"n":2}`)); !ok {
			t.Fatal("an append whose answer is lost succeeds while nothing can be asked")
		}
		db.fail, db.lose = nil, nil
		db.rows[Key{Project: dir, ID: id}].expires = time.Now() // it is taken for dead
		k := open(t, other, id, false, 0)
		want := []string{`{"n":1}`}
		if came {
			want = append(want, `{"n":2}`)
		}
		wantLines(t, k, want...)
		must(t, appendLines(k, `{"other":1}`))
		want = append(want, `{"other":1}`)
		must(t, k.Close())
		if err := appendLines(j, `{"n":2}`); !errors.Is(err, session.ErrChanged) {
			t.Errorf("error %v, want ErrChanged", err)
		}
		wantLines(t, j, want...)
		must(t, j.Close())
	}
}

// TestAddedMeanwhile has a line that was added without a lease where an append
// was lost: it is not taken for that append.
func TestAddedMeanwhile(t *testing.T) {
	db := newFake()
	s := newStore(t, db, "a")
	id := uuid.NewString()
	j := open(t, s, id, true, 0)
	must(t, appendLines(j, `{"n":1}`))
	down := false
	db.fail = func(op string) error {
		if down = down || op == "append"; down {
			return errLost
		}
		return nil
	}
	if _, ok := errors.AsType[*session.IOError](appendLines(j, `{"n":2}`)); !ok {
		t.Fatal("an append that is lost succeeds")
	}
	db.fail = nil
	must(t, s.Add(t.Context(), session.Info{Project: dir, ID: id}, [][]byte{[]byte(`{"type":"tag"}`)}))
	if err := appendLines(j, `{"n":2}`); !errors.Is(err, session.ErrChanged) {
		t.Errorf("error %v, want ErrChanged", err)
	}
	wantLines(t, j, `{"n":1}`, `{"type":"tag"}`)
	must(t, appendLines(j, `{"n":2}`))
	wantLines(t, j, `{"n":1}`, `{"type":"tag"}`, `{"n":2}`)
	must(t, j.Close())
}

// TestProject makes a session where a copy belongs, not where its directory says.
func TestProject(t *testing.T) {
	s := newStore(t, newFake(), "a")
	j, err := s.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: dir, Project: "elsewhere", Create: true})
	must(t, err)
	must(t, appendLines(j, `{"n":1}`))
	must(t, j.Close())
	list, err := s.List(t.Context(), "")
	must(t, err)
	if len(list) != 1 || list[0].Project != "elsewhere" {
		t.Errorf("%+v", list)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []Config{{Lease: -1}, {Lease: time.Millisecond}, {Timeout: -1}, {Holder: "a\x00"}, {Project: "a\x00"}} {
		if _, ok := errors.AsType[*session.OptionError](c.Check()); !ok {
			t.Errorf("%+v passes", c)
		}
	}
}
