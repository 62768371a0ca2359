package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/session"
)

// Run tests a store. The function returns an empty store; it is called once
// for each subtest, and registers its own cleaning up with t.
func Run(t *testing.T, newStore func(t *testing.T) session.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *fixture)
	}{
		{"IDs", testIDs},
		{"CreateAndOpen", testCreateAndOpen},
		{"NothingWritten", testNothingWritten},
		{"Lines", testLines},
		{"BadLines", testBadLines},
		{"EmptyAppend", testEmptyAppend},
		{"LoadWhileAppending", testLoadWhileAppending},
		{"LoadStops", testLoadStops},
		{"CallerKeepsBytes", testCallerKeepsBytes},
		{"Locked", testLocked},
		{"WaitForLock", testWaitForLock},
		{"WaitIsCancelled", testWaitIsCancelled},
		{"ReleaseAndWake", testReleaseAndWake},
		{"Changed", testChanged},
		{"TakenOver", testTakenOver},
		{"Closed", testClosed},
		{"Blobs", testBlobs},
		{"BlobNames", testBlobNames},
		{"ManySessions", testManySessions},
		{"OneWriter", testOneWriter},
		{"History", testHistory},
		{"Keep", testKeep},
		{"OddLines", testOddLines},
		{"WriteIsNotCancelled", testWriteIsNotCancelled},
		{"CancelledWhileWaiting", testCancelledWhileWaiting},
		{"CancelledWhileLoading", testCancelledWhileLoading},
		{"WakesInPlaceOfAnother", testWakesInPlaceOfAnother},
		{"Projects", testProjects},
		{"Large", testLarge},
		{"Find", finder(testFind)},
		{"List", finder(testList)},
		{"Read", finder(testRead)},
		{"Ends", finder(testEnds)},
		{"Tail", testTail},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, &fixture{store: newStore(t), dir: t.TempDir(), ctx: t.Context()})
		})
	}
}

type fixture struct {
	store session.Store
	dir   string
	ctx   context.Context
}

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func (f *fixture) open(t failer, id string, create bool) session.Journal {
	t.Helper()
	j, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: f.dir, Create: create})
	if err != nil {
		t.Fatalf("Open(%s, create %v): %v", id, create, err)
	}
	return j
}

func (f *fixture) openErr(id string, create bool) error {
	j, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: f.dir, Create: create})
	if err == nil {
		_ = j.Close()
	}
	return err
}

func add(t failer, j session.Journal, lines ...string) {
	t.Helper()
	if err := j.Append(context.Background(), split(lines), true); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

func closeJournal(t failer, j session.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func split(lines []string) [][]byte {
	out := make([][]byte, len(lines))
	for i, l := range lines {
		out[i] = []byte(l)
	}
	return out
}

func load(t failer, j session.Journal) []string {
	t.Helper()
	var got []string
	for line, err := range j.Load(context.Background()) {
		if err != nil {
			t.Fatalf("Load: %v", err)
		}
		got = append(got, string(line))
	}
	return got
}

func want(t failer, j session.Journal, lines ...string) {
	t.Helper()
	got := load(t, j)
	if strings.Join(got, "\n") != strings.Join(lines, "\n") || len(got) != len(lines) {
		t.Fatalf("Load gives %d lines\n%.500q\nwant %d\n%.500q", len(got), got, len(lines), lines)
	}
}

func wantErr(t failer, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: error %v, want %v", what, got, want)
	}
}

func wantLocked(t failer, what string, got error, id string) {
	t.Helper()
	locked, ok := errors.AsType[*session.LockedError](got)
	if !ok {
		t.Fatalf("%s: error %v, want *session.LockedError", what, got)
	}
	if locked.ID != id || locked.Holder == "" {
		t.Fatalf("%s: LockedError{ID: %q, Holder: %q} does not name session %s and a holder", what, locked.ID, locked.Holder, id)
	}
}

func testIDs(t *testing.T, f *fixture) {
	good := uuid.NewString()
	for _, id := range []string{
		"", "x", "../x", "../../etc/passwd", good[:35], good + "0", strings.ReplaceAll(good, "-", ""),
		"{" + good[:34] + "}", "urn:uuid:" + good, good[:8] + "/" + good[9:], good[:35] + "g", good[:35] + "\x00",
		good[:35] + "é",
	} {
		for _, create := range []bool{true, false} {
			err := f.openErr(id, create)
			if _, ok := errors.AsType[*session.IDError](err); !ok {
				t.Errorf("Open(%q, create %v): error %v, want *session.IDError", id, create, err)
			}
		}
	}
	j := f.open(t, strings.ToUpper(good), true)
	add(t, j, `{"n":1}`)
	closeJournal(t, j)
	j = f.open(t, good, false)
	want(t, j, `{"n":1}`)
	closeJournal(t, j)
}

func testCreateAndOpen(t *testing.T, f *fixture) {
	id := uuid.NewString()
	wantErr(t, "open of nothing", f.openErr(id, false), session.ErrNotFound)
	j := f.open(t, id, true)
	add(t, j, `{"n":1}`)
	closeJournal(t, j)
	wantErr(t, "creating again", f.openErr(id, true), session.ErrExists)
	j = f.open(t, id, false)
	want(t, j, `{"n":1}`)
	add(t, j, `{"n":2}`)
	want(t, j, `{"n":1}`, `{"n":2}`)
	closeJournal(t, j)
}

func testNothingWritten(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j := f.open(t, id, true)
	want(t, j)
	closeJournal(t, j)
	wantErr(t, "open of a session without lines", f.openErr(id, false), session.ErrNotFound)
	j = f.open(t, id, true)
	add(t, j, `{}`)
	closeJournal(t, j)
}

func testLines(t *testing.T, f *fixture) {
	lines := []string{
		`{}`,
		`{"text":"äöü 🎉 \u2028"}`,
		`{"a":{"b":["\n","\\",null,1e9]}}`,
		`{ "spaced" : true }`,
		`{"long":"` + strings.Repeat("x", 3<<20) + `"}`,
		`{"after":"the long one"}`,
	}
	for n := 1; n < 200; n++ {
		lines = append(lines, fmt.Sprintf(`{"n":%d,"pad":%q}`, n, strings.Repeat("é", n*7)))
	}
	id := uuid.NewString()
	j := f.open(t, id, true)
	add(t, j, lines[:4]...)
	for _, line := range lines[4:] {
		add(t, j, line)
	}
	want(t, j, lines...)
	closeJournal(t, j)
	j = f.open(t, id, false)
	want(t, j, lines...)
	closeJournal(t, j)
}

func testBadLines(t *testing.T, f *fixture) {
	j := f.open(t, uuid.NewString(), true)
	defer closeJournal(t, j)
	add(t, j, `{"n":1}`)
	for _, bad := range []string{"", "x", "1", "[]", "{\n}", "{}\n", " {}", "{", "{\"a\":1}\n{\"b\":2}"} {
		err := j.Append(f.ctx, split([]string{`{"good":1}`, bad}), false)
		if _, ok := errors.AsType[*session.OptionError](err); !ok {
			t.Errorf("Append(%q): error %v, want *session.OptionError", bad, err)
		}
	}
	want(t, j, `{"n":1}`)
}

func testEmptyAppend(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j := f.open(t, id, true)
	add(t, j)
	closeJournal(t, j)
	wantErr(t, "open after an append of nothing", f.openErr(id, false), session.ErrNotFound)
	j = f.open(t, id, true)
	if err := j.Append(f.ctx, split([]string{`{"n":1}`}), false); err != nil {
		t.Fatal(err)
	}
	add(t, j) // makes the line before durable
	want(t, j, `{"n":1}`)
	closeJournal(t, j)
}

func testLoadWhileAppending(t *testing.T, f *fixture) {
	j := f.open(t, uuid.NewString(), true)
	defer closeJournal(t, j)
	add(t, j, `{"n":1}`, `{"n":2}`)
	n := 0
	for _, err := range j.Load(f.ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1 {
			add(t, j, `{"n":3}`)
		}
	}
	if n < 2 {
		t.Errorf("Load yields %d lines, want those from before at least", n)
	}
	add(t, j, `{"n":4}`)
	want(t, j, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`)
}

func testLoadStops(t *testing.T, f *fixture) {
	j := f.open(t, uuid.NewString(), true)
	defer closeJournal(t, j)
	add(t, j, `{"n":1}`, `{"n":2}`)
	for range j.Load(f.ctx) {
		break
	}
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	var last error
	for _, err := range j.Load(ctx) {
		last = err
	}
	wantErr(t, "Load with a cancelled context", last, context.Canceled)
	want(t, j, `{"n":1}`, `{"n":2}`)
}

func testCallerKeepsBytes(t *testing.T, f *fixture) {
	j := f.open(t, uuid.NewString(), true)
	defer closeJournal(t, j)
	line := []byte(`{"n":1}`)
	if err := j.Append(f.ctx, [][]byte{line, []byte(`{"n":2}`)}, false); err != nil {
		t.Fatal(err)
	}
	copy(line, "xxxxxxx")
	var kept [][]byte
	for line, err := range j.Load(f.ctx) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, line)
	}
	for _, line := range kept {
		_ = append(line, "grown into the next"...)
	}
	if got := string(bytes.Join(kept, []byte("|"))); got != `{"n":1}|{"n":2}` {
		t.Errorf("lines kept by the caller are now %s", got)
	}
	want(t, j, `{"n":1}`, `{"n":2}`)
}

func testLocked(t *testing.T, f *fixture) {
	id, other := uuid.NewString(), uuid.NewString()
	j := f.open(t, id, true)
	wantLocked(t, "creating a session that is being made", f.openErr(id, true), id)
	add(t, j, `{"n":1}`)
	wantLocked(t, "opening a session that is held", f.openErr(id, false), id)
	k := f.open(t, other, true)
	add(t, k, `{"other":1}`)
	closeJournal(t, k)
	closeJournal(t, j)
	j = f.open(t, id, false)
	closeJournal(t, j)
}

func testWaitForLock(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j := f.open(t, id, true)
	add(t, j, `{"n":1}`)
	done := make(chan error)
	go func() {
		k, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: f.dir, Wait: time.Minute})
		if err == nil {
			err = k.Append(f.ctx, split([]string{`{"n":2}`}), false)
			_ = k.Close()
		}
		done <- err
	}()
	closeJournal(t, j)
	if err := <-done; err != nil {
		t.Fatalf("waiting for the lock: %v", err)
	}
	j = f.open(t, id, false)
	want(t, j, `{"n":1}`, `{"n":2}`)
	closeJournal(t, j)
}

func testWaitIsCancelled(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j := f.open(t, id, true)
	defer closeJournal(t, j)
	add(t, j, `{"n":1}`)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.store.Open(ctx, id, session.OpenOptions{Dir: f.dir, Wait: time.Hour})
	wantErr(t, "waiting with a cancelled context", err, context.Canceled)
}

func testReleaseAndWake(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j := f.open(t, id, true)
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	add(t, j, `{"n":1}`)
	for range 3 {
		if err := j.Release(); err != nil {
			t.Fatal(err)
		}
	}
	add(t, j, `{"n":2}`)
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	want(t, j, `{"n":1}`, `{"n":2}`)
	closeJournal(t, j)
}

func testChanged(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j := f.open(t, id, true)
	add(t, j, `{"n":1}`)
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	k := f.open(t, id, false)
	add(t, k, `{"n":2}`)
	closeJournal(t, k)
	for range 2 {
		wantErr(t, "Append after a change", j.Append(f.ctx, split([]string{`{"lost":1}`}), true), session.ErrChanged)
	}
	for range j.Load(f.ctx) {
		break // not to the end
	}
	wantErr(t, "Append after half a Load", j.Append(f.ctx, split([]string{`{"lost":1}`}), true), session.ErrChanged)
	want(t, j, `{"n":1}`, `{"n":2}`)
	add(t, j, `{"n":3}`)
	want(t, j, `{"n":1}`, `{"n":2}`, `{"n":3}`)
	closeJournal(t, j)
}

func testTakenOver(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j := f.open(t, id, true)
	add(t, j, `{"n":1}`)
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	k := f.open(t, id, false)
	wantLocked(t, "Append to a session that was taken over", j.Append(f.ctx, split([]string{`{"lost":1}`}), true), id)
	var last error
	for _, err := range j.Load(f.ctx) {
		last = err
	}
	wantLocked(t, "Load of a session that was taken over", last, id)
	_, err := j.PutBlob(f.ctx, "x", nil)
	wantLocked(t, "PutBlob to a session that was taken over", err, id)
	closeJournal(t, j)
	want(t, k, `{"n":1}`)
	closeJournal(t, k)
}

func testClosed(t *testing.T, f *fixture) {
	j := f.open(t, uuid.NewString(), true)
	add(t, j, `{"n":1}`)
	closeJournal(t, j)
	closeJournal(t, j)
	if err := j.Release(); err != nil {
		t.Errorf("Release after Close: %v", err)
	}
	wantErr(t, "Append", j.Append(f.ctx, split([]string{`{}`}), false), session.ErrClosed)
	_, err := j.PutBlob(f.ctx, "x", nil)
	wantErr(t, "PutBlob", err, session.ErrClosed)
	var last error
	for _, err := range j.Load(f.ctx) {
		last = err
	}
	wantErr(t, "Load", last, session.ErrClosed)
}

func testBlobs(t *testing.T, f *fixture) {
	j := f.open(t, uuid.NewString(), true)
	defer closeJournal(t, j)
	add(t, j, `{"n":1}`)
	where := map[string]string{}
	for name, data := range map[string]string{"toolu_1.txt": "one", "toolu_2": strings.Repeat("x", 1<<20), "empty": ""} {
		at, err := j.PutBlob(f.ctx, name, []byte(data))
		if err != nil {
			t.Fatalf("PutBlob(%s): %v", name, err)
		}
		if where[at] != "" || !strings.Contains(at, name) {
			t.Errorf("PutBlob(%s) returns %q", name, at)
		}
		where[at] = name
		checkBlob(t, f, at, data)
	}
	at, err := j.PutBlob(f.ctx, "toolu_1.txt", []byte("again"))
	if err != nil {
		t.Fatal(err)
	}
	checkBlob(t, f, at, "again")
	add(t, j, `{"n":2}`)
	want(t, j, `{"n":1}`, `{"n":2}`)
}

// checkBlob reads a blob where the store makes that possible: through a method
// Blob(ctx, path) ([]byte, error) or Blob(path) ([]byte, bool), or as a file.
func checkBlob(t *testing.T, f *fixture, at, data string) {
	t.Helper()
	got, ok := []byte(nil), false
	if b, has := f.store.(interface {
		Blob(path string) ([]byte, bool)
	}); has {
		got, ok = b.Blob(at)
	} else if b, has := f.store.(interface {
		Blob(ctx context.Context, path string) ([]byte, error)
	}); has {
		var err error
		got, err = b.Blob(f.ctx, at)
		ok = err == nil
	} else if filepath.IsAbs(at) {
		var err error
		got, err = os.ReadFile(at)
		ok = err == nil
	} else {
		return
	}
	if !ok || string(got) != data {
		t.Errorf("blob %s is %.40q (there: %v), want %.40q", at, got, ok, data)
	}
}

func testBlobNames(t *testing.T, f *fixture) {
	j := f.open(t, uuid.NewString(), true)
	defer closeJournal(t, j)
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "/etc/passwd", "a\x00b", "c:x", strings.Repeat("x", 300)} {
		_, err := j.PutBlob(f.ctx, name, []byte("x"))
		if _, ok := errors.AsType[*session.OptionError](err); !ok {
			t.Errorf("PutBlob(%q): error %v, want *session.OptionError", name, err)
		}
	}
}

// testManySessions has more sessions open than a process may have files, if
// its limit is the usual one, and lets them write at once.
func testManySessions(t *testing.T, f *fixture) {
	const sessions, rounds = 300, 4
	var wg sync.WaitGroup
	for range sessions {
		wg.Go(func() {
			id := uuid.NewString()
			j, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: f.dir, Create: true})
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			defer j.Close() //nolint:errcheck // lines count
			for n := range rounds {
				if err := j.Append(f.ctx, [][]byte{fmt.Appendf(nil, `{"id":%q,"n":%d}`, id, n)}, false); err != nil {
					t.Errorf("Append: %v", err)
					return
				}
			}
			n := 0
			for line, err := range j.Load(f.ctx) {
				if err != nil || !bytes.Contains(line, []byte(id)) {
					t.Errorf("session %s has the line %s (%v)", id, line, err)
				}
				n++
			}
			if n != rounds {
				t.Errorf("session %s has %d lines, want %d", id, n, rounds)
			}
		})
	}
	wg.Wait()
}

// testOneWriter lets several goroutines add to one session, each opening it
// anew; the lock keeps them apart.
func testOneWriter(t *testing.T, f *fixture) {
	const writers, rounds = 4, 5
	id := uuid.NewString()
	j := f.open(t, id, true)
	add(t, j, `{"n":0}`)
	closeJournal(t, j)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range rounds {
				j, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: f.dir, Wait: time.Minute})
				if err != nil {
					t.Errorf("Open: %v", err)
					return
				}
				n := 0
				for range j.Load(f.ctx) {
					n++
				}
				if err := j.Append(f.ctx, [][]byte{fmt.Appendf(nil, `{"n":%d}`, n)}, false); err != nil {
					t.Errorf("Append: %v", err)
				}
				_ = j.Close()
			}
		})
	}
	wg.Wait()
	j = f.open(t, id, false)
	defer closeJournal(t, j)
	for n, line := range load(t, j) {
		if line != fmt.Sprintf(`{"n":%d}`, n) {
			t.Fatalf("line %d is %s: two writers had the session at once", n, line)
		}
	}
}

// testHistory runs random histories and compares with a list of lines.
func testHistory(t *testing.T, f *fixture) {
	rapid.Check(t, func(t *rapid.T) {
		id := uuid.NewString()
		var model []string
		j := f.open(t, id, true)
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				lines := rapid.SliceOfN(rapid.StringMatching(`\{"[a-zé🎉]*":"[ -!#-\[\]-~]{0,40}"\}`), 0, 5).Draw(t, "lines")
				if err := j.Append(f.ctx, split(lines), rapid.IntRange(0, 9).Draw(t, "sync") == 9); err != nil {
					t.Fatalf("Append: %v", err)
				}
				model = append(model, lines...)
			},
			"release": func(t *rapid.T) {
				if err := j.Release(); err != nil {
					t.Fatalf("Release: %v", err)
				}
			},
			"reopen": func(t *rapid.T) {
				closeJournal(t, j)
				j = f.open(t, id, len(model) == 0)
			},
			"blob": func(t *rapid.T) {
				if _, err := j.PutBlob(f.ctx, "b", []byte("data")); err != nil {
					t.Fatalf("PutBlob: %v", err)
				}
			},
			"": func(t *rapid.T) { want(t, j, model...) },
		})
		closeJournal(t, j)
	})
}
