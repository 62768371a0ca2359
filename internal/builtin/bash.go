package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/proc"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// BashOptions changes how Bash works. The zero value is right for users.
type BashOptions struct {
	// TempDir holds the session's directory for outputs; "" is the system's
	// directory for temporary files. CLAUDE_CODE_TMPDIR comes before it.
	TempDir string
	// Grace is the time between asking a command to end and killing it; 0 is
	// 2 s.
	Grace time.Duration
	// NoBackground takes run_in_background out of the schema, and no command
	// moves to the background (T-135, CLAUDE_CODE_DISABLE_BACKGROUND_TASKS).
	NoBackground bool

	killSize int64 // for tests: replaces killSize
}

// Bash runs shell commands (T-107 to T-129), also in the background (T-130 to
// T-134). Use one Bash a session; TaskStop and TaskOutput share it.
//
// What a command leaves running ("server &") lives on after its call and is
// killed by Close, at the end of the session (T-128), as are background
// commands. Outputs that are too large for memory, and all those of background
// commands, are files in a directory of the session, which Close removes: a
// path that the model was told is good while the session lasts.
type Bash struct {
	opts   BashOptions
	family *proc.Family

	mu     sync.Mutex
	closed bool
	stop   chan struct{}     // closed by Close
	active sync.WaitGroup    // calls and background commands
	pumps  sync.WaitGroup    // goroutines that take the output
	pipes  map[*os.File]bool // outputs that are pumped; true: its call has finished
	temp   tempDir
	tasks  taskList
}

// NewBash returns the Bash tool for one session.
func NewBash(opts BashOptions) *Bash {
	if opts.Grace <= 0 {
		opts.Grace = 2 * time.Second
	}
	return &Bash{opts: opts, family: proc.NewFamily(), stop: make(chan struct{}), pipes: map[*os.File]bool{}}
}

const bashSchema = `{"type":"object","properties":{` +
	`"command":{"type":"string","minLength":1,"description":"The command, for bash or zsh"},` +
	`"timeout":{"type":"number","minimum":1,"description":"Time limit in milliseconds; at most 600000 unless configured otherwise"},` +
	`"description":{"type":"string","description":"What the command does, in a few words"},` +
	`%s` +
	`"dangerouslyDisableSandbox":{"type":"boolean","description":"Not available yet; only false"}},` +
	`"required":["command"],"additionalProperties":false}`

const backgroundField = `"run_in_background":{"type":"boolean","description":"Returns at once while the command runs on; its output goes to a file whose path is returned"},`

// Spec describes the tool.
func (b *Bash) Spec() tool.Spec {
	text := "Runs a command in a new shell and returns what it writes and its exit code. " +
		"The directory that the command ends in is kept for later commands while it is inside the working directories; variables are not kept. " +
		"Standard input is empty, and there is no terminal and no editor. The default time limit is 120 s."
	field := ""
	if !b.opts.NoBackground {
		field = backgroundField
		text += " With run_in_background the call returns at once; a command that reaches its time limit may go on in the background too."
	}
	return tool.Spec{Name: "Bash", Description: text, InputSchema: json.RawMessage(fmt.Sprintf(bashSchema, field))}
}

type bashInput struct {
	Command        string  `json:"command"`
	Timeout        float64 `json:"timeout"`
	Description    string  `json:"description"`
	Background     bool    `json:"run_in_background"`
	DisableSandbox bool    `json:"dangerouslyDisableSandbox"`
}

// Accesses returns the command that is run.
func (*Bash) Accesses(input json.RawMessage) ([]permission.Access, error) {
	var in bashInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("Bash: %w", err)
	}
	return []permission.Access{{Kind: permission.Exec, Target: in.Command, Written: in.Command}}, nil
}

// Call runs the command. It returns when the shell has exited, also when
// processes that it started keep its output open (B-099), or when the command
// goes on in the background.
func (b *Bash) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	var in bashInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("Bash: %w", err)
	}
	switch {
	case strings.TrimSpace(in.Command) == "":
		return nil, errors.New("command: is empty")
	case strings.ContainsRune(in.Command, 0):
		return nil, errors.New("command: contains a NUL byte")
	case in.Background && (b.opts.NoBackground || c.Env.Tasks == nil):
		return nil, errors.New("run_in_background: this session has no background work; leave the field out")
	case in.DisableSandbox:
		return nil, errors.New("dangerouslyDisableSandbox: there is no sandbox yet; leave the field out")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := b.begin(); err != nil {
		return nil, err
	}
	defer b.active.Done()

	cmd, err := b.start(c, in)
	if err != nil {
		return nil, err
	}
	if in.Background {
		return b.background(c, cmd)
	}
	end := b.wait(ctx, c, cmd)
	if end.moved {
		return b.moved(c, cmd, end)
	}
	defer cmd.out.close()
	return cmd.result(c, end)
}

// begin notes a call: one that begins while Close runs must either be waited
// for by it or fail.
func (b *Bash) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errors.New("Bash: the session is closed")
	}
	b.active.Add(1)
	return nil
}

// Close ends running commands, also those in the background, kills what earlier
// ones left running, removes the outputs and waits for all of it. Later calls
// fail. It may be called more than once.
func (b *Bash) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.stop)
	}
	b.mu.Unlock()
	b.active.Wait()
	b.family.End()
	// A process that could not be killed may hold a pipe open for ever.
	b.mu.Lock()
	for r, finished := range b.pipes {
		if finished {
			r.Close()
		}
	}
	b.mu.Unlock()
	b.pumps.Wait()
	return b.temp.remove()
}

var _ interface {
	tool.Tool
	tool.Accesser
	tool.Closer
	tool.Recoverer
} = (*Bash)(nil)
