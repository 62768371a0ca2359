package postgres

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var files embed.FS

// migrations are run in order, each once and in a transaction of its own; the
// number of the last one is kept in the schema. A released one never changes.
var migrations = []string{"migrations/1.sql"}

// lockClass keeps the advisory lock apart from those of other programs.
const lockClass = 0x7475726e

// migrate brings the tables up to date. Tables that are need no right to make
// any.
func (d *db) migrate(ctx context.Context) error {
	have, err := d.version(ctx, d.pool)
	if err != nil || have == len(migrations) {
		return err
	}
	for n := have; n < len(migrations); n++ {
		err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return d.step(ctx, tx, n) })
		if err != nil {
			return err
		}
	}
	return nil
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// version is how many migrations have run.
func (d *db) version(ctx context.Context, q querier) (n int, err error) {
	var there bool
	// Not to_regclass: it answers from a cache that is not renewed while the
	// transaction waits for the lock.
	err = q.QueryRow(ctx, `select exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = 'migrations')`, d.name).Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	err = q.QueryRow(ctx, d.in("select coalesce(max(number), 0) from {schema}.migrations")).Scan(&n)
	if err == nil && n > len(migrations) {
		err = fmt.Errorf("%w (their version is %d, this one knows %d)", errNewer, n, len(migrations))
	}
	return n, err
}

// step runs the next migration if nobody else did meanwhile. Programs that
// start at the same time wait for each other here.
func (d *db) step(ctx context.Context, tx pgx.Tx, n int) error {
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1, hashtext($2))", lockClass, d.schema); err != nil {
		return err
	}
	have, err := d.version(ctx, tx)
	if err != nil || n < have {
		return err
	}
	text, err := files.ReadFile(migrations[n])
	if err != nil {
		return err
	}
	sql := string(text)
	if n == 0 {
		var there bool
		if err := tx.QueryRow(ctx, "select exists (select from pg_namespace where nspname = $1)", d.name).Scan(&there); err != nil {
			return err
		}
		if !there {
			sql = "create schema {schema};\n" + sql
		}
		sql += "\ncreate table {schema}.migrations (number int primary key, at timestamptz not null default now());"
	}
	if _, err := tx.Exec(ctx, d.in(sql)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, d.in("insert into {schema}.migrations (number) values ($1)"), n+1)
	return err
}
