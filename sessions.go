package turnwright

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// Sessions reads and changes stored sessions without running them. The zero
// value means all sessions of the configuration home. All of it works while a
// process has a session open (S-84): such a process takes over a title or a tag
// by itself, and goes on with a new file when its session is deleted.
//
// An id that is no UUID is a *session.IDError, a session that is not there a
// *NoConversationError, which errors.Is session.ErrNotFound; Info and Messages
// return nothing in both cases (S-76).
type Sessions struct {
	// Dir is the directory whose sessions are meant: those of its project and of
	// the other worktrees of its repository, and no others. "": of all projects.
	Dir string
	// OwnWorktree leaves other worktrees out of List and Search.
	OwnWorktree bool
	// ConfigDir is the configuration home; "": $CLAUDE_CONFIG_DIR, else .claude in
	// the user's home.
	ConfigDir string
	// Store is where sessions are kept in place of files in ConfigDir. It must be
	// a session.Keeper.
	Store session.Store
}

// Page is a part of a list. The zero value is all of it.
type Page struct {
	Offset int // how many are left out at the beginning
	Limit  int // how many there are at most; 0: no limit
}

// SessionInfo is what a listing tells of a session (S-70). It comes from the
// beginning and the end of the session, 64 KiB each, as it does in the official
// clients.
type SessionInfo struct {
	SessionID    string
	Summary      string    // title, else the last prompt, else a stored summary, else the first prompt (S-71)
	LastModified time.Time // of the last change
	FileSize     int64     // bytes of its lines
	CustomTitle  string    // "": none was given
	FirstPrompt  string    // cut at 200 characters; "": not within reach
	GitBranch    string    // the last one; "": none
	CWD          string    // directory that it began in; "": not known
	Tag          string    // "": none
	CreatedAt    time.Time // zero: not known
}

// SessionMessage is one message of a stored session (S-74).
type SessionMessage struct {
	Type            string          `json:"type"` // "user" or "assistant"
	UUID            string          `json:"uuid"`
	SessionID       string          `json:"session_id"`
	Message         json.RawMessage `json:"message"` // role and content, as the API has them
	ParentToolUseID *string         `json:"parent_tool_use_id"`
	ParentAgentID   *string         `json:"parent_agent_id"`
}

// List yields sessions, the last changed first (S-69). Sessions without any
// prompt or title, those of subagents and those that cannot be read are left out,
// and an id that is there twice appears once (S-72); also those of another
// directory whose path gives the same project name as Dir. Of each session as
// much memory is needed as its name takes.
func (s Sessions) List(ctx context.Context, page Page) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		k, err := s.keeper()
		if err == nil {
			err = page.check()
		}
		if err != nil {
			yield(SessionInfo{}, err)
			return
		}
		n := 0
		for found, err := range s.list(ctx, k) {
			if err != nil {
				yield(SessionInfo{}, err)
				return
			}
			if n++; n <= page.Offset {
				continue
			}
			if !yield(found.SessionInfo, nil) || page.Limit > 0 && n == page.Offset+page.Limit {
				return
			}
		}
	}
}

// located is a session with its place.
type located struct {
	SessionInfo
	at session.Info
}

func (s Sessions) list(ctx context.Context, k session.Keeper) iter.Seq2[located, error] {
	return func(yield func(located, error) bool) {
		dir, err := s.dir()
		var infos []session.Info
		var own []string
		if err == nil {
			infos, err = k.List(ctx, dir)
		}
		if err == nil && dir != "" {
			own, err = k.Projects(ctx, dir, false)
		}
		if err != nil {
			yield(located{}, err)
			return
		}
		name := ""
		if dir != "" {
			name = file.ProjectName(dir)
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				dir = real
			}
		}
		for _, at := range infos {
			if err := ctx.Err(); err != nil {
				yield(located{}, err)
				return
			}
			if dir != "" && s.OwnWorktree && !slices.Contains(own, at.Project) {
				continue
			}
			info, listed := describe(ctx, k, at)
			if !listed || dir != "" && at.Project == name && foreign(info.CWD, name, dir) {
				continue
			}
			if !yield(located{info, at}, nil) {
				return
			}
		}
	}
}

// foreign reports a session of another directory that has the same project name
// (S-14). One whose directory has another name was moved there, and belongs.
func foreign(cwd, name, dir string) bool {
	return cwd != "" && filepath.IsAbs(cwd) && file.ProjectName(cwd) == name && !sameDir(cwd, dir)
}

// describe reads a session's ends; false for one that no listing shows.
func describe(ctx context.Context, k session.Finder, at session.Info) (SessionInfo, bool) {
	head, tail, err := k.Ends(ctx, at, session.SummaryBytes)
	if err != nil {
		return SessionInfo{}, false
	}
	sum := session.Summarize(head, tail)
	return SessionInfo{
		SessionID: at.ID, Summary: sum.Text, LastModified: at.Modified, FileSize: at.Size, CustomTitle: sum.Title,
		FirstPrompt: sum.FirstPrompt, GitBranch: sum.GitBranch, CWD: sum.CWD, Tag: sum.Tag, CreatedAt: sum.Created,
	}, sum.Listed()
}

// Info tells of one session, without looking at others (S-77); nil when there is
// none that a listing would show.
func (s Sessions) Info(ctx context.Context, id string) (*SessionInfo, error) {
	k, at, err := s.locate(ctx, id)
	if none(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, listed := describe(ctx, k, at)
	if !listed {
		return nil, nil
	}
	return &info, nil
}

// Messages yields the messages that a resume of the session would go on from, in
// order (S-74, S-75): after a compaction the summary stands for what it replaced,
// and what a later branch has left behind is not there. It yields nothing when
// there is no such session.
func (s Sessions) Messages(ctx context.Context, id string, page Page) iter.Seq2[SessionMessage, error] {
	return func(yield func(SessionMessage, error) bool) {
		k, at, err := s.locate(ctx, id)
		if none(err) {
			return
		}
		var o *journal.Outline
		if err == nil {
			err = page.check()
		}
		if err == nil {
			o, err = journal.ReadOutline(k.Read(ctx, at), "")
		}
		if err != nil {
			yield(SessionMessage{}, err)
			return
		}
		n := 0
		for m, err := range o.Messages(k.Read(ctx, at)) {
			if err != nil {
				yield(SessionMessage{}, err)
				return
			}
			if n++; n <= page.Offset {
				continue
			}
			out := SessionMessage{Type: m.Type, UUID: m.UUID, SessionID: cmp.Or(m.Session, at.ID), Message: m.Message}
			if !yield(out, nil) || page.Limit > 0 && n == page.Offset+page.Limit {
				return
			}
		}
	}
}

// Rename gives the session a title, by which it can be resumed (S-78). Control
// and invisible characters in it become blanks, and it is cut at 200 characters
// (S-82); one without any other is a *session.OptionError.
func (s Sessions) Rename(ctx context.Context, id, title string) error {
	shown := displayTitle(title)
	if shown == "" {
		return &session.OptionError{Field: "title", Value: title, Reason: "has no visible character"}
	}
	return s.add(ctx, id, func(id string) []byte { return journal.TitleLine(id, shown) })
}

// Tag gives the session a tag in place of the one that it has (S-79). Characters
// that are not visible are left out, and compatible forms are made one (NFKC); a
// tag without any other character is a *session.OptionError.
func (s Sessions) Tag(ctx context.Context, id, tag string) error {
	shown := cleanTag(tag)
	if shown == "" {
		return &session.OptionError{Field: "tag", Value: tag, Reason: "has no visible character; Untag removes a tag"}
	}
	return s.add(ctx, id, func(id string) []byte { return journal.TagLine(id, shown) })
}

// Untag removes the session's tag (S-79).
func (s Sessions) Untag(ctx context.Context, id string) error {
	return s.add(ctx, id, func(id string) []byte { return journal.TagLine(id, "") })
}

func (s Sessions) add(ctx context.Context, id string, line func(id string) []byte) error {
	k, at, err := s.locate(ctx, id)
	if err != nil {
		return err
	}
	if err = k.Add(ctx, at, [][]byte{line(at.ID)}); errors.Is(err, session.ErrNotFound) {
		err = &NoConversationError{Value: id}
	}
	return err
}

// cleanTag leaves out what cannot be seen. Taking characters out may make others
// compatible, so it is done until nothing changes.
func cleanTag(tag string) string {
	const rounds = 10
	for range rounds {
		clean := strings.Map(func(r rune) rune {
			if unicode.Is(unicode.C, r) || !unicode.IsGraphic(r) {
				return -1
			}
			return r
		}, norm.NFKC.String(tag))
		if clean == tag {
			break
		}
		tag = clean
	}
	return strings.TrimSpace(tag)
}

// Delete removes the session and what is kept beside it: its subagents and its
// large outputs (S-80). A fork of it keeps its own copy of the history.
func (s Sessions) Delete(ctx context.Context, id string) error {
	k, at, err := s.locate(ctx, id)
	if err != nil {
		return err
	}
	if err = k.Delete(ctx, at); errors.Is(err, session.ErrNotFound) {
		err = &NoConversationError{Value: id}
	}
	return err
}

// ForkOptions say how a session is copied.
type ForkOptions struct {
	// UpTo is the uuid of the message, of the user or the assistant, that is the
	// last one of the copy; "": the end. An unknown one is a *NoMessageError.
	UpTo string
	// Title is that of the copy; "": that of the source, or else what listings
	// show of it, with " (fork)" behind it.
	Title string
}

// Fork copies a session without running it and returns the id of the copy, which
// is kept beside its source (S-60). All messages have new uuids and keep their
// order; what compactions replaced is copied as well. Branches that were left
// behind, the queue, checkpoints of files and large outputs are not (S-61, K-397).
// The source is not changed. It is one copy or none, but for a crash in between.
func (s Sessions) Fork(ctx context.Context, id string, o ForkOptions) (string, error) {
	store, err := s.store()
	if err != nil {
		return "", err
	}
	k, at, err := s.locate(ctx, id)
	if err != nil {
		return "", err
	}
	outline, err := journal.ReadOutline(k.Read(ctx, at), o.UpTo)
	switch {
	case errors.Is(err, journal.ErrNoMessage):
		return "", &NoMessageError{UUID: o.UpTo, SessionID: at.ID}
	case err != nil:
		return "", fmt.Errorf("session %s cannot be read: %w", at.ID, err)
	case outline.Empty():
		return "", &session.OptionError{Field: "id", Value: at.ID, Reason: "has no messages that could be copied"}
	}
	title := displayTitle(o.Title)
	info, _ := describe(ctx, k, at)
	if title == "" {
		title = forkTitle(cmp.Or(outline.Title(), info.CustomTitle, info.Summary, "Session"))
	}
	fork := engine.NewID()
	lines := outline.Copy(k.Read(ctx, at), journal.Copy{Source: at.ID, Session: fork, Title: title, NewID: engine.NewID, Now: time.Now()})
	j, err := store.Open(ctx, fork, session.OpenOptions{Dir: info.CWD, Project: at.Project, Create: true})
	if err != nil {
		return "", fmt.Errorf("the copy of session %s cannot be written: %w", at.ID, err)
	}
	if err = errors.Join(writeLines(ctx, j, lines), j.Close()); err == nil {
		return fork, nil
	}
	err = fmt.Errorf("the copy of session %s cannot be written: %w", at.ID, err)
	if part, serr := k.Stat(ctx, at.Project, fork); serr == nil {
		err = errors.Join(err, k.Delete(context.WithoutCancel(ctx), part))
	}
	return "", err
}

// forkTitle is the title of a copy of a session with this one.
func forkTitle(title string) string {
	const suffix = " (fork)"
	runes := []rune(displayTitle(title))
	return strings.TrimSpace(string(runes[:min(len(runes), titleLength-len(suffix))])) + suffix
}

// copyBatch is how many bytes of a copy are written at once.
const copyBatch = 1 << 20

// writeLines writes lines and makes them durable.
func writeLines(ctx context.Context, j session.Journal, lines iter.Seq2[[]byte, error]) error {
	var batch [][]byte
	size := 0
	for line, err := range lines {
		if err != nil {
			return err
		}
		batch = append(batch, line)
		if size += len(line); size < copyBatch {
			continue
		}
		if err := j.Append(ctx, batch, false); err != nil {
			return err
		}
		batch, size = nil, 0
	}
	return j.Append(ctx, batch, true)
}

// store is where the sessions are.
func (s Sessions) store() (session.Store, error) {
	if s.Store != nil {
		return s.Store, nil
	}
	return file.New(file.Config{ConfigDir: s.ConfigDir})
}

func (s Sessions) keeper() (session.Keeper, error) {
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	k, ok := store.(session.Keeper)
	if !ok {
		return nil, &OptionError{Option: "Store", Value: fmt.Sprintf("%T", store), Reason: "cannot tell of its sessions: it is no session.Keeper"}
	}
	return k, nil
}

// dir is the directory as a store wants it.
func (s Sessions) dir() (string, error) {
	if s.Dir == "" {
		return "", nil
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return "", &OptionError{Option: "Dir", Value: strconv.Quote(s.Dir), Reason: err.Error(), Err: err}
	}
	return dir, nil
}

func (s Sessions) locate(ctx context.Context, id string) (k session.Keeper, at session.Info, err error) {
	dir, err := s.dir()
	if err == nil {
		k, err = s.keeper()
	}
	if err == nil {
		at, err = session.Locate(ctx, k, id, dir)
	}
	if errors.Is(err, session.ErrNotFound) {
		err = &NoConversationError{Value: id}
	}
	return k, at, err
}

// none reports an error that says that there is no such session.
func none(err error) bool {
	var bad *session.IDError
	return errors.As(err, &bad) || errors.Is(err, session.ErrNotFound)
}

func (p Page) check() error {
	if p.Offset < 0 {
		return &OptionError{Option: "Page.Offset", Value: strconv.Itoa(p.Offset), Reason: "must be 0 or more"}
	}
	if p.Limit < 0 {
		return &OptionError{Option: "Page.Limit", Value: strconv.Itoa(p.Limit), Reason: "must be 0 (no limit) or more"}
	}
	return nil
}
