package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/envvar"
	"github.com/turnwright/turnwright/internal/hookrun"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// hooks is what a session keeps of its hooks.
type hooks struct {
	run   *hookrun.Runner
	begun atomic.Bool    // the session has started, so its end is told
	ended sync.Once      // it was told
	side  sync.WaitGroup // notifications that are being told

	mu         sync.Mutex
	calls      map[string]*hookedCall // open calls that hooks have something on, by tool_use id
	conditions map[string]*permission.Condition
	start      hook.Merged // what the hooks of SessionStart said, for the next turn
	envFile    string      // what hooks export to later commands; "": none
}

// hookedCall is what hooks know of an open call.
type hookedCall struct {
	input    []byte // as hooks and rules saw it last
	contexts []string
}

func (s *Session) newHooks() {
	s.hooks.calls, s.hooks.conditions = map[string]*hookedCall{}, map[string]*permission.Condition{}
	cfg := hookrun.Config{
		SessionID: s.cfg.Loop.SessionID, ProjectDir: s.cfg.Dir, Environ: s.cfg.Environ,
		Emit: s.emit, Show: s.cfg.HookEvents, Save: s.putBlob, NewID: NewID, EnvFile: s.envFile, Wake: s.wake,
		Client: s.cfg.HookClient, Ask: s.askModel,
	}
	if s.cfg.Debug != nil {
		cfg.Debug = func(text string) { s.cfg.Debug("hook", text) }
	}
	s.hooks.run = hookrun.New(cfg)
	s.hooks.run.Use(s.cfg.Hooks)
}

// UseHooks takes the hooks that run from now on (H-9).
func (s *Session) UseHooks(set *hook.Set) {
	s.hooks.run.Use(set)
	s.mu.Lock()
	defer s.mu.Unlock()
	// It is heeded with the next event: by itself it is no reason to wake up.
	s.inbox = append(s.inbox, posted{ev: loop.Hooks{Batch: set.Has(hook.PostToolBatch), Stop: set.Has(hook.Stop)}})
}

// about is what all hooks of this moment are told. It belongs to the actor.
func (s *Session) about() hook.Base {
	if s.hooks.run.Empty() {
		return hook.Base{}
	}
	mode := permission.Mode(s.machine.Settings().Mode)
	return hook.Base{
		SessionID: s.cfg.Loop.SessionID, TranscriptPath: s.jour.path(), CWD: s.workDir(),
		PromptID: s.machine.Turn().Input, PermissionMode: mode,
	}
}

// workDir is the directory that the next command starts in.
func (s *Session) workDir() string {
	for _, name := range s.tools.Names() {
		t, _, _ := s.tools.Get(name)
		if l, ok := t.(tool.Locator); ok {
			if dir := l.WorkDir(s.env()); dir != "" {
				return dir
			}
		}
	}
	return s.cfg.Dir
}

// runHooks runs the hooks of an event and shows what they say to the user. toolUse is
// that of the call that it is about, nil: none.
func (s *Session) runHooks(ctx context.Context, in hook.Input, toolUse *permission.Request, id string) hook.Merged {
	m := s.runQuietly(ctx, in, toolUse, id)
	s.tell(m, id)
	return m
}

func (s *Session) runQuietly(ctx context.Context, in hook.Input, toolUse *permission.Request, id string) hook.Merged {
	c := hookrun.Call{ToolUseID: id, Dir: in.Head().CWD}
	if toolUse != nil {
		c.Matches = func(rule string) bool { return s.matches(rule, *toolUse) }
	}
	return s.hooks.run.Run(ctx, in, c)
}

// tell shows what hooks say to the user (H-45, H-48, H-50).
func (s *Session) tell(m hook.Merged, toolUseID string) {
	for _, n := range m.Notices {
		level := "info"
		if n.Fault {
			level = "warning"
		}
		s.emit(&message.Informational{Content: n.Text, Level: level, ToolUseID: toolUseID})
	}
	if m.Stop && m.StopReason != "" {
		s.emit(&message.Informational{Content: m.StopReason, Level: "notice", ToolUseID: toolUseID, PreventContinuation: true})
	}
}

// matches reports whether a handler's "if" is about the call (H-22). A rule that
// cannot be used is told once and matches nothing.
func (s *Session) matches(rule string, r permission.Request) bool {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	c, known := s.hooks.conditions[rule]
	if !known {
		var err error
		if c, err = s.rules.get().Condition(rule); err != nil {
			s.cfg.Warn(fmt.Sprintf("A hook with the condition %q never runs: %v", rule, err))
		}
		s.hooks.conditions[rule] = c
	}
	return c != nil && c.Holds(r)
}

// reminders wraps what hooks tell the model (H-52).
func reminders(ev hook.Event, contexts []string) []message.Block {
	var blocks []message.Block
	for _, c := range contexts {
		blocks = append(blocks, message.NewText(reminder(string(ev)+" hook additional context: "+c)))
	}
	return blocks
}

func reminder(text string) string { return "<system-reminder>\n" + text + "\n</system-reminder>" }

// hookStopped is how a user turn ends after continue:false of a hook of that
// event (H-49).
func hookStopped(ev hook.Event, reason string) *loop.Ending {
	by := string(ev) + " hook"
	if reason != "" {
		by += ": " + reason
	}
	return &loop.Ending{
		Subtype: message.Success, Terminal: message.TerminalHookStopped, Refusal: "a hook stopped the run.",
		By: by,
	}
}

// wake gives the model a message that nobody sent (H-69).
func (s *Session) wake(text string) {
	_ = s.Send(loop.Input{
		ID: uuidText(s.cfg.NewUUID()), Synthetic: true,
		Origin:  &message.Origin{Kind: message.OriginTaskNotification},
		Content: message.TextContent(reminder("This message is not from the user: a background hook reports:\n" + text)),
	}) // a closed session has no model to tell
}

// envFile is the file that hooks write exports for later commands to (H-30):
// that of the environment, or one of the session's own. "": none can be made.
func (s *Session) envFile() string {
	if path := s.cfg.Getenv("CLAUDE_ENV_FILE"); path != "" {
		return path
	}
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	if s.hooks.envFile == "" {
		dir, err := os.MkdirTemp("", "turnwright-env-")
		if err != nil {
			return ""
		}
		path := filepath.Join(dir, "env.sh")
		if os.WriteFile(path, nil, 0o600) != nil {
			_ = os.Remove(dir)
			return ""
		}
		s.hooks.envFile = path
	}
	return s.hooks.envFile
}

// getenv is the environment of the session, with what hooks made of it.
func (s *Session) getenv(key string) string {
	v := s.cfg.Getenv(key)
	if key == "CLAUDE_ENV_FILE" && v == "" {
		s.hooks.mu.Lock()
		defer s.hooks.mu.Unlock()
		return s.hooks.envFile
	}
	return v
}

// notifyAfter is how long a question may stay unanswered before the hooks of
// Notification are told (H-125).
const notifyAfter = 6 * time.Second

// notifying tells of a question that nobody answers. stop ends the wait.
func (s *Session) notifying(base hook.Base, toolName string) (stop func()) {
	if !s.hooks.run.Has(hook.Notification) || envvar.On(s.cfg.Getenv("CLAUDE_CODE_DISABLE_PERMISSION_PROMPT_NOTIFY_HOOKS")) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(s.base)
	s.hooks.side.Go(func() {
		defer cancel()
		timer := time.NewTimer(notifyAfter)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s.runHooks(s.base, &hook.NotificationInput{
			Base: base, Message: "Your permission is needed to use " + toolName, Title: "Permission needed",
			NotificationType: "permission_prompt",
		}, nil, "")
	})
	return cancel
}

// endHooks runs the hooks of SessionEnd, once, within their time (H-63), and
// ends what hooks left running (H-70).
func (s *Session) endHooks() {
	s.hooks.ended.Do(func() {
		if s.hooks.begun.Load() && s.hooks.run.Has(hook.SessionEnd) {
			limit := s.hooks.run.EndTimeout()
			if ms, ok := millis(s.cfg.Getenv("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS")); ok {
				limit = ms
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(s.base), limit)
			defer cancel()
			s.runHooks(ctx, &hook.SessionEndInput{Base: s.about(), Reason: "other"}, nil, "")
		}
	})
}

// closeHooks ends what hooks left running (H-70).
func (s *Session) closeHooks() {
	s.hooks.run.Close()
	s.hooks.side.Wait()
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	if s.hooks.envFile != "" {
		_ = os.Remove(s.hooks.envFile)
		_ = os.Remove(filepath.Dir(s.hooks.envFile))
		s.hooks.envFile = ""
	}
}

// background are the tasks that run, for the hooks of Stop (H-129).
func (t *tasks) background() (list []hook.BackgroundTask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.live {
		list = append(list, hook.BackgroundTask{
			ID: l.ID, Type: l.Type, Status: "running", Description: hook.Capped(l.Description),
		})
	}
	return slices.Clip(list)
}

// millis reads a number of milliseconds.
func millis(v string) (time.Duration, bool) {
	n, err := strconv.ParseUint(v, 10, 32)
	return time.Duration(n) * time.Millisecond, err == nil
}
