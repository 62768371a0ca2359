package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/internal/leased"
)

// Config says how sessions are kept. The zero value is fine.
type Config struct {
	// Schema is where the tables are. It is made when it is missing. Empty:
	// "turnwright".
	Schema string
	// Project keeps all sessions under this name. Empty: under the working
	// directory that they belong to, so that programs on several machines find
	// each other's sessions where the directories have the same path.
	Project string
	// Lease is how long a process that gives no sign of life keeps a session:
	// after it another one may take it over. A holder gives a sign four times
	// as often. Zero: 4 s. At least 100 ms.
	Lease time.Duration
	// Timeout bounds one operation of the database, waiting for a connection
	// included. Zero: 30 s.
	Timeout time.Duration
	// Holder is what others are told while this process holds a session. Empty:
	// "process PID on host NAME".
	Holder string
}

// Store keeps sessions in a database. It implements session.Store and
// session.Keeper, and is safe for concurrent use. A session that is released or
// closed holds no connection; the connections of the pool are the store's.
type Store struct{ s *leased.Store }

var (
	_ session.Store  = (*Store)(nil)
	_ session.Keeper = (*Store)(nil)
)

// Open connects to the database that the connection string names (a URL or
// "host=… dbname=…", with the pool's settings of pgxpool, such as
// pool_max_conns), makes or updates the tables, and returns the store. An error
// is a *session.OptionError for a field of Config or the connection string, or a
// *session.IOError.
func Open(ctx context.Context, connection string, c Config) (*Store, error) {
	pc, err := pgxpool.ParseConfig(connection)
	if err != nil {
		// The error of the parser has the password left out.
		return nil, &session.OptionError{Field: "connection", Value: "…", Reason: "is no connection string: " + err.Error()}
	}
	if c.Schema == "" {
		c.Schema = "turnwright"
	}
	if err := checkSchema(c.Schema); err != nil {
		return nil, err
	}
	lc := leased.Config{
		Project: c.Project, Lease: c.Lease, Timeout: c.Timeout, Holder: c.Holder,
		Place: fmt.Sprintf("postgres://%s/%s/%s", hostPort(pc.ConnConfig.Host, pc.ConnConfig.Port), pc.ConnConfig.Database, c.Schema),
	}
	if err := lc.Check(); err != nil {
		return nil, err
	}
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = lc.Timeout
	}
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = "turnwright"
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, &session.OptionError{Field: "connection", Value: "…", Reason: err.Error()}
	}
	d := newDB(pool, c.Schema)
	limited, cancel := context.WithTimeout(ctx, lc.Timeout)
	defer cancel()
	if err := d.migrate(limited); err != nil {
		pool.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &session.IOError{Op: "open", Path: lc.Place, Code: d.Code(err), Err: err}
	}
	return &Store{leased.New(d, lc)}, nil
}

// checkSchema bounds the name to what PostgreSQL keeps.
func checkSchema(name string) error {
	const most = 63
	if len(name) > most || strings.ContainsRune(name, 0) {
		return &session.OptionError{Field: "Config.Schema", Value: name, Reason: "must have at most " + strconv.Itoa(most) + " bytes, and no NUL character"}
	}
	return nil
}

func hostPort(host string, port uint16) string {
	if strings.HasPrefix(host, "/") {
		return host[1:] + ":" + strconv.Itoa(int(port)) // a socket's directory
	}
	return host + ":" + strconv.Itoa(int(port))
}

// Close closes the connections. Sessions that are still held are free for
// others when their leases run out.
func (s *Store) Close() error { return s.s.Close() }

// Open opens a session; see session.Store. The session is looked for in the
// project of o.Dir only, or in o.Project.
func (s *Store) Open(ctx context.Context, id string, o session.OpenOptions) (session.Journal, error) {
	return s.s.Open(ctx, id, o)
}

// Find looks a session up; see session.Finder.
func (s *Store) Find(ctx context.Context, id, dir string) (session.Info, error) {
	return s.s.Find(ctx, id, dir)
}

// List returns sessions; see session.Finder.
func (s *Store) List(ctx context.Context, dir string) ([]session.Info, error) {
	return s.s.List(ctx, dir)
}

// Read yields a session's lines; see session.Finder.
func (s *Store) Read(ctx context.Context, i session.Info) iter.Seq2[[]byte, error] {
	return s.s.Read(ctx, i)
}

// Ends returns a session's beginning and end; see session.Finder.
func (s *Store) Ends(ctx context.Context, i session.Info, n int) (head, tail []byte, err error) {
	return s.s.Ends(ctx, i, n)
}

// Projects returns names of projects; see session.Keeper.
func (s *Store) Projects(ctx context.Context, dir string, worktrees bool) ([]string, error) {
	return s.s.Projects(ctx, dir, worktrees)
}

// Stat tells of one session; see session.Keeper.
func (s *Store) Stat(ctx context.Context, project, id string) (session.Info, error) {
	return s.s.Stat(ctx, project, id)
}

// Add appends lines without the session's lease; see session.Keeper.
func (s *Store) Add(ctx context.Context, i session.Info, lines [][]byte) error {
	return s.s.Add(ctx, i, lines)
}

// Delete removes a session with its lines and blobs; see session.Keeper.
func (s *Store) Delete(ctx context.Context, i session.Info) error { return s.s.Delete(ctx, i) }

// Blob returns a large output by the place that the session's lines name. The
// error is session.ErrNotFound when there is none, a *session.OptionError for a
// text that names no place in this database.
func (s *Store) Blob(ctx context.Context, place string) ([]byte, error) { return s.s.Blob(ctx, place) }

var errNewer = errors.New("the tables were made by a newer version of this program")
