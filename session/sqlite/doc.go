// Package sqlite keeps sessions in one SQLite database, for agents of one
// machine. Two processes can never both write to a session: every append is
// checked against the session's lease in its own transaction. It needs no C
// compiler.
//
//	store, err := sqlite.Open(ctx, "/var/lib/agents/sessions.db", sqlite.Config{})
//	defer store.Close()
//	turnwright.Query(ctx, prompt, turnwright.Options{Store: store})
//
// The file must not be on a network disk, where SQLite's locks do not work. For
// several machines there is session/postgres. docs/stores.md tells what is in
// the file.
package sqlite
