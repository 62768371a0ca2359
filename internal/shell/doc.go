// Package shell reads a shell command without running it: the simple commands
// in it, wherever they are nested, with their words, assignments and
// redirections, and what cannot be told before the command runs.
//
// The command runs in bash or zsh. It is read as bash; what the two would read
// differently, and what expands to other commands, is reported as unsure
// (Script.Unsure) or as a construct that somebody must look at (Script.Ask).
// Package permission draws the conclusions.
package shell
