package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/turnwright/turnwright/session"
)

// patience is how long a test waits for what must happen at once, on a machine
// that does much else.
const patience = 30 * time.Second

// testOddLines has lines that Append takes, for it does not look inside, and
// that Load then tells apart. Not a byte of them changes.
func testOddLines(t *testing.T, f *fixture) {
	odd := []string{
		`{"n":1}`,
		`{no json}`,
		"{\"nul\":\"\x00\"}",
		"{\"raw\":\"\xff\xfe\"}",
		"{\"return\":\"a\rb\"}",
		`{"separators":"` + "\u0085\u2028\u2029" + `"}`,
		`{"a":1}{"b":2}`,
		`{}`,
	}
	bad := map[int]bool{2: true, 3: true, 5: true, 7: true}
	j := f.open(t, uuid.NewString(), true)
	defer closeJournal(t, j)
	add(t, j, odd...)
	n := 0
	for line, err := range j.Load(f.ctx) {
		n++
		if n > len(odd) || string(line) != odd[n-1] {
			t.Fatalf("line %d is %q", n, line)
		}
		what, ok := errors.AsType[*session.LineError](err)
		if ok != bad[n] || err != nil && (!ok || what.Line != n) {
			t.Errorf("line %d: error %v", n, err)
		}
	}
	if n != len(odd) {
		t.Errorf("Load gives %d lines, want %d", n, len(odd))
	}
}

func testWriteIsNotCancelled(t *testing.T, f *fixture) {
	j := f.open(t, uuid.NewString(), true)
	defer closeJournal(t, j)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	for _, sync := range []bool{false, true} {
		if err := j.Append(ctx, split([]string{`{"n":1}`}), sync); err != nil {
			t.Errorf("Append with a cancelled context while the lock is held: %v", err)
		}
	}
	want(t, j, `{"n":1}`, `{"n":1}`)
}

// testCancelledWhileWaiting ends the wait for a lock, of Open and of a journal
// that was released.
func testCancelledWhileWaiting(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: f.dir, Create: true, Wait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer closeJournal(t, j)
	add(t, j, `{"n":1}`)
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	k := f.open(t, id, false)
	defer closeJournal(t, k)
	for name, wait := range map[string]func(context.Context) error{
		"Open": func(ctx context.Context) error {
			_, err := f.store.Open(ctx, id, session.OpenOptions{Dir: f.dir, Wait: time.Hour})
			return err
		},
		"Append":  func(ctx context.Context) error { return j.Append(ctx, split([]string{`{"lost":1}`}), true) },
		"PutBlob": func(ctx context.Context) error { _, err := j.PutBlob(ctx, "x", nil); return err },
		"Load": func(ctx context.Context) (last error) {
			for _, err := range j.Load(ctx) {
				last = err
			}
			return last
		},
	} {
		why := errors.New("enough of " + name)
		ctx, cancel := context.WithCancelCause(f.ctx)
		done := make(chan error, 1)
		go func() { done <- wait(ctx) }()
		cancel(why)
		select {
		case err := <-done:
			if !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
				t.Errorf("%s, cancelled while it waits: error %v", name, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s goes on waiting after it was cancelled", name)
		}
	}
	want(t, k, `{"n":1}`)
}

func testCancelledWhileLoading(t *testing.T, f *fixture) {
	j := f.open(t, uuid.NewString(), true)
	defer closeJournal(t, j)
	var lines []string
	for n := range 3000 {
		lines = append(lines, fmt.Sprintf(`{"n":%d,"pad":%q}`, n, strings.Repeat("x", 1000)))
	}
	add(t, j, lines...)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	var last error
	n := 0
	for _, last = range j.Load(ctx) {
		if n++; n == 2 {
			cancel()
		}
	}
	wantErr(t, "Load that is cancelled in the middle", last, context.Canceled)
	if n == len(lines) {
		t.Error("a cancelled Load went on to the end")
	}
	want(t, j, lines...)
}

// testWakesInPlaceOfAnother has a session that was made and released without a
// line, whose id somebody else used meanwhile.
func testWakesInPlaceOfAnother(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j := f.open(t, id, true)
	defer closeJournal(t, j)
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "open of a session without lines", f.openErr(id, false), session.ErrNotFound)
	k := f.open(t, id, true)
	add(t, k, `{"other":1}`)
	closeJournal(t, k)
	if err := j.Append(f.ctx, split([]string{`{"lost":1}`}), true); !errors.Is(err, session.ErrChanged) && !errors.Is(err, session.ErrExists) {
		t.Fatalf("Append to what is another session now: error %v, want session.ErrChanged or session.ErrExists", err)
	}
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	k = f.open(t, id, false)
	want(t, k, `{"other":1}`)
	closeJournal(t, k)
}

// testProjects keeps sessions of two directories apart, also with one id.
func testProjects(t *testing.T, f *fixture) {
	id, other := uuid.NewString(), t.TempDir()
	j := f.open(t, id, true)
	add(t, j, `{"here":1}`)
	closeJournal(t, j)
	_, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: other})
	wantErr(t, "open in another directory", err, session.ErrNotFound)
	k, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: other, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	add(t, k, `{"there":1}`)
	want(t, k, `{"there":1}`)
	closeJournal(t, k)
	j = f.open(t, id, false)
	want(t, j, `{"here":1}`)
	closeJournal(t, j)
}

// testLarge has many lines and a very long one.
func testLarge(t *testing.T, f *fixture) {
	lines, long := 40_000, 32<<20
	if testing.Short() {
		lines, long = 4_000, 4<<20
	}
	id := uuid.NewString()
	j := f.open(t, id, true)
	var batch []string
	for n := range lines {
		batch = append(batch, fmt.Sprintf(`{"n":%d,"pad":%q}`, n, strings.Repeat("x", n%300)))
		if len(batch) == 1000 {
			if err := j.Append(f.ctx, split(batch), false); err != nil {
				t.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	last := `{"long":"` + strings.Repeat("y", long) + `"}`
	add(t, j, last)
	closeJournal(t, j)
	j = f.open(t, id, false)
	defer closeJournal(t, j)
	n := 0
	for line, err := range j.Load(f.ctx) {
		switch {
		case err != nil:
			t.Fatal(err)
		case n < lines && !strings.HasPrefix(string(line), fmt.Sprintf(`{"n":%d,`, n)), n == lines && string(line) != last:
			t.Fatalf("line %d is %.40s", n, line)
		}
		n++
	}
	if n != lines+1 {
		t.Errorf("%d lines, want %d", n, lines+1)
	}
}

// finder skips a test of a store that is no session.Finder.
func finder(test func(*testing.T, *fixture, session.Finder)) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		found, ok := f.store.(session.Finder)
		if !ok {
			t.Skip("the store is no session.Finder")
		}
		test(t, f, found)
	}
}

// make makes a session in a directory.
func (f *fixture) make(t *testing.T, id, dir string, lines ...string) {
	t.Helper()
	j, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: dir, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	add(t, j, lines...)
	closeJournal(t, j)
}

const said = `{"type":"user","message":{"role":"user","content":"hello"}}`

func testFind(t *testing.T, f *fixture, find session.Finder) {
	id, far, twice, shadowed := uuid.NewString(), uuid.NewString(), uuid.NewString(), uuid.NewString()
	b, c := t.TempDir(), t.TempDir()
	f.make(t, id, f.dir, said)
	f.make(t, far, b, said, said)
	f.make(t, twice, b, said)
	f.make(t, twice, c, said)
	f.make(t, shadowed, f.dir, said)
	f.make(t, shadowed, b, said, said)

	for _, bad := range []string{"", "x", id[:35]} {
		_, err := find.Find(f.ctx, bad, f.dir)
		if _, ok := errors.AsType[*session.IDError](err); !ok {
			t.Errorf("Find(%q): error %v, want *session.IDError", bad, err)
		}
	}
	one := int64(len(said)) + 1
	for _, c := range []struct {
		what, id string
		size     int64
	}{
		{"of the directory", id, one},
		{"in upper case", strings.ToUpper(id), 2 * one}, // once more, with what the row before appended
		{"of another directory", far, 2 * one},
		{"of this and another directory", shadowed, one},
		{"of two other directories", twice, 0},
		{"of none", uuid.NewString(), 0},
	} {
		info, err := find.Find(f.ctx, c.id, f.dir)
		if c.size == 0 {
			wantErr(t, c.what, err, session.ErrNotFound)
			continue
		}
		if err != nil || info.ID != strings.ToLower(c.id) || info.Size != c.size || info.Modified.IsZero() {
			t.Errorf("%s: %+v, %v", c.what, info, err)
			continue
		}
		// What was found can be opened from here.
		j, err := f.store.Open(f.ctx, c.id, session.OpenOptions{Dir: f.dir, Project: info.Project})
		if err != nil {
			t.Errorf("%s: Open with the project %q: %v", c.what, info.Project, err)
			continue
		}
		add(t, j, said)
		closeJournal(t, j)
		if again, err := find.Find(f.ctx, c.id, f.dir); err != nil || again.Size != c.size+one || again.Project != info.Project {
			t.Errorf("%s: after an append %+v, %v", c.what, again, err)
		}
	}
}

func testList(t *testing.T, f *fixture, find session.Finder) {
	wantIDs := func(dir string, ids ...string) (list []session.Info) {
		t.Helper()
		list, err := find.List(f.ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range list {
			got = append(got, i.ID)
		}
		if strings.Join(got, " ") != strings.Join(ids, " ") {
			t.Fatalf("List(%q) gives\n%s\nwant\n%s", dir, strings.Join(got, "\n"), strings.Join(ids, "\n"))
		}
		return list
	}
	wantIDs("")
	wantIDs(f.dir)
	b := t.TempDir()
	one, two, three := uuid.NewString(), uuid.NewString(), uuid.NewString()
	f.make(t, one, f.dir, said)
	f.makeLater(t, find, two, b)
	f.makeLater(t, find, three, f.dir)
	empty := f.open(t, uuid.NewString(), true) // has no line: not listed
	defer closeJournal(t, empty)
	wantIDs("", three, two, one)
	wantIDs(b, two)
	wantIDs(f.dir, three, one)
	wantIDs(t.TempDir())
	// A session that is held is listed as it is, and the last change counts.
	j := f.open(t, one, false)
	defer closeJournal(t, j)
	f.appendUntil(t, find, j, f.newest(t, find))
	list := wantIDs(f.dir, one, three)
	if _, err := find.Find(f.ctx, one, f.dir); err != nil {
		t.Errorf("a session that is held: %v", err)
	}
	if list[0].Size <= int64(len(said))+1 || list[0].Size%(int64(len(said))+1) != 0 {
		t.Errorf("size %d", list[0].Size)
	}
}

// makeLater makes a session that is newer than all others, however coarse the
// store's clock is.
func (f *fixture) makeLater(t *testing.T, find session.Finder, id, dir string) {
	t.Helper()
	before := f.newest(t, find)
	f.make(t, id, dir, said)
	j, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer closeJournal(t, j)
	f.appendUntil(t, find, j, before)
}

// appendUntil appends until a session was changed after a time.
func (f *fixture) appendUntil(t *testing.T, find session.Finder, j session.Journal, before time.Time) {
	t.Helper()
	for limit := time.Now().Add(patience); !f.newest(t, find).After(before); {
		add(t, j, said)
		if time.Now().After(limit) {
			t.Fatal("appending does not change Info.Modified")
		}
	}
}

func (f *fixture) newest(t *testing.T, find session.Finder) time.Time {
	t.Helper()
	list, err := find.List(f.ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return time.Time{}
	}
	return list[0].Modified
}

func testRead(t *testing.T, f *fixture, find session.Finder) {
	id := uuid.NewString()
	lines := []string{`{"n":1}`, `{bad}`, `{"long":"` + strings.Repeat("z", 3<<20) + `"}`, `{"n":4}`}
	f.make(t, id, f.dir, lines...)
	j := f.open(t, id, false) // reading needs no lock
	defer closeJournal(t, j)
	info, err := find.Find(f.ctx, id, f.dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line, err := range find.Read(f.ctx, info) {
		if string(line) != lines[n] {
			t.Fatalf("line %d is %.40q", n+1, line)
		}
		n++
		if bad, ok := errors.AsType[*session.LineError](err); ok != (n == 2) || err != nil && (!ok || bad.Line != 2) {
			t.Errorf("line %d: error %v", n, err)
		}
	}
	if n != len(lines) {
		t.Errorf("%d lines, want %d", n, len(lines))
	}
	for range find.Read(f.ctx, info) {
		break
	}
	var last error
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	for _, last = range find.Read(ctx, info) {
	}
	wantErr(t, "Read with a cancelled context", last, context.Canceled)
	info.ID = uuid.NewString()
	for _, last = range find.Read(f.ctx, info) {
	}
	wantErr(t, "Read of nothing", last, session.ErrNotFound)
	_, _, err = find.Ends(f.ctx, info, 10)
	wantErr(t, "Ends of nothing", err, session.ErrNotFound)
}

func testEnds(t *testing.T, f *fixture, find session.Finder) {
	long := strings.Repeat("ä", 500)
	for name, lines := range map[string][]string{
		"one line":       {`{"n":1}`},
		"long ends":      {`{"a":"` + long + `"}`, `{}`, `{"b":"` + long + `"}`},
		"short lines":    {`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`, `{"n":5}`, `{"n":6}`},
		"long in middle": {`{"n":1}`, `{"a":"` + long + `"}`, `{"n":3}`},
	} {
		id := uuid.NewString()
		f.make(t, id, f.dir, lines...)
		info, err := find.Find(f.ctx, id, f.dir)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(lines, "\n") + "\n"
		for _, n := range []int{1, 2, 7, 8, 9, 16, 17, 30, 100, len(text) - 1, len(text), len(text) + 1, session.SummaryBytes} {
			n = max(n, 1)
			head, tail, err := find.Ends(f.ctx, info, n)
			most := min(n, len(text))
			if err != nil || string(head) != text[:most] || string(tail) != text[len(text)-most:] {
				t.Errorf("%s: the ends of %d bytes are\n%q\n%q (%v)\nwant\n%q\n%q", name, n, head, tail, err, text[:most], text[len(text)-most:])
			}
		}
	}
}

func testTail(t *testing.T, f *fixture) {
	id := uuid.NewString()
	j := f.open(t, id, true)
	defer closeJournal(t, j)
	tailer, ok := j.(session.Tailer)
	if !ok {
		t.Skip("the journals are no session.Tailer")
	}
	text := ""
	for n := range 20 {
		line := fmt.Sprintf(`{"n":%d,"pad":%q}`, n, strings.Repeat("x", n*n))
		add(t, j, line)
		text += line + "\n"
		for _, most := range []int{1, 10, 100, 100_000} {
			got, err := tailer.Tail(f.ctx, most)
			if want := text[max(0, len(text)-most):]; err != nil || string(got) != want {
				t.Fatalf("the last %d bytes are %q (%v), want %q", most, got, err, want)
			}
		}
	}
}

// RunPair tests two stores of one place, such as two processes have. The
// function returns both, empty; it is called once for each subtest.
func RunPair(t *testing.T, newStores func(t *testing.T) (a, b session.Store)) {
	for name, test := range map[string]func(*testing.T, *fixture, *fixture){
		"Locked":  pairLocked,
		"Changed": pairChanged,
		"Writers": pairWriters,
		"Reader":  pairReader,
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newStores(t)
			dir := t.TempDir()
			test(t, &fixture{store: a, dir: dir, ctx: t.Context()}, &fixture{store: b, dir: dir, ctx: t.Context()})
		})
	}
}

func pairLocked(t *testing.T, a, b *fixture) {
	id := uuid.NewString()
	j := a.open(t, id, true)
	wantLocked(t, "making a session that the other makes", b.openErr(id, true), id)
	add(t, j, `{"n":1}`)
	wantErr(t, "making a session that the other has", b.openErr(id, true), session.ErrExists)
	wantLocked(t, "opening a session that the other holds", b.openErr(id, false), id)
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	k := b.open(t, id, false)
	wantLocked(t, "appending to a session that the other took", j.Append(a.ctx, split([]string{`{"lost":1}`}), true), id)
	closeJournal(t, k)
	add(t, j, `{"n":2}`) // nobody wrote meanwhile
	want(t, j, `{"n":1}`, `{"n":2}`)
	closeJournal(t, j)
}

func pairChanged(t *testing.T, a, b *fixture) {
	id := uuid.NewString()
	j := a.open(t, id, true)
	add(t, j, `{"n":1}`)
	lines := []string{`{"n":1}`}
	for n := range 3 {
		if err := j.Release(); err != nil {
			t.Fatal(err)
		}
		k := b.open(t, id, false)
		line := fmt.Sprintf(`{"other":%d}`, n)
		add(t, k, line)
		lines = append(lines, line)
		closeJournal(t, k)
		wantErr(t, "appending after the other", j.Append(a.ctx, split([]string{`{"lost":1}`}), true), session.ErrChanged)
		want(t, j, lines...)
		line = fmt.Sprintf(`{"own":%d}`, n)
		add(t, j, line)
		lines = append(lines, line)
	}
	want(t, j, lines...)
	closeJournal(t, j)
}

// pairWriters lets both add to one session in turn, by waking and by opening.
func pairWriters(t *testing.T, a, b *fixture) {
	const rounds = 10
	id := uuid.NewString()
	j := a.open(t, id, true)
	add(t, j, `{"n":0}`)
	closeJournal(t, j)
	done := make(chan error, 4)
	for _, f := range []*fixture{a, b, a, b} {
		go func() { done <- f.addInTurn(id, rounds) }()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	j = b.open(t, id, false)
	defer closeJournal(t, j)
	got := load(t, j)
	for n, line := range got {
		if line != fmt.Sprintf(`{"n":%d}`, n) {
			t.Fatalf("line %d is %s: two writers had the session at once", n, line)
		}
	}
	if len(got) != 1+cap(done)*rounds {
		t.Errorf("%d lines, want %d", len(got), 1+cap(done)*rounds)
	}
}

// addInTurn opens a session once and then adds one line a round, with the number
// of lines that it saw.
func (f *fixture) addInTurn(id string, rounds int) error {
	j, err := f.store.Open(f.ctx, id, session.OpenOptions{Dir: f.dir, Wait: patience})
	if err != nil {
		return fmt.Errorf("Open: %w", err)
	}
	defer j.Close() //nolint:errcheck // lines count
	for range rounds {
		n := 0
		for _, err := range j.Load(f.ctx) {
			if err != nil {
				return fmt.Errorf("Load: %w", err)
			}
			n++
		}
		if err := j.Append(f.ctx, [][]byte{fmt.Appendf(nil, `{"n":%d}`, n)}, false); err != nil {
			return fmt.Errorf("Append: %w", err)
		}
		if err := j.Release(); err != nil {
			return fmt.Errorf("Release: %w", err)
		}
	}
	return nil
}

// pairReader reads what the other writes, without a lock, and never sees half
// of an append.
func pairReader(t *testing.T, a, b *fixture) {
	find, ok := b.store.(session.Finder)
	if !ok {
		t.Skip("the store is no session.Finder")
	}
	id := uuid.NewString()
	j := a.open(t, id, true)
	defer closeJournal(t, j)
	add(t, j, `{"n":0}`, `{"n":1}`)
	seen := 0
	for n := 1; n < 20; n++ {
		add(t, j, fmt.Sprintf(`{"n":%d}`, 2*n), fmt.Sprintf(`{"n":%d}`, 2*n+1))
		info, err := find.Find(b.ctx, id, b.dir)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for line, err := range find.Read(b.ctx, info) {
			if err != nil || string(line) != fmt.Sprintf(`{"n":%d}`, got) {
				t.Fatalf("line %d is %s (%v)", got, line, err)
			}
			got++
		}
		if got%2 != 0 || got < seen {
			t.Fatalf("%d lines after %d", got, seen)
		}
		seen = got
	}
	if seen != 40 {
		t.Errorf("the reader saw %d lines, want 40", seen)
	}
}
