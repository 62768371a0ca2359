// Package builtin holds the tools that come with the loop. One file a tool,
// with what it stands on beside it.
//
//   - Read: text (readtext.go), images (image.go, scale.go), notebooks
//     (notebookread.go) and PDFs (pdf.go).
//   - Edit, Write, NotebookEdit: what they have in common (change.go), the text
//     edit (edittext.go), the JSON edit (jsonsplice.go), writing (replace.go),
//     what became of a call after a crash (recover.go).
//   - Bash: processes (proc_*.go) and their output (output.go).
//   - All: paths and opening (path.go), what the session has seen of a file
//     (filestate.go).
package builtin
