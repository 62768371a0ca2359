// Package leased is what the stores in databases have in common. A database
// keeps, for each session, a row with a lease: who holds the session, until
// when, and an epoch that goes up whenever the lease is taken. Every append
// names its epoch and is refused, in the transaction that would write, when
// the row has another one. So a holder that was paused, cut off or taken for
// dead cannot write once somebody else has the session, whatever its own clock
// and its own memory say.
//
// Times are the database's. A holder renews its lease while it holds a session;
// one goroutine a store does it for all sessions, and ends when none is held.
//
// The package holds no SQL: that is the DB of each store.
package leased
