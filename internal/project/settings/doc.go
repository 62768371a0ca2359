// Package settings reads settings files: it finds them, checks them, merges them
// by precedence, and says where each value comes from. It starts nothing and
// writes nothing.
//
// [Open] reads the sources of a session and [Reader.Refresh] looks whether one
// has changed since. Both give [Settings], a state that never changes, and the
// [Problem] list of what could not be used, each with file, line and key.
//
// Nothing here drops protection by accident (C-16): an entry that cannot be used
// is left out alone; a file that breaks the schema is skipped except for what it
// forbids; and a file that was good and breaks while it is watched keeps its last
// good state in force.
//
// See docs/contract/settings.md, sections 1 to 3 and 11.
package settings
