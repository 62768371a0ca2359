// Package file keeps sessions as files, in the layout of the official clients,
// so that they find our sessions and we find theirs:
//
//	<config>/projects/<project>/<session id>.jsonl                one line an entry
//	<config>/projects/<project>/<session id>/tool-results/<name>  large outputs
//	<config>/projects/<project>/<session id>.torn-<n>             bytes of a cut line
//
// <config> is $CLAUDE_CONFIG_DIR or ~/.claude, <project> the working directory
// with everything but letters and digits turned into "-" (ProjectName).
// Directories are made with mode 0700, files with 0600. Nothing is encrypted.
//
// Lines are appended with one write each time, and never rewritten. A line that
// a crash tore is cut off when the session is opened next; its bytes are kept
// in the .torn file. A write that fails half-way is taken back.
//
// # Locks
//
// One journal at a time has a session. The lock is advisory and only among
// programs that use this package; the official clients append without it, and
// that is allowed for.
//
//	<config>/turnwright/owners/<pid>-<random>          one a process, flock'ed while it lives
//	<config>/turnwright/locks/<project>/<id>.lock      hard link to the owner's file
//	<config>/turnwright/locks/takeover                 flock'ed while a dead lock is removed
//
// A lock is taken by linking the owner's file to the lock's name, which works
// for one process only, and given back by removing that name. The link is the
// same file, so whoever finds the name taken can try a shared flock on it: it
// fails while the owner lives, and works the moment after its death, however it
// died. A dead lock is removed by whoever holds the takeover file. So a session
// needs no descriptor of its own for its lock, and a stale lock needs no
// guessing by age or process number.
//
// Where the file system knows no hard links, a lock file is created and kept
// open with its own flock instead. Where it knows no flock either, a warning
// says so and sessions are guarded inside the process only.
//
// # Descriptors
//
// All stores of a process together hold at most 64 files open, whatever the
// number of sessions (and one for the locks); a session that appends finds its
// file open if it was among the last ones.
package file
