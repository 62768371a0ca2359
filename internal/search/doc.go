// Package search finds files by name and lines by regular expression, as
// ripgrep does, inside the process: a concurrent walk that honours .gitignore
// and its kin (walk.go, ignore.go, gitconfig.go), one matcher for all glob
// patterns (wildcard.go, pattern.go, filter.go), a line finder that puts a
// search for required literals and a lazy DFA before Go's regexp (compile.go,
// syntax.go, literal.go, find.go, dfa.go), and the two searches built of them,
// [Glob] and [Grep]. What differs from ripgrep stands in docs/search.md.
//
// The package knows nothing of tools, sessions and permissions.
package search
