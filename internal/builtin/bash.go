package builtin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// BashOptions changes how Bash works. The zero value is right for users.
type BashOptions struct {
	// TempDir holds outputs too large for memory while their command runs; ""
	// is the system's directory for temporary files.
	TempDir string
	// Grace is the time between asking a command to end and killing it; 0 is
	// 2 s.
	Grace time.Duration
}

// Bash runs shell commands (T-107 to T-129). Background work, a directory that
// persists and the sandbox come with issue B.
//
// What a command leaves running ("server &") lives on after its call and is
// killed by Close, at the end of the session (T-128): use one Bash a session.
type Bash struct {
	opts BashOptions

	mu     sync.Mutex
	closed bool
	stop   chan struct{}     // closed by Close
	left   sync.WaitGroup    // goroutines that watch what calls left behind
	pipes  map[*os.File]bool // outputs that are pumped; true: its call has finished
}

// NewBash returns the Bash tool for one session.
func NewBash(opts BashOptions) *Bash {
	if opts.Grace <= 0 {
		opts.Grace = 2 * time.Second
	}
	return &Bash{opts: opts, stop: make(chan struct{}), pipes: map[*os.File]bool{}}
}

const bashSchema = `{"type":"object","properties":{` +
	`"command":{"type":"string","minLength":1,"description":"The command, for bash or zsh"},` +
	`"timeout":{"type":"number","minimum":1,"description":"Time limit in milliseconds; at most 600000 unless configured otherwise"},` +
	`"description":{"type":"string","description":"What the command does, in a few words"},` +
	`"run_in_background":{"type":"boolean","description":"Not available yet; only false"},` +
	`"dangerouslyDisableSandbox":{"type":"boolean","description":"Not available yet; only false"}},` +
	`"required":["command"],"additionalProperties":false}`

// Spec describes the tool.
func (*Bash) Spec() tool.Spec {
	return tool.Spec{
		Name: "Bash",
		Description: "Runs a command in a new shell in the working directory and returns what it writes and its exit code. " +
			"Directory changes and variables do not persist between commands. Standard input is empty. " +
			"The default time limit is 120 s.",
		InputSchema: json.RawMessage(bashSchema),
	}
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
// processes that it started keep its output open (B-099).
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
	case in.Background:
		return nil, errors.New("run_in_background: running in the background is not built yet (issue B); leave the field out")
	case in.DisableSandbox:
		return nil, errors.New("dangerouslyDisableSandbox: there is no sandbox yet (issue B); leave the field out")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o := &output{tempDir: b.opts.TempDir}
	defer o.close()
	run, err := b.run(ctx, c, in, o)
	if err != nil {
		return nil, err
	}
	return run.result(c, in, o)
}

// ending says how a command ended.
type ending struct {
	code    int
	took    time.Duration
	timeout time.Duration // set when that ended it
	tooMuch bool          // it wrote more than killSize
	cancel  error         // the cause when the call was cancelled
}

// run runs the command and collects what it writes until its shell exits.
func (b *Bash) run(ctx context.Context, c *tool.Call, in bashInput, o *output) (*ending, error) {
	shell, err := findShell(c.Env)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(c.Env.Dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the working directory %s does not exist or is no directory", c.Env.Dir)
	}
	command := in.Command
	if command[0] == '-' || command[0] == '+' {
		command = " " + command // or the shell would read it as an option
	}
	cmd := exec.Command(shell, "-c", command)
	cmd.Dir = c.Env.Dir
	cmd.Env = childEnv(c)
	ownGroup(cmd)
	// Standard input stays nil: the null device.

	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("Bash: %w", err)
	}
	cmd.Stdout, cmd.Stderr = w, w // one pipe: the order of arrival is kept

	// A call that begins while Close runs must either be seen by it or fail.
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		r.Close()
		w.Close()
		return nil, errors.New("Bash: the session is closed")
	}
	b.left.Add(1) // for pump
	b.pipes[r] = false
	b.mu.Unlock()

	start := time.Now()
	if err := cmd.Start(); err != nil {
		b.dropPipe(r)
		b.left.Done()
		w.Close()
		return nil, fmt.Errorf("the shell %s cannot be started: %w", shell, cause(err))
	}
	g := groupOf(cmd)

	mark := make([]byte, 32)
	_, _ = rand.Read(mark) // never fails
	collected := make(chan struct{})
	tooMuch := make(chan struct{})
	go func() {
		defer b.left.Done()
		defer b.dropPipe(r)
		pump(r, o, mark, func() { close(tooMuch) }, func() { close(collected) })
	}()
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the state says how it ended
		close(exited)
	}()

	end := &ending{}
	limit := commandTimeout(c.Env, in.Timeout)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	killed := true
	select {
	case <-exited:
		killed = false
	case <-timer.C:
		end.timeout = limit
	case <-ctx.Done():
		end.cancel = context.Cause(ctx)
	case <-b.stop:
		end.cancel = errors.New("the session is closed")
	case <-tooMuch:
		end.tooMuch = true
	}
	end.code = -1
	if !killed || endGroup(g, exited, b.opts.Grace) {
		end.code = exitCode(cmd)
	}
	end.took = time.Since(start)
	// Everything that the shell wrote stands before the mark. Writing it cannot
	// block for long: pump reads.
	_, _ = w.Write(mark)
	w.Close()
	<-collected
	b.finishPipe(r)
	if !killed && g.alive() {
		b.watch(g)
	}
	return end, nil
}

// killWait bounds the wait for a killed process: one that hangs in the kernel
// does not end, and must not hold up the session.
const killWait = 5 * time.Second

// endGroup asks a process group to end and kills what has not ended after the
// grace (B-101). It reports whether its first process has exited.
func endGroup(g group, exited <-chan struct{}, grace time.Duration) bool {
	g.terminate()
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case <-deadline.C:
			g.kill()
			select {
			case <-exited:
				return true
			case <-time.After(killWait):
				return false
			}
		case <-poll.C:
			select {
			case <-exited:
				if !g.alive() {
					return true
				}
			default:
			}
		}
	}
}

// watch lets a group that a call left running live until Close. It looks
// whether the group still is there, because its number is free for others
// afterwards and must not be killed then.
func (b *Bash) watch(g group) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		g.kill()
		return
	}
	b.left.Add(1)
	go func() {
		defer b.left.Done()
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for g.alive() {
			select {
			case <-t.C:
			case <-b.stop:
				g.kill()
				return
			}
		}
	}()
}

// finishPipe notes that the call has finished: from now on Close may end the
// pumping, which a process outside the group can make last long.
func (b *Bash) finishPipe(r *os.File) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, pumped := b.pipes[r]; !pumped {
		return
	}
	b.pipes[r] = true
	if b.closed {
		r.Close()
	}
}

func (b *Bash) dropPipe(r *os.File) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pipes, r)
	r.Close()
}

// Close ends running commands, kills what earlier ones left running and waits
// for it. Later calls fail. It may be called more than once.
func (b *Bash) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.stop)
		for r, finished := range b.pipes {
			if finished {
				r.Close()
			}
		}
	}
	b.mu.Unlock()
	b.left.Wait()
	return nil
}

var _ interface {
	tool.Tool
	tool.Accesser
	tool.Closer
} = (*Bash)(nil)

// The ceilings of what stands in a result (T-117, T-118), in characters.
const (
	inlineSuccess = 30_000
	inlineFailure = 10_000
	previewSize   = 2_000
)

type bashOutput struct {
	Stdout                   string `json:"stdout"`
	Stderr                   string `json:"stderr"`
	Interrupted              bool   `json:"interrupted"`
	TimedOutAfterMs          int64  `json:"timedOutAfterMs,omitempty"`
	ReturnCodeInterpretation string `json:"returnCodeInterpretation,omitempty"`
	PersistedOutputPath      string `json:"persistedOutputPath,omitempty"`
	PersistedOutputSize      int64  `json:"persistedOutputSize,omitempty"`
}

// result renders the ending for the model and for tool_use_result.
func (e *ending) result(c *tool.Call, in bashInput, o *output) (*tool.Result, error) {
	var out bashOutput
	var text, head string
	failed := true
	switch {
	case e.cancel != nil:
		head = fmt.Sprintf("Command was interrupted after %s", spelledDuration(e.took))
		out.Interrupted = true
	case e.timeout > 0:
		head = "Command timed out after " + spelledDuration(e.timeout)
		out.Interrupted, out.TimedOutAfterMs = true, e.timeout.Milliseconds()
	case e.tooMuch:
		head = fmt.Sprintf("Command was killed: it wrote more than %d bytes", int64(killSize))
		out.Interrupted = true
	case e.code == 0:
		failed = false
	default:
		if meaning, ok := meaningOfOne(in.Command); e.code == 1 && ok {
			failed, out.ReturnCodeInterpretation = false, meaning
			break
		}
		head = fmt.Sprintf("Exit code %d", e.code)
	}

	if failed {
		out.Stdout = trimEnd(o.excerpt(min(inlineFailure, readBack(c.Env))))
		text = head
		if strings.TrimSpace(out.Stdout) != "" {
			text += "\n" + out.Stdout
		} else {
			text += "\n(no output)"
		}
	} else {
		out.Stdout = o.success(c, &out)
		switch {
		case strings.TrimSpace(out.Stdout) != "":
			text = out.Stdout
		case out.ReturnCodeInterpretation != "":
			text = "(no output: " + out.ReturnCodeInterpretation + ")"
		default:
			text = "(no output)" // T-129
		}
	}
	raw, err := message.Encode(out)
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: []message.Block{message.NewText(text)}, IsError: failed, Structured: raw}, nil
}

// success returns the output, or where it is too long for the model a preview
// and the path of the file that holds it (T-117).
func (o *output) success(c *tool.Call, out *bashOutput) string {
	limit := min(inlineSuccess, readBack(c.Env))
	if text, ok := o.text(limit); ok {
		return trimEnd(text)
	}
	data, err := o.saved()
	var path string
	if err == nil && c.Env.PutBlob != nil {
		path, err = c.Env.PutBlob(blobName(c.ID), data)
	}
	if err != nil || path == "" {
		why := "it could not be saved"
		if err != nil {
			why += ": " + err.Error()
		}
		return trimEnd(o.excerpt(limit)) + fmt.Sprintf("\n\n[The output has %d characters; %s.]", o.runes, why)
	}
	out.PersistedOutputPath, out.PersistedOutputSize = path, int64(len(data))
	what := "It"
	if int64(len(data)) < o.size {
		what = fmt.Sprintf("Its first %d of %d bytes", len(data), o.size)
	}
	verb := "is"
	if what != "It" {
		verb = "are"
	}
	return fmt.Sprintf("The output is too long to be shown (%d characters). %s %s saved in %s\n\nIts first %d characters:\n%s",
		o.runes, what, verb, path, previewSize, trimEnd(o.preview(previewSize)))
}

// blobName makes a file name of the call's id, which comes from outside.
func blobName(id string) string {
	safe := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	return "bash-" + safe[:min(len(safe), 100)] + ".txt"
}

func trimEnd(s string) string { return strings.TrimRight(s, "\n\r\t ") }
