package session

import (
	"context"
	"errors"
)

// Keeper is implemented by stores whose sessions can be changed and removed
// without being opened: renaming, tagging, copying and deleting need it. None of
// it waits for the lock, so that it works while somebody has the session open
// (S-84).
type Keeper interface {
	Finder
	// Projects returns the names of the projects that dir belongs to, as they
	// stand in Info.Project: its own, and with worktrees those of the other
	// worktrees of its repository. With dir "" it returns all.
	Projects(ctx context.Context, dir string, worktrees bool) ([]string, error)
	// Stat tells of one session without looking at others: ErrNotFound when
	// the project has none with this id or it has no lines; *IDError.
	Stat(ctx context.Context, project, id string) (Info, error)
	// Add appends lines that are no messages, such as a title, with one write.
	// It makes no session: ErrNotFound when there is none with lines. Journals
	// that have it open go on behind them.
	Add(ctx context.Context, s Info, lines [][]byte) error
	// Delete removes a session and all that is kept beside it (S-80);
	// ErrNotFound when it has no lines.
	Delete(ctx context.Context, s Info) error
}

// Locate returns the newest session with this id in the projects that dir
// belongs to, other worktrees of its repository included, or with dir "" in all
// projects. Unlike Finder.Find it never looks beyond dir. It returns ErrNotFound
// when there is none, *IDError for an id that is no UUID.
func Locate(ctx context.Context, k Keeper, id, dir string) (best Info, err error) {
	if id, err = ParseID(id); err != nil {
		return Info{}, err
	}
	projects, err := k.Projects(ctx, dir, true)
	if err != nil {
		return Info{}, err
	}
	var trouble error
	for _, project := range projects {
		info, err := k.Stat(ctx, project, id)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			trouble = err
		case best.ID == "" || info.Modified.After(best.Modified):
			best = info
		}
	}
	switch {
	case best.ID != "":
		return best, nil
	case trouble != nil:
		return Info{}, trouble
	}
	return Info{}, ErrNotFound
}
