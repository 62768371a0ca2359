package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/postgres"
)

// proxy stands between a store and the server, and fails where a test says.
type proxy struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	conns    map[net.Conn]bool
	down     bool
	mark     []byte // what the request that fails contains
	fault    fault
	late     func() // sends a request that was kept back
}

// fault is what becomes of the connection that carries the marked request.
type fault int

const (
	none      fault = iota
	noRequest       // nothing of it reaches the server
	half            // half of it does
	noAnswer        // it is done, but the answer is lost
	later           // the server gets it when the test says so
)

func newProxy(t *testing.T) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: u.Host, conns: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut(true)
		wg.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

// cut breaks all connections; with down there are no new ones.
func (p *proxy) cut(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) failOn(mark string, f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark, p.fault = []byte(mark), f
}

// strike returns the fault for a request, once.
func (p *proxy) strike(request []byte) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == none || !bytes.Contains(request, p.mark) {
		return none
	}
	f := p.fault
	p.fault = none
	return f
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // a test's
	back, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	keep := false
	defer func() {
		if !keep {
			_ = back.Close()
		}
	}()
	p.mu.Lock()
	if p.down {
		p.mu.Unlock()
		return
	}
	p.conns[client] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, client)
		p.mu.Unlock()
	}()
	var lost sync.Mutex // held while answers are not passed on
	answered := make(chan struct{}, 1)
	swallow := false
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := back.Read(buf)
			if n > 0 {
				lost.Lock()
				drop := swallow
				lost.Unlock()
				if drop {
					select {
					case answered <- struct{}{}:
					default:
					}
				} else if _, err := client.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				_ = client.Close()
				return
			}
		}
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		request := buf[:n]
		switch p.strike(request) {
		case noRequest:
			return
		case half:
			_, _ = back.Write(request[:n/2])
			return
		case noAnswer:
			lost.Lock()
			swallow = true
			lost.Unlock()
			_, _ = back.Write(request)
			<-answered
			return
		case later:
			keep = true
			request = bytes.Clone(request)
			lost.Lock()
			swallow = true
			lost.Unlock()
			p.mu.Lock()
			p.late = func() {
				_, _ = back.Write(request)
				<-answered
				_ = back.Close()
			}
			p.mu.Unlock()
			return
		}
		if _, err := back.Write(request); err != nil {
			return
		}
	}
}

func appendLine(j session.Journal, lines ...string) error {
	all := make([][]byte, len(lines))
	for i, l := range lines {
		all[i] = []byte(l)
	}
	return j.Append(context.Background(), all, true)
}

func wantLines(t *testing.T, j session.Journal, want ...string) {
	t.Helper()
	var got []string
	for line, err := range j.Load(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(line))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func wantIO(t *testing.T, err error, code string) {
	t.Helper()
	u, uerr := url.Parse(server(t))
	if uerr != nil {
		t.Fatal(uerr)
	}
	password, _ := u.User.Password()
	io, ok := errors.AsType[*session.IOError](err)
	if !ok || io.Code != code || !strings.HasPrefix(io.Path, "postgres://") || password != "" && strings.Contains(err.Error(), password) {
		t.Fatalf("error %v, want *session.IOError with code %q, without a password", err, code)
	}
}

// TestConnectionLost loses the connection at each point of an append, with a
// database that can be reached again at once and with one that cannot. Its lines
// are there once in the end, however often the caller has to ask.
func TestConnectionLost(t *testing.T) {
	for name, f := range map[string]fault{"no request": noRequest, "half a request": half, "no answer": noAnswer, "late request": later} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, down %v", name, down), func(t *testing.T) {
				p, url := newProxy(t)
				store := open(t, url, postgres.Config{Schema: newSchema(t), Lease: time.Hour})
				id := uuid.NewString()
				j, err := store.Open(t.Context(), id, session.OpenOptions{Dir: t.TempDir(), Create: true})
				if err != nil {
					t.Fatal(err)
				}
				defer j.Close() //nolint:errcheck // a test's
				if err := appendLine(j, `{"n":0}`); err != nil {
					t.Fatal(err)
				}
				p.failOn("torn", f)
				if down {
					p.mu.Lock()
					p.down = true // for new connections
					p.mu.Unlock()
				}
				torn := []string{`{"torn":1}`, `{"torn":2}`}
				err = appendLine(j, torn...)
				if down {
					wantIO(t, err, "")
					err = appendLine(j, torn...)
					wantIO(t, err, "")
					p.mu.Lock()
					p.down = false
					p.mu.Unlock()
					if f == later {
						p.late() // before anybody asks again
						p.late = nil
					}
					err = appendLine(j, torn...)
				}
				if err != nil {
					t.Fatal(err)
				}
				if p.late != nil {
					p.late() // behind the back of the new connection
				}
				wantLines(t, j, append([]string{`{"n":0}`}, torn...)...)
				if err := appendLine(j, `{"n":3}`); err != nil {
					t.Fatal(err)
				}
				wantLines(t, j, append([]string{`{"n":0}`}, append(torn, `{"n":3}`)...)...)
			})
		}
	}
}

// TestConnectionLostForGood ends with lines that were not acknowledged, as a
// crash does: all of an append or nothing.
func TestConnectionLostForGood(t *testing.T) {
	for name, c := range map[string]struct {
		fault fault
		lines int
	}{"no request": {noRequest, 1}, "half a request": {half, 1}, "no answer": {noAnswer, 3}} {
		t.Run(name, func(t *testing.T) {
			p, url := newProxy(t)
			schema, dir, id := newSchema(t), t.TempDir(), uuid.NewString()
			store := open(t, url, postgres.Config{Schema: schema, Lease: time.Hour})
			j, err := store.Open(t.Context(), id, session.OpenOptions{Dir: dir, Create: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := appendLine(j, `{"n":0}`); err != nil {
				t.Fatal(err)
			}
			p.failOn("torn", c.fault)
			p.mu.Lock()
			p.down = true
			p.mu.Unlock()
			wantIO(t, appendLine(j, `{"torn":1}`, `{"torn":2}`), "")
			var last error
			for _, last = range j.Load(t.Context()) {
			}
			wantIO(t, last, "")
			_, err = j.PutBlob(t.Context(), "x", nil)
			wantIO(t, err, "")
			_, err = store.Find(t.Context(), id, dir)
			wantIO(t, err, "")
			wantIO(t, j.Close(), "")

			other := open(t, server(t), postgres.Config{Schema: schema})
			info, err := other.Find(t.Context(), id, dir)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range other.Read(t.Context(), info) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != c.lines {
				t.Errorf("%d lines, want %d", n, c.lines)
			}
		})
	}
}

// run does with the tables what only a fault or another program does.
func run(t *testing.T, schema, sql string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), strings.ReplaceAll(sql, "{schema}", pgx.Identifier{schema}.Sanitize())); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestStatementTimeout has a server that gives up, and a store that does.
func TestStatementTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		more, code string
		c          postgres.Config
	}{
		"of the server": {"&statement_timeout=200", "57014", postgres.Config{}},
		"of a lock":     {"&lock_timeout=200", "55P03", postgres.Config{}},
		"of the store":  {"", "", postgres.Config{Timeout: 500 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			c.c.Schema, c.c.Lease = newSchema(t), time.Hour
			store := open(t, server(t)+c.more, c.c)
			j, err := store.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: t.TempDir(), Create: true})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close() //nolint:errcheck // a test's
			if err := appendLine(j, `{"n":1}`); err != nil {
				t.Fatal(err)
			}
			blocker := run(t, c.c.Schema, "begin; select from {schema}.sessions for update")
			wantIO(t, appendLine(j, `{"n":2}`, `{"n":3}`), c.code)
			wantIO(t, appendLine(j, `{"n":2}`, `{"n":3}`), c.code)
			if err := blocker.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := appendLine(j, `{"n":2}`, `{"n":3}`); err != nil {
				t.Fatal(err)
			}
			wantLines(t, j, `{"n":1}`, `{"n":2}`, `{"n":3}`)
		})
	}
}

// TestFailedStatement fails in the middle of the lines of an append, as a full
// disk does.
func TestFailedStatement(t *testing.T) {
	for errcode, code := range map[string]string{"53100": "ENOSPC", "25006": "EROFS", "XX001": "XX001"} {
		schema := newSchema(t)
		store := open(t, server(t), postgres.Config{Schema: schema})
		j, err := store.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: t.TempDir(), Create: true})
		if err != nil {
			t.Fatal(err)
		}
		run(t, schema, `create function {schema}.fail() returns trigger language plpgsql as
			$$ begin raise exception 'no space' using errcode = '`+errcode+`'; end $$;
			create trigger fail before insert on {schema}.lines for each row when (new.line = '{"fails":1}') execute function {schema}.fail()`)
		if err := appendLine(j, `{"n":1}`); err != nil {
			t.Fatal(err)
		}
		wantIO(t, appendLine(j, `{"n":2}`, `{"fails":1}`, `{"n":3}`), code)
		if err := appendLine(j, `{"n":2}`); err != nil {
			t.Fatal(err)
		}
		wantLines(t, j, `{"n":1}`, `{"n":2}`)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServerRestarts kills a server again and again under a writer that tries
// each append until it works.
func TestServerRestarts(t *testing.T) {
	server(t) // says whether there is PostgreSQL here
	if testing.Short() {
		t.Skip("starts a server of its own")
	}
	dir := t.TempDir()
	script, err := filepath.Abs("../../.ci/postgres")
	if err != nil {
		t.Fatal(err)
	}
	ctl := func(what string) string {
		t.Helper()
		cmd := exec.Command("bash", script, what, dir)
		// The machine goes on, so nothing is lost; recovery need not sync all files.
		cmd.Env = append(os.Environ(), "POSTGRES_OPTIONS=-c fsync=off")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
				t.Skip("needs the programs of a PostgreSQL server: " + stderr.String())
			}
			t.Fatalf("%s %s: %v\n%s", script, what, err, &stderr)
		}
		return strings.TrimSpace(string(out))
	}
	url := ctl("start")
	defer ctl("stop")
	store := open(t, url, postgres.Config{})
	j, err := store.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: t.TempDir(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() //nolint:errcheck // a test's
	const restarts = 2
	var want []string
	done := make(chan struct{})
	progress := make(chan struct{}, 1)
	go func() {
		defer close(done)
		for more := 20; more > 0; {
			line := fmt.Sprintf(`{"n":%d}`, len(want))
			for err := appendLine(j, line); err != nil; err = appendLine(j, line) {
				if _, ok := errors.AsType[*session.IOError](err); !ok {
					t.Errorf("while the server restarts: %v, want *session.IOError", err)
					return
				}
			}
			want = append(want, line)
			select {
			case _, open := <-progress:
				if !open {
					more--
				}
			default:
			}
		}
	}()
	for range restarts {
		progress <- struct{}{} // it is writing
		progress <- struct{}{}
		ctl("restart")
	}
	close(progress)
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the writer does not get on after the restarts")
	}
	wantLines(t, j, want...)
	if len(want) < 20 {
		t.Errorf("%d lines", len(want))
	}
}

// TestOneConnection has many sessions that run at once on one connection: none
// keeps it between two calls.
func TestOneConnection(t *testing.T) {
	store := open(t, server(t)+"&pool_max_conns=1", postgres.Config{Schema: newSchema(t), Timeout: patience})
	dir := t.TempDir()
	var all []session.Journal
	for range 20 {
		j, err := store.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: dir, Create: true})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close() //nolint:errcheck // a test's
		if err := appendLine(j, `{"n":1}`); err != nil {
			t.Fatal(err)
		}
		all = append(all, j)
	}
	var wg sync.WaitGroup
	for _, j := range all {
		wg.Go(func() {
			for _, err := range j.Load(t.Context()) {
				if err != nil {
					t.Error(err)
				}
				if err := appendLine(j, `{"n":2}`); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, j := range all {
		wantLines(t, j, `{"n":1}`, `{"n":2}`)
	}
}

// TestClockSetBack has a lease of somebody who is dead, from before the server's
// clock was set back.
func TestClockSetBack(t *testing.T) {
	schema, dir, id := newSchema(t), t.TempDir(), uuid.NewString()
	dead := open(t, server(t), postgres.Config{Schema: schema, Lease: 200 * time.Millisecond})
	j, err := dead.Open(t.Context(), id, session.OpenOptions{Dir: dir, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := appendLine(j, `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, schema, "update {schema}.sessions set expires = expires + interval '1 day'")
	store := open(t, server(t), postgres.Config{Schema: schema})
	k, err := store.Open(t.Context(), id, session.OpenOptions{Dir: dir, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, k, `{"n":1}`)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpenErrors names what is wrong with a connection or a Config.
func TestOpenErrors(t *testing.T) {
	good := server(t)
	for name, c := range map[string]struct {
		url  string
		c    postgres.Config
		want string
	}{
		"no connection string": {"postgres://x:secret@h:notaport/", postgres.Config{}, "connection"},
		"long schema":          {good, postgres.Config{Schema: strings.Repeat("x", 64)}, "Config.Schema"},
		"short lease":          {good, postgres.Config{Lease: time.Millisecond}, "Config.Lease"},
		"negative timeout":     {good, postgres.Config{Timeout: -1}, "Config.Timeout"},
	} {
		_, err := postgres.Open(t.Context(), c.url, c.c)
		if bad, ok := errors.AsType[*session.OptionError](err); !ok || bad.Field != c.want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want *session.OptionError for %s", name, err, c.want)
		}
	}
	u, err := url.Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("turnwright", "wrong secret")
	_, err = postgres.Open(t.Context(), u.String(), postgres.Config{})
	wantIO(t, err, "28P01")
	if strings.Contains(err.Error(), "wrong secret") {
		t.Errorf("the password stands in %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := postgres.Open(ctx, good, postgres.Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

// TestMigrate opens one schema many times at once, and one of a later version.
func TestMigrate(t *testing.T) {
	schema := newSchema(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), server(t), postgres.Config{Schema: schema})
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	wg.Wait()
	run(t, schema, "insert into {schema}.migrations (number) values (1000)")
	_, err := postgres.Open(t.Context(), server(t), postgres.Config{Schema: schema})
	wantIO(t, err, "")
	if !strings.Contains(err.Error(), "newer version") {
		t.Errorf("error %v", err)
	}
}

// TestRights works as a user who may only what docs/stores.md says.
func TestRights(t *testing.T) {
	schema := newSchema(t)
	_ = open(t, server(t), postgres.Config{Schema: schema})
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	_, grants, _ := strings.Cut(string(page), "```sql\n")
	grants, _, ok := strings.Cut(grants, "```")
	if !ok || !strings.Contains(grants, "grant") {
		t.Fatal("docs/stores.md does not say which rights a user needs")
	}
	role := "agent_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	grants = strings.NewReplacer("turnwright", "{schema}", "agent", role).Replace(grants)
	run(t, schema, "create role "+role+" login password 'x'; "+grants)
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), server(t))
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background()) //nolint:errcheck // a test's
		if _, err := conn.Exec(context.Background(), "drop owned by "+role+"; drop role "+role); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "x")
	store := open(t, u.String(), postgres.Config{Schema: schema})
	j, err := store.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: t.TempDir(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := appendLine(j, `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	if _, err := j.PutBlob(t.Context(), "b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	wantLines(t, j, `{"n":1}`)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
