package turnwright

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/turnwright/turnwright/internal/checkpoint"
	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/internal/envvar"
	"github.com/turnwright/turnwright/internal/project/settings"
	"github.com/turnwright/turnwright/internal/vfs"
)

// What RewindFiles returns, beside ErrClosed (S-118).
var (
	// ErrRewindDisabled says that the session runs without
	// Options.EnableFileCheckpointing, or that it is switched off.
	ErrRewindDisabled = engine.ErrNoCheckpoints
	// ErrNoCheckpoint says that no user message of the session has the id, that
	// it was sent while checkpoints were off, or that it is not among the 100
	// most recent ones (and not the first).
	ErrNoCheckpoint = checkpoint.ErrNone
)

// RewindResult says what RewindFiles did or, as a dry run, would do (S-115).
type RewindResult struct {
	// CanRewind is false when there is nothing to go back to. Error says why; it
	// also says what went wrong with single files.
	CanRewind bool
	Error     string
	// FilesChanged are the files that were changed or removed, by the absolute
	// paths under which the tools first changed them, sorted.
	FilesChanged []string
	// Insertions and Deletions are the lines that going back added to files and
	// removed from them. Files that are no text or larger than 8 MiB count none.
	Insertions, Deletions int
	// SkippedLinks are how many files were left as they are: a link or something
	// else that is no regular file stands in their place, they have further hard
	// links, a directory above them leads elsewhere than before, or their old
	// contents cannot be read. A dry run does not count them.
	SkippedLinks int
}

// RewindFiles puts the files that Write, Edit and NotebookEdit changed in this
// session back into the state that they had when the user message with this uuid
// was taken up: changed files get their old contents and mode, files that were
// created since are deleted. For the first message that is the state before the
// session. Messages and context stay as they are, and changes by shell commands
// to files that no tool edited are not undone.
//
// The uuid is what Send returned, Input.UUID, or UserMessageUUID of the result.
// It may be called while a turn runs, and on a resumed session to which nothing
// was sent yet. With dryRun nothing is touched.
//
// Without such a checkpoint the result says so in Error, and unless it was a dry
// run there is an error, too: ErrNoCheckpoint or ErrRewindDisabled. Files that
// could not be put back are named by the error; the others are done. A session
// that has ended gives ErrClosed: resume it (Options.Resume) and rewind then.
func (s *Session) RewindFiles(ctx context.Context, uuid string, dryRun bool) (RewindResult, error) {
	select {
	case <-s.eng.Done():
		err := fmt.Errorf("%w: resume session %s to rewind its files", ErrClosed, s.ID())
		return RewindResult{Error: err.Error()}, err
	default:
	}
	found, err := s.eng.Rewind(ctx, uuid, dryRun)
	res := RewindResult{
		CanRewind: true, FilesChanged: found.Files, Insertions: found.Insertions, Deletions: found.Deletions,
	}
	if !dryRun {
		res.SkippedLinks = found.Skipped
	}
	if err != nil {
		res.Error = err.Error()
		if errors.Is(err, ErrNoCheckpoint) || errors.Is(err, ErrRewindDisabled) {
			res.CanRewind = false
			if dryRun {
				err = nil // the question is answered
			}
		}
	}
	return res, err
}

// buildCheckpoints says where the states of files are kept, if they are (S-121).
func (o *Options) buildCheckpoints(cfg *engine.Config, getenv func(string) string, s *settings.Settings) error {
	if !o.EnableFileCheckpointing && !envvar.On(getenv("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING")) {
		return nil
	}
	off := ""
	if v := s.Get("fileCheckpointingEnabled"); v != nil && string(v.JSON) == "false" {
		off = "fileCheckpointingEnabled is false in " + v.File
	}
	if envvar.On(getenv("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING")) {
		off = "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING is set"
	}
	if off != "" {
		cfg.Warn("File checkpoints are off: " + off + ".")
		return nil
	}
	home, err := configHome(getenv)
	if err != nil {
		return &OptionError{Option: "EnableFileCheckpointing", Reason: err.Error(), Err: err}
	}
	c := checkpoint.Config{Dir: filepath.Join(home, "file-history", cfg.Loop.SessionID)}
	if cfg.Store == nil { // nothing is to be kept (S-25)
		c.FS = vfs.NewMem()
	}
	cfg.Checkpoints = checkpoint.New(c)
	return nil
}
