package leased

import (
	"context"
	"errors"
	"slices"

	"github.com/turnwright/turnwright/session"
)

// Projects returns names of projects; see session.Keeper.
func (s *Store) Projects(ctx context.Context, dir string, worktrees bool) ([]string, error) {
	switch {
	case dir != "" && worktrees:
		return s.projects(ctx, dir)
	case dir != "":
		own, err := s.project(dir)
		return []string{own}, err
	}
	found, err := s.list(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, f := range found {
		all = append(all, f.Project)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Stat tells of one session; see session.Keeper.
func (s *Store) Stat(ctx context.Context, project, id string) (session.Info, error) {
	id, err := session.ParseID(id)
	if err != nil {
		return session.Info{}, err
	}
	found, err := s.list(ctx, id, []string{project})
	if err == nil && len(found) == 0 {
		err = session.ErrNotFound
	}
	if err != nil {
		return session.Info{}, err
	}
	return found[0].Info, nil
}

// Add appends lines without the lease; see session.Keeper.
func (s *Store) Add(ctx context.Context, info session.Info, lines [][]byte) error {
	if err := session.CheckLines(lines); err != nil || len(lines) == 0 {
		return err
	}
	return s.keep(ctx, func(ctx context.Context, k Key) error { return s.db.Add(ctx, k, newLines(lines, false)) }, info)
}

// Delete removes a session; see session.Keeper.
func (s *Store) Delete(ctx context.Context, info session.Info) error {
	return s.keep(ctx, s.db.Delete, info)
}

// keep changes a session that was found. The context ends no write.
func (s *Store) keep(ctx context.Context, change func(context.Context, Key) error, info session.Info) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	err := s.do(context.WithoutCancel(ctx), "write", func(ctx context.Context) error {
		return change(ctx, Key{Project: info.Project, ID: info.ID})
	})
	if errors.Is(err, ErrNone) {
		return session.ErrNotFound
	}
	return err
}
