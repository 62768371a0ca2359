package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/turnwright/turnwright/session/internal/leased"
)

// db says what the store needs in SQL. What changes something is one statement
// or one batch, which is sent whole: a client that stops in the middle holds no
// lock of a row.
type db struct {
	pool   *pgxpool.Pool
	name   string // of the schema
	schema string // the same, quoted
	sql    statements
}

type statements struct {
	look, take, clamp, renew, drop, give, check, keep, add, addAny, empty, dropAny, cutLines, cut, put, blob, read, ends, list string
}

func newDB(pool *pgxpool.Pool, schema string) *db {
	d := &db{pool: pool, name: schema, schema: pgx.Identifier{schema}.Sanitize()}
	d.sql = statements{
		look: d.in(`select number, epoch, version, size,
			case when owner is not null and expires > clock_timestamp() then holder else '' end
			from {schema}.sessions where project = $1 and id = $2`),
		take: d.in(`insert into {schema}.sessions as s (project, id, epoch, owner, holder, lease, expires)
			values ($1, $2, 1, $3, $4, $5::interval, clock_timestamp() + $5::interval)
			on conflict (project, id) do update set epoch = s.epoch + 1, owner = excluded.owner,
			holder = excluded.holder, lease = excluded.lease, expires = clock_timestamp() + excluded.lease
			where s.owner is null or s.owner = excluded.owner or s.expires <= clock_timestamp()
			returning number, epoch, version, size, coalesce(writer = owner, false)`),
		clamp: d.in(`update {schema}.sessions set expires = clock_timestamp() + lease
			where project = $1 and id = $2 and expires > clock_timestamp() + lease`),
		renew: d.in(`update {schema}.sessions s set expires = clock_timestamp() + lease
			from unnest($1::bigint[], $2::uuid[]) as held(number, owner)
			where s.number = held.number and s.owner = held.owner`),
		drop: d.in(`delete from {schema}.sessions s where number = $1 and owner = $2 and size = 0
			and not exists (select from {schema}.blobs b where b.session = s.number)`),
		give:  d.in(`update {schema}.sessions set owner = null, holder = null, expires = null where number = $1 and owner = $2`),
		check: d.in(`select number, epoch, version, size, coalesce(writer = owner, false) from {schema}.sessions where number = $1 and epoch = $2 and owner = $3`),
		keep: d.in(`update {schema}.sessions set expires = clock_timestamp() + lease where number = $1 and epoch = $2 and owner = $3
			returning number, epoch, version, size, coalesce(writer = owner, false)`),
		add: d.in(`with held as (
				update {schema}.sessions set version = version + 1, size = size + $4, spoken = spoken or $5,
				modified = clock_timestamp(), writer = owner, expires = clock_timestamp() + lease
				where number = $1 and epoch = $2 and owner = $3 returning number, epoch, version, size, size - $4 as at),
			added as (insert into {schema}.lines (session, at, line)
				select held.number, held.at + l.at, l.line from held, unnest($6::bigint[], $7::bytea[]) as l(at, line))
			select number, epoch, version, size, true from held`),
		addAny: d.in(`with s as (
				update {schema}.sessions set version = version + 1, size = size + $3, spoken = spoken or $4,
				modified = clock_timestamp(), writer = null
				where project = $1 and id = $2 and size > 0 returning number, size - $3 as at)
			insert into {schema}.lines (session, at, line)
			select s.number, s.at + l.at, l.line from s, unnest($5::bigint[], $6::bytea[]) as l(at, line)`),
		empty: d.in(`with s as (
				update {schema}.sessions set version = version + 1, size = 0, spoken = false, modified = clock_timestamp(), writer = null
				where project = $1 and id = $2 and size > 0 returning number),
			l as (delete from {schema}.lines using s where session = s.number),
			b as (delete from {schema}.blobs using s where session = s.number)
			select number from s`),
		dropAny: d.in(`delete from {schema}.sessions s where project = $1 and id = $2 and size = 0 and owner is null
			and not exists (select from {schema}.blobs b where b.session = s.number)`),
		cut: d.in(`update {schema}.sessions set version = version + 1, size = $5, modified = clock_timestamp(), writer = owner
			where number = $1 and epoch = $2 and owner = $3 and version = $4`),
		cutLines: d.in(`delete from {schema}.lines using {schema}.sessions s
			where lines.session = s.number and s.number = $1 and s.epoch = $2 and s.owner = $3 and s.version = $4 + 1 and lines.at >= $5`),
		put: d.in(`insert into {schema}.blobs as b (session, name, data)
			select number, $4, $5 from {schema}.sessions where number = $1 and epoch = $2 and owner = $3 for update
			on conflict (session, name) do update set data = excluded.data`),
		blob: d.in(`select data from {schema}.blobs join {schema}.sessions on number = session where project = $1 and id = $2 and name = $3`),
		read: d.in(`select line from {schema}.lines where session = $1 and at >= $2 and at < $3 order by at`),
		ends: d.in(`with s as (select number, size, least($3::bigint, size) as n from {schema}.sessions where project = $1 and id = $2 and size > 0)
			select false as tail, at, substring(line for n::int) from {schema}.lines, s where session = number and at < n
			union all
			select true, at, substring(line from greatest(size - n - at, 0)::int + 1) from {schema}.lines, s where session = number and at < size
			and at >= (select max(at) from {schema}.lines where session = s.number and at <= s.size - s.n)
			order by tail, at`),
		list: d.in(`select id::text, project, modified, size, spoken from {schema}.sessions
			where size > 0 and ($1::uuid is null or id = $1) and ($2::text[] is null or project = any($2))`),
	}
	return d
}

func (d *db) in(sql string) string { return strings.ReplaceAll(sql, "{schema}", d.schema) }

func (d *db) Close() error {
	d.pool.Close()
	return nil
}

func (d *db) Look(ctx context.Context, k leased.Key) (s leased.State, holder string, err error) {
	err = d.pool.QueryRow(ctx, d.sql.look, k.Project, k.ID).Scan(&s.Session, &s.Epoch, &s.Version, &s.Size, &holder)
	if errors.Is(err, pgx.ErrNoRows) {
		err = leased.ErrNone
	}
	return s, holder, err
}

func (d *db) Take(ctx context.Context, k leased.Key, owner, holder string, length time.Duration) (s leased.State, other string, err error) {
	for {
		s, err = scanState(d.pool.QueryRow(ctx, d.sql.take, k.Project, k.ID, owner, holder, length))
		if !errors.Is(err, pgx.ErrNoRows) {
			return s, "", err
		}
		if _, err := d.pool.Exec(ctx, d.sql.clamp, k.Project, k.ID); err != nil {
			return s, "", err
		}
		_, other, err = d.Look(ctx, k)
		if err != nil && !errors.Is(err, leased.ErrNone) || other != "" {
			return s, other, err
		}
		// It was given back in between.
	}
}

func scanState(row pgx.Row) (s leased.State, err error) {
	err = row.Scan(&s.Session, &s.Epoch, &s.Version, &s.Size, &s.Own)
	return s, err
}

func (d *db) Renew(ctx context.Context, all []leased.Lease) error {
	numbers, owners := make([]int64, len(all)), make([]string, len(all))
	for i, l := range all {
		numbers[i], owners[i] = l.Session, l.Owner
	}
	return d.batch(ctx, false, func(r pgx.BatchResults) error {
		_, err := r.Exec()
		return err
	}, d.sql.renew, numbers, owners)
}

func (d *db) Give(ctx context.Context, l leased.Lease) error {
	b := &pgx.Batch{}
	b.Queue(d.sql.drop, l.Session, l.Owner)
	b.Queue(d.sql.give, l.Session, l.Owner)
	return d.pool.SendBatch(ctx, b).Close()
}

func (d *db) Check(ctx context.Context, l leased.Lease) (leased.State, error) {
	s, err := scanState(d.pool.QueryRow(ctx, d.sql.check, l.Session, l.Epoch, l.Owner))
	if errors.Is(err, pgx.ErrNoRows) {
		err = leased.ErrFenced
	}
	return s, err
}

func (d *db) Append(ctx context.Context, l leased.Lease, lines leased.Lines) (s leased.State, err error) {
	sql, args := d.sql.keep, []any{l.Session, l.Epoch, l.Owner}
	if len(lines.Lines) > 0 {
		sql, args = d.sql.add, append(args, lines.Size, lines.Spoken, lines.Places(0), lines.Lines)
	}
	none := false
	err = d.batch(ctx, lines.Sync, func(r pgx.BatchResults) (err error) {
		s, err = scanState(r.QueryRow())
		if none = errors.Is(err, pgx.ErrNoRows); none {
			err = nil
		}
		return err
	}, sql, args...)
	if err == nil && none {
		err = leased.ErrFenced
	}
	return s, err
}

func (d *db) Add(ctx context.Context, k leased.Key, lines leased.Lines) error {
	tag, err := d.pool.Exec(ctx, d.sql.addAny, k.Project, k.ID, lines.Size, lines.Spoken, lines.Places(0), lines.Lines)
	if err == nil && tag.RowsAffected() == 0 {
		err = leased.ErrNone
	}
	return err
}

func (d *db) Delete(ctx context.Context, k leased.Key) error {
	b := &pgx.Batch{}
	none := false
	b.Queue(d.sql.empty, k.Project, k.ID).QueryRow(func(row pgx.Row) error {
		var number int64
		err := row.Scan(&number)
		if none = errors.Is(err, pgx.ErrNoRows); none {
			err = nil
		}
		return err
	})
	b.Queue(d.sql.dropAny, k.Project, k.ID)
	err := d.pool.SendBatch(ctx, b).Close()
	if err == nil && none {
		err = leased.ErrNone
	}
	return err
}

// fenced runs a statement that touches rows only if the lease holds.
func (d *db) fenced(ctx context.Context, sync bool, sql string, args ...any) error {
	var tag pgconn.CommandTag
	err := d.batch(ctx, sync, func(r pgx.BatchResults) (err error) {
		tag, err = r.Exec()
		return err
	}, sql, args...)
	if err == nil && tag.RowsAffected() == 0 {
		err = leased.ErrFenced
	}
	return err
}

// batch runs one statement in a transaction that is durable when it returns, or
// soon after. All of it goes to the server at once; read takes what the statement
// says.
func (d *db) batch(ctx context.Context, sync bool, read func(pgx.BatchResults) error, sql string, args ...any) error {
	how := "set local synchronous_commit = off"
	if sync {
		how = "set local synchronous_commit = on"
	}
	b := &pgx.Batch{}
	b.Queue("begin")
	b.Queue(how)
	b.Queue(sql, args...)
	b.Queue("commit")
	r := d.pool.SendBatch(ctx, b)
	skip := func(r pgx.BatchResults) error {
		_, err := r.Exec()
		return err
	}
	var err error
	for _, next := range []func(pgx.BatchResults) error{skip, skip, read, skip} {
		if err = next(r); err != nil {
			break
		}
	}
	_ = r.Close() // the first error is the reason
	return err
}

func (d *db) Cut(ctx context.Context, l leased.Lease, at leased.State) error {
	b := &pgx.Batch{}
	var rows int64
	b.Queue(d.sql.cut, l.Session, l.Epoch, l.Owner, at.Version, at.Size).Exec(func(tag pgconn.CommandTag) error {
		rows = tag.RowsAffected()
		return nil
	})
	b.Queue(d.sql.cutLines, l.Session, l.Epoch, l.Owner, at.Version, at.Size)
	err := d.pool.SendBatch(ctx, b).Close()
	if err == nil && rows == 0 {
		err = leased.ErrFenced
	}
	return err
}

func (d *db) PutBlob(ctx context.Context, l leased.Lease, name string, data []byte) error {
	if data == nil {
		data = []byte{}
	}
	return d.fenced(ctx, false, d.sql.put, l.Session, l.Epoch, l.Owner, name, data)
}

func (d *db) Blob(ctx context.Context, k leased.Key, name string) (data []byte, err error) {
	err = d.pool.QueryRow(ctx, d.sql.blob, k.Project, k.ID, name).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		err = leased.ErrNone
	}
	return data, err
}

func (d *db) Read(ctx context.Context, number, from, to int64) ([][]byte, error) {
	rows, err := d.pool.Query(ctx, d.sql.read, number, from, to)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[[]byte])
}

func (d *db) Ends(ctx context.Context, k leased.Key, n int64) (head, tail []byte, err error) {
	rows, err := d.pool.Query(ctx, d.sql.ends, k.Project, k.ID, n)
	if err != nil {
		return nil, nil, err
	}
	pieces, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p leased.Piece, err error) {
		var at int64
		err = row.Scan(&p.Tail, &at, &p.Text)
		return p, err
	})
	if err != nil {
		return nil, nil, err
	}
	return leased.Join(pieces, n)
}

func (d *db) List(ctx context.Context, id string, projects []string) ([]leased.Found, error) {
	var one *string
	if id != "" {
		one = &id
	}
	rows, err := d.pool.Query(ctx, d.sql.list, one, projects)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f leased.Found, err error) {
		err = row.Scan(&f.ID, &f.Project, &f.Modified, &f.Size, &f.Spoken)
		return f, err
	})
}

// Code is a symbol for a full disk, and PostgreSQL's code for all else that the
// server says.
func (d *db) Code(err error) string {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return ""
	case pg.Code == "53100":
		return "ENOSPC"
	case pg.Code == "25006":
		return "EROFS"
	}
	return pg.Code
}

// Unsure: the server answers an error of a statement, and then has undone the
// transaction. Whatever else happens, a broken connection above all, says
// nothing about what it did.
func (d *db) Unsure(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return !pgconn.SafeToRetry(err) && (!ok || pg.Severity != "ERROR")
}
