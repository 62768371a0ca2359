//go:build unix

package leasetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/turnwright/turnwright/session"
)

// Open opens the store at a place, under a name for this process, with leases of
// a length.
type Open func(ctx context.Context, place, holder string, lease time.Duration) (session.Store, error)

const childVar = "TURNWRIGHT_TEST_HOLDER"

// Main is TestMain: in a process that a test started it serves that test.
func Main(m *testing.M, open Open) {
	if os.Getenv(childVar) == "" {
		os.Exit(m.Run())
	}
	if err := serve(open, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// request is what a test tells a process to do, one a line.
type request struct {
	Op, Place, ID, Dir, Line string
	Lease, Wait              time.Duration
	Create                   bool
	N                        int
}

// reply is how it went: Kind is "ok", "locked", "changed" or "other".
type reply struct {
	Kind, Text string
	N          int
}

func answer(n int, err error) reply {
	r := reply{Kind: "ok", N: n}
	if err == nil {
		return r
	}
	r.Kind, r.Text = "other", err.Error()
	if _, ok := errors.AsType[*session.LockedError](err); ok {
		r.Kind = "locked"
	} else if errors.Is(err, session.ErrChanged) {
		r.Kind = "changed"
	}
	return r
}

func serve(open Open, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	var store session.Store
	var j session.Journal
	requests, replies := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n, err := 0, error(nil)
		switch r.Op {
		case "store":
			store, err = open(ctx, r.Place, os.Getenv(childVar), r.Lease)
		case "open":
			j, err = store.Open(ctx, r.ID, session.OpenOptions{Dir: r.Dir, Create: r.Create, Wait: r.Wait})
		case "append":
			err = j.Append(ctx, [][]byte{[]byte(r.Line)}, true)
		case "append until it fails":
			for ; err == nil; n++ {
				err = j.Append(ctx, [][]byte{fmt.Appendf(nil, `{"child":%d}`, n)}, true)
				if n == r.N {
					_ = replies.Encode(reply{Kind: "running"})
				}
			}
			n-- // the last one failed
		case "close":
			err = j.Close()
		case "add in turn":
			n, err = addInTurn(ctx, store, r)
		}
		if err := replies.Encode(answer(n, err)); err != nil {
			return err
		}
	}
}

// addInTurn opens the session again and again, and adds a line with the number
// of lines that it saw.
func addInTurn(ctx context.Context, store session.Store, r request) (locked int, err error) {
	for n := 0; n < r.N; {
		j, err := store.Open(ctx, r.ID, session.OpenOptions{Dir: r.Dir, Wait: r.Wait})
		if err != nil {
			return locked, err
		}
		lines := 0
		for _, err := range j.Load(ctx) {
			if err != nil {
				return locked, err
			}
			lines++
		}
		switch err := j.Append(ctx, [][]byte{fmt.Appendf(nil, `{"n":%d}`, lines)}, true); {
		case err == nil:
			n++
		case answer(0, err).Kind != "other":
			locked++ // the machine was so slow that the lease ran out: nothing was written
		default:
			return locked, err
		}
		if err := j.Close(); err != nil {
			return locked, err
		}
	}
	return locked, nil
}

// process is a child.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies *json.Decoder
}

func start(t *testing.T, holder, place string, lease time.Duration) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVar+"="+holder)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p := &process{t: t, cmd: cmd, in: in, replies: json.NewDecoder(bufio.NewReader(out))}
	p.must(request{Op: "store", Place: place, Lease: lease})
	return p
}

func (p *process) send(r request) {
	p.t.Helper()
	if err := json.NewEncoder(p.in).Encode(r); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) receive() (r reply) {
	p.t.Helper()
	if err := p.replies.Decode(&r); err != nil {
		p.t.Fatalf("the other process: %v", err)
	}
	return r
}

func (p *process) do(r request) reply {
	p.t.Helper()
	p.send(r)
	return p.receive()
}

func (p *process) must(r request) {
	p.t.Helper()
	if got := p.do(r); got.Kind != "ok" {
		p.t.Fatalf("%s in the other process: %+v", r.Op, got)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

const (
	shortLease = time.Second
	patience   = time.Minute
)

// Run runs the tests; place makes a place for each.
func Run(t *testing.T, open Open, place func(*testing.T) string) {
	t.Run("TwoWriters", func(t *testing.T) { twoWriters(t, open, place(t)) })
	t.Run("Killed", func(t *testing.T) { killed(t, open, place(t)) })
}

func openHere(t *testing.T, open Open, place string, lease time.Duration) session.Store {
	t.Helper()
	store, err := open(t.Context(), place, "this test", lease)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := store.(io.Closer); ok {
		t.Cleanup(func() { _ = c.Close() })
	}
	return store
}

func lines(t *testing.T, j session.Journal) (all []string) {
	t.Helper()
	for line, err := range j.Load(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(line))
	}
	return all
}

// twoWriters lets two processes of different machines add to one session.
func twoWriters(t *testing.T, open Open, place string) {
	const rounds = 25
	id, dir := uuid.NewString(), t.TempDir()
	a := start(t, "process 1 on host build-1", place, 0)
	b := start(t, "process 1 on host build-2", place, 0) // the same pid
	a.must(request{Op: "open", ID: id, Dir: dir, Create: true})
	a.must(request{Op: "append", Line: `{"n":0}`})
	if got := b.do(request{Op: "open", ID: id, Dir: dir}); got.Kind != "locked" || !strings.Contains(got.Text, "process 1 on host build-1 since ") {
		t.Errorf("opening what the other holds: %+v", got)
	}
	a.must(request{Op: "close"})
	for _, p := range []*process{a, b} {
		p.send(request{Op: "add in turn", ID: id, Dir: dir, Wait: patience, N: rounds})
	}
	for _, p := range []*process{a, b} {
		if got := p.receive(); got.Kind != "ok" {
			t.Errorf("%+v", got)
		}
	}
	j, err := openHere(t, open, place, 0).Open(t.Context(), id, session.OpenOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() //nolint:errcheck // a test's
	got := lines(t, j)
	for n, line := range got {
		if line != fmt.Sprintf(`{"n":%d}`, n) {
			t.Fatalf("line %d is %s: two processes had the session at once", n, line)
		}
	}
	if len(got) != 2*rounds+1 {
		t.Errorf("%d lines, want %d", len(got), 2*rounds+1)
	}
}

// Paused stops a process, as a debugger or a laptop that is closed does; somebody
// else takes over, and the first one goes on. With expire nil the process is in
// the middle of its appends and its lease runs out. Where a process that is
// stopped in the middle of a write stops all others, it is stopped between two
// writes, and expire ends the lease.
func Paused(t *testing.T, open Open, place string, expire func(*testing.T)) {
	id, dir := uuid.NewString(), t.TempDir()
	lease := shortLease
	if expire != nil {
		lease = time.Hour // it is not renewed in the time of a test
	}
	p := start(t, "paused", place, lease)
	p.must(request{Op: "open", ID: id, Dir: dir, Create: true})
	acknowledged := 0
	if expire == nil {
		p.send(request{Op: "append until it fails", N: 5})
		if got := p.receive(); got.Kind != "running" {
			t.Fatalf("%+v", got)
		}
	} else {
		for ; acknowledged < 3; acknowledged++ {
			p.must(request{Op: "append", Line: fmt.Sprintf(`{"child":%d}`, acknowledged)})
		}
	}
	p.signal(syscall.SIGSTOP)
	if expire != nil {
		expire(t)
	}
	j, err := openHere(t, open, place, lease).Open(t.Context(), id, session.OpenOptions{Dir: dir, Wait: patience})
	if err != nil {
		t.Fatalf("taking over from a process that is paused: %v", err)
	}
	defer j.Close() //nolint:errcheck // a test's
	before := lines(t, j)
	if err := j.Append(t.Context(), [][]byte{[]byte(`{"taken":1}`)}, true); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGCONT)
	if expire != nil {
		p.send(request{Op: "append", Line: `{"lost":1}`})
	}
	got := p.receive()
	if got.Kind != "locked" && got.Kind != "changed" {
		t.Errorf("an append after the pause: %+v, want *LockedError or ErrChanged", got)
	}
	for n, line := range before {
		if line != fmt.Sprintf(`{"child":%d}`, n) {
			t.Fatalf("line %d is %s", n, line)
		}
	}
	// The one that was under way may have come through without its answer.
	if n := len(before); n < acknowledged+got.N || n > acknowledged+got.N+1 {
		t.Errorf("%d lines were acknowledged, %d are there", acknowledged+got.N, n)
	}
	if after := lines(t, j); len(after) != len(before)+1 || after[len(before)] != `{"taken":1}` {
		t.Errorf("the paused process wrote: %q", after[len(before):])
	}
	if got := p.do(request{Op: "append", Line: `{"lost":1}`}); got.Kind != "locked" && got.Kind != "changed" {
		t.Errorf("once more: %+v", got)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := p.do(request{Op: "append", Line: `{"lost":1}`}); got.Kind != "changed" {
		t.Errorf("when the session is free again: %+v, want ErrChanged", got)
	}
}

// killed kills a holder; everything that it was told is there.
func killed(t *testing.T, open Open, place string) {
	id, dir := uuid.NewString(), t.TempDir()
	p := start(t, "killed", place, shortLease)
	p.must(request{Op: "open", ID: id, Dir: dir, Create: true})
	p.send(request{Op: "append until it fails", N: 20})
	if got := p.receive(); got.Kind != "running" {
		t.Fatalf("%+v", got)
	}
	p.signal(syscall.SIGKILL)
	j, err := openHere(t, open, place, shortLease).Open(t.Context(), id, session.OpenOptions{Dir: dir, Wait: patience})
	if err != nil {
		t.Fatalf("taking over from a process that was killed: %v", err)
	}
	defer j.Close() //nolint:errcheck // a test's
	got := lines(t, j)
	if len(got) < 21 {
		t.Errorf("%d lines, at least 21 were acknowledged", len(got))
	}
	for n, line := range got {
		if line != fmt.Sprintf(`{"child":%d}`, n) {
			t.Fatalf("line %d is %s", n, line)
		}
	}
	if err := j.Append(t.Context(), [][]byte{[]byte(`{"next":1}`)}, true); err != nil {
		t.Error(err)
	}
}
