// Package postgres keeps sessions in a PostgreSQL database, version 12 or
// later, for agents that run on more than one machine. Two processes can never
// both write to a session, whatever their clocks say: every append is checked
// against the session's lease in its own transaction.
//
//	store, err := postgres.Open(ctx, "postgres://agents@db.example/agents", postgres.Config{})
//	defer store.Close()
//	turnwright.Query(ctx, prompt, turnwright.Options{Store: store})
//
// The tables are made when they are missing. docs/stores.md tells what is in
// them, and which rights a user of the database needs.
package postgres
