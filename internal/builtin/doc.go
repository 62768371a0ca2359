// Package builtin holds the tools that come with the loop. One file a tool,
// with what it stands on beside it.
//
//   - Read: text (readtext.go), images (image.go, scale.go), notebooks
//     (notebookread.go) and PDFs (pdf.go).
//   - Edit, Write, NotebookEdit: what they have in common (change.go), the text
//     edit (edittext.go), the JSON edit (jsonsplice.go), writing (replace.go),
//     what became of a call after a crash (recover.go).
//   - Bash: bash.go with bash*.go: a command from start to end (bashrun.go), its
//     result, directory, environment and temporary files, what its text means
//     (bashparse.go, bashread.go); shell.go has the shell around it, output.go
//     what it writes, tasks.go and tasktools.go its life in the background, for
//     TaskStop and TaskOutput.
//   - Glob, Grep: what they share (searchpath.go); the search itself is
//     internal/search.
//   - All: paths and opening (path.go), what the session has seen of a file
//     (filestate.go).
package builtin
