// Package journal says what the lines of a session mean: it turns the
// machine's entries into lines and back (docs/design.md, decision 3).
//
// Chain lines (user, assistant, system) are the history in the layout of the
// official clients (docs/contract/cli.md, section 10). Own lines are all
//
//	{"type":"turnwright","kind":…,"v":1,"sessionId":…,"at":…}
//
// of the kinds open, input, call, turn, elide and state. What users or models
// wrote stands in own lines as JSON strings, so that the clients' text search
// finds nothing in them (K-328, K-343).
package journal
