package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/turnwright/turnwright/session/internal/leased"
)

// db says what the store needs in SQL. SQLite has one writer at a time, so the
// process has one connection for writing, and its writers wait for it in turn
// instead of asking the file again and again.
type db struct{ write, read *sql.DB }

const (
	readers  = 4
	idleTime = 30 * time.Second
)

func newDB(path string, timeout time.Duration) (*db, error) {
	name := filepath.ToSlash(path)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // a drive of Windows
	}
	open := func(more string) (*sql.DB, error) {
		return sql.Open("sqlite", "file:"+(&url.URL{Path: name}).EscapedPath()+
			"?_pragma=busy_timeout("+strconv.FormatInt(timeout.Milliseconds(), 10)+")&_pragma=foreign_keys(1)"+more)
	}
	write, err := open("&_txlock=immediate&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	read, err := open("&_pragma=query_only(1)")
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	write.SetConnMaxIdleTime(idleTime)
	read.SetConnMaxIdleTime(idleTime)
	return &db{write: write, read: read}, nil
}

func (d *db) Close() error { return errors.Join(d.read.Close(), d.write.Close()) }

//go:embed migrations/*.sql
var files embed.FS

// migrations are run in order; how many have run is the file's user_version. A
// released one never changes.
var migrations = []string{"migrations/1.sql"}

// application marks the file as ours, for file(1) and against mistakes.
const application = 0x5477_7774

func (d *db) migrate(ctx context.Context) error {
	return d.update(ctx, true, func(tx *sql.Tx) error {
		var have, app int
		if err := tx.QueryRowContext(ctx, "select user_version, application_id from pragma_user_version, pragma_application_id").Scan(&have, &app); err != nil {
			return err
		}
		switch {
		case app != application && (app != 0 || have != 0):
			return errors.New("this is the database of another program")
		case have > len(migrations):
			return fmt.Errorf("the tables were made by a newer version of this program (their version is %d, this one knows %d)", have, len(migrations))
		}
		for ; have < len(migrations); have++ {
			text, err := files.ReadFile(migrations[have])
			if err != nil {
				return err
			}
			text = fmt.Appendf(text, "\npragma application_id = %d; pragma user_version = %d;", application, have+1)
			if _, err := tx.ExecContext(ctx, string(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// commitError is a failed commit: what it left is looked at.
type commitError struct{ error }

func (e commitError) Unwrap() error { return e.error }

// update runs a transaction. With sync it is durable when update returns, and
// with it all before it, for they are in one log.
func (d *db) update(ctx context.Context, sync bool, f func(*sql.Tx) error) error {
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	how := "pragma synchronous = normal"
	if sync {
		how = "pragma synchronous = full"
	}
	if _, err := conn.ExecContext(ctx, how); err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, notDone(tx.Rollback()))
	}
	if err := tx.Commit(); err != nil {
		return commitError{errors.Join(err, notDone(tx.Rollback()))}
	}
	return nil
}

func notDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// fenced runs a statement that touches the session's row only if the lease
// holds.
func fenced(ctx context.Context, tx *sql.Tx, stmt string, args ...any) error {
	r, err := tx.ExecContext(ctx, stmt, args...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, leased.ErrFenced)
	}
	return nil
}

const (
	now   = "cast(unixepoch('now', 'subsec') * 1000 as integer)"
	state = "number, epoch, version, size, coalesce(writer = owner, 0)"
)

func scanState(row *sql.Row) (s leased.State, err error) {
	err = row.Scan(&s.Session, &s.Epoch, &s.Version, &s.Size, &s.Own)
	return s, err
}

func (d *db) Look(ctx context.Context, k leased.Key) (s leased.State, holder string, err error) {
	err = d.read.QueryRowContext(ctx, `select number, epoch, version, size,
		case when owner is not null and expires > `+now+` then holder else '' end
		from sessions where project = ? and id = ?`, k.Project, k.ID).Scan(&s.Session, &s.Epoch, &s.Version, &s.Size, &holder)
	if errors.Is(err, sql.ErrNoRows) {
		err = leased.ErrNone
	}
	return s, holder, err
}

func (d *db) Take(ctx context.Context, k leased.Key, owner, holder string, length time.Duration) (s leased.State, other string, err error) {
	err = d.update(ctx, false, func(tx *sql.Tx) (err error) {
		s, err = scanState(tx.QueryRowContext(ctx, `insert into sessions as s (project, id, created, modified, epoch, owner, holder, lease, expires)
			values (?1, ?2, `+now+`, `+now+`, 1, ?3, ?4, ?5, `+now+` + ?5)
			on conflict (project, id) do update set epoch = s.epoch + 1, owner = excluded.owner,
			holder = excluded.holder, lease = excluded.lease, expires = excluded.expires
			where s.owner is null or s.owner = excluded.owner or s.expires <= `+now+`
			returning `+state, k.Project, k.ID, owner, holder, length.Milliseconds()))
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		_, err = tx.ExecContext(ctx, `update sessions set expires = `+now+` + lease
			where project = ? and id = ? and expires > `+now+` + lease`, k.Project, k.ID)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `select holder from sessions where project = ? and id = ?`, k.Project, k.ID).Scan(&other)
	})
	return s, other, err
}

func (d *db) Renew(ctx context.Context, all []leased.Lease) error {
	return d.update(ctx, false, func(tx *sql.Tx) error {
		for _, l := range all {
			_, err := tx.ExecContext(ctx, `update sessions set expires = `+now+` + lease where number = ? and owner = ?`, l.Session, l.Owner)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *db) Give(ctx context.Context, l leased.Lease) error {
	return d.update(ctx, false, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `delete from sessions where number = ? and owner = ? and size = 0
			and not exists (select 1 from blobs where session = number)`, l.Session, l.Owner)
		if err == nil {
			_, err = tx.ExecContext(ctx, `update sessions set owner = null, holder = null, expires = null where number = ? and owner = ?`, l.Session, l.Owner)
		}
		return err
	})
}

func (d *db) Check(ctx context.Context, l leased.Lease) (leased.State, error) {
	s, err := scanState(d.read.QueryRowContext(ctx, `select `+state+` from sessions where number = ? and epoch = ? and owner = ?`, l.Session, l.Epoch, l.Owner))
	if errors.Is(err, sql.ErrNoRows) {
		err = leased.ErrFenced
	}
	return s, err
}

func (d *db) Append(ctx context.Context, l leased.Lease, lines leased.Lines) (s leased.State, err error) {
	more := 0 // how much the version goes up
	if len(lines.Lines) > 0 {
		more = 1
	}
	err = d.update(ctx, lines.Sync, func(tx *sql.Tx) (err error) {
		s, err = scanState(tx.QueryRowContext(ctx, `update sessions set version = version + ?1, size = size + ?2, spoken = spoken or ?3,
			modified = iif(?1, `+now+`, modified), writer = iif(?1, owner, writer), expires = `+now+` + lease
			where number = ?4 and epoch = ?5 and owner = ?6 returning `+state,
			more, lines.Size, lines.Spoken, l.Session, l.Epoch, l.Owner))
		if errors.Is(err, sql.ErrNoRows) {
			return leased.ErrFenced
		}
		if err != nil {
			return err
		}
		return insert(ctx, tx, s.Session, s.Size-lines.Size, lines)
	})
	return s, err
}

// insert adds lines from a place on.
func insert(ctx context.Context, tx *sql.Tx, number, from int64, lines leased.Lines) error {
	if len(lines.Lines) == 0 {
		return nil
	}
	add, err := tx.PrepareContext(ctx, `insert into lines (session, at, line) values (?, ?, ?)`)
	if err != nil {
		return err
	}
	defer add.Close() //nolint:errcheck // the transaction's
	for i, at := range lines.Places(from) {
		if _, err := add.ExecContext(ctx, number, at, lines.Lines[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *db) Add(ctx context.Context, k leased.Key, lines leased.Lines) error {
	return d.update(ctx, true, func(tx *sql.Tx) error {
		var number, size int64
		err := tx.QueryRowContext(ctx, `update sessions set version = version + 1, size = size + ?, spoken = spoken or ?, modified = `+now+`, writer = null
			where project = ? and id = ? and size > 0 returning number, size`, lines.Size, lines.Spoken, k.Project, k.ID).Scan(&number, &size)
		if errors.Is(err, sql.ErrNoRows) {
			return leased.ErrNone
		}
		if err != nil {
			return err
		}
		return insert(ctx, tx, number, size-lines.Size, lines)
	})
}

func (d *db) Delete(ctx context.Context, k leased.Key) error {
	return d.update(ctx, true, func(tx *sql.Tx) error {
		var number int64
		err := tx.QueryRowContext(ctx, `update sessions set version = version + 1, size = 0, spoken = 0, modified = `+now+`, writer = null
			where project = ? and id = ? and size > 0 returning number`, k.Project, k.ID).Scan(&number)
		if errors.Is(err, sql.ErrNoRows) {
			return leased.ErrNone
		}
		for _, stmt := range []string{
			`delete from lines where session = ?`, `delete from blobs where session = ?`,
			`delete from sessions where number = ? and owner is null`,
		} {
			if err == nil {
				_, err = tx.ExecContext(ctx, stmt, number)
			}
		}
		return err
	})
}

func (d *db) Cut(ctx context.Context, l leased.Lease, at leased.State) error {
	return d.update(ctx, true, func(tx *sql.Tx) error {
		err := fenced(ctx, tx, `update sessions set version = version + 1, size = ?, modified = `+now+`, writer = owner
			where number = ? and epoch = ? and owner = ? and version = ?`, at.Size, l.Session, l.Epoch, l.Owner, at.Version)
		if err == nil {
			_, err = tx.ExecContext(ctx, `delete from lines where session = ? and at >= ?`, l.Session, at.Size)
		}
		return err
	})
}

func (d *db) PutBlob(ctx context.Context, l leased.Lease, name string, data []byte) error {
	if data == nil {
		data = []byte{}
	}
	return d.update(ctx, false, func(tx *sql.Tx) error {
		return fenced(ctx, tx, `insert into blobs (session, name, data)
			select number, ?, ? from sessions where number = ? and epoch = ? and owner = ?
			on conflict (session, name) do update set data = excluded.data`, name, data, l.Session, l.Epoch, l.Owner)
	})
}

func (d *db) Blob(ctx context.Context, k leased.Key, name string) (data []byte, err error) {
	err = d.read.QueryRowContext(ctx, `select data from blobs join sessions on number = session
		where project = ? and id = ? and name = ?`, k.Project, k.ID, name).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		err = leased.ErrNone
	}
	return data, err
}

func (d *db) Read(ctx context.Context, number, from, to int64) (all [][]byte, err error) {
	rows, err := d.read.QueryContext(ctx, `select line from lines where session = ? and at >= ? and at < ? order by at`, number, from, to)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var line []byte
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		all = append(all, line)
	}
	return all, rows.Err()
}

func (d *db) Ends(ctx context.Context, k leased.Key, n int64) (head, tail []byte, err error) {
	rows, err := d.read.QueryContext(ctx, `with s as (select number, size, min(?3, size) as n from sessions where project = ?1 and id = ?2 and size > 0)
		select 0 as tail, at, substr(line, 1, n) from lines, s where session = number and at < n
		union all
		select 1, at, substr(line, max(size - n - at, 0) + 1) from lines, s where session = number and at < size
		and at >= (select max(at) from lines where session = s.number and at <= s.size - s.n)
		order by tail, at`, k.Project, k.ID, n)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	var pieces []leased.Piece
	for rows.Next() {
		var p leased.Piece
		var at int64
		if err := rows.Scan(&p.Tail, &at, &p.Text); err != nil {
			return nil, nil, err
		}
		pieces = append(pieces, p)
	}
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	return leased.Join(pieces, n)
}

func (d *db) List(ctx context.Context, id string, projects []string) (all []leased.Found, err error) {
	names, err := json.Marshal(projects)
	if err != nil {
		return nil, err
	}
	rows, err := d.read.QueryContext(ctx, `select id, project, modified, size, spoken from sessions
		where size > 0 and (?1 = '' or id = ?1) and (?2 = 'null' or project in (select value from json_each(?2)))`, id, string(names))
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var f leased.Found
		var ms int64
		if err := rows.Scan(&f.ID, &f.Project, &ms, &f.Size, &f.Spoken); err != nil {
			return nil, err
		}
		f.Modified = time.UnixMilli(ms)
		all = append(all, f)
	}
	return all, rows.Err()
}

// Code names the errors of SQLite that are the disk's, and those of the file.
func (d *db) Code(err error) string {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return ""
	}
	const primary = 0xff
	switch e.Code() & primary {
	case sqlite3.SQLITE_FULL:
		return "ENOSPC"
	case sqlite3.SQLITE_READONLY:
		return "EROFS"
	case sqlite3.SQLITE_IOERR:
		return "EIO"
	}
	return ""
}

// Unsure reports a failed commit.
func (d *db) Unsure(err error) bool {
	_, ok := errors.AsType[commitError](err)
	return ok
}
