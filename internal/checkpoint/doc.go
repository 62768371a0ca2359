// Package checkpoint keeps the states of files that a session's tools change,
// so that they can be put back (S-109 to S-122).
//
// A [History] belongs to one session and lives in one directory. [History.Begin]
// makes a checkpoint, one for each user message; [History.Track] is told of a
// file before it is changed for the first time; [History.Rewind] puts the files
// back. From then on the state of a tracked file is looked at with every
// checkpoint, whoever changed it in between.
//
// The directory holds the states of files, each whole in a file of its own
// (<hash of the path>@v<number>, the names that the original product uses), and
// checkpoints.jsonl, to which a line is appended for every checkpoint and every
// file that is new. A state counts from the moment that its line is there, and
// the line is written after the state is on disk: a crash at any instant leaves
// at most a file that nothing refers to. All of it goes through package vfs.
//
// The user's files are not touched by their paths. The directory of a file is
// opened without following any link, and everything that is done goes through
// this handle: what others put in the way meanwhile leads nowhere else.
package checkpoint
