// Package instructions finds and composes instruction files: CLAUDE.md and its
// kin of the machine, the user and the project, what they import, and the rules
// in .claude/rules (C-41 to C-63).
//
// A [Set] belongs to one session. [Set.Load] gives the text that stands before
// the first prompt of every request; [Set.Touch] gives what a file that the
// model read brings along: instruction files of its directory and rules whose
// paths fit. Both say which files they took, for the hook InstructionsLoaded.
//
// The package reads files and writes none; all of it goes through [FS].
package instructions
