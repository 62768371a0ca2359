package session

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"
)

// Info is what a store tells of a session without opening it.
type Info struct {
	ID       string
	Project  string    // where the store has it; for OpenOptions.Project
	Modified time.Time // of the store's last change
	Size     int64     // bytes of its lines, at least 1
}

// Finder is implemented by stores whose sessions can be found and read without
// being opened: resume, continue, fork and listings need it. Nothing of it
// takes a lock or changes anything (K-484).
type Finder interface {
	// Find looks a session up by its id: in the project that dir belongs to,
	// in the other worktrees of its repository, then in all projects, where it
	// counts only if exactly one has it (S-36). Otherwise it returns
	// ErrNotFound; *IDError for an id that is no UUID.
	Find(ctx context.Context, id, dir string) (Info, error)
	// List returns the sessions of the project that dir belongs to and of the
	// other worktrees of its repository, or with dir "" of all projects; the
	// last changed first. Of an id that is there twice it returns the newest.
	List(ctx context.Context, dir string) ([]Info, error)
	// Read yields a session's lines as Journal.Load does.
	Read(ctx context.Context, s Info) iter.Seq2[[]byte, error]
	// Ends returns the first and the last n bytes of a session, for Summarize.
	Ends(ctx context.Context, s Info, n int) (head, tail []byte, err error)
}

// Tailer is implemented by journals that can read their end alone: what others
// appended there, such as a title, is then kept (K-345).
type Tailer interface {
	// Tail returns the last n bytes, or all when there are fewer.
	Tail(ctx context.Context, n int) ([]byte, error)
}

// Newest sorts sessions by the time of their last change, the last changed
// first and ties by id, and keeps of each id the first. For authors of a
// Finder.
func Newest(list []Info) []Info {
	slices.SortFunc(list, func(a, b Info) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Project, b.Project))
	})
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(i Info) bool {
		old := seen[i.ID]
		seen[i.ID] = true
		return old
	})
}
