package hookrun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/proc"
)

// grace is the time between asking a command to end and killing it.
const grace = 300 * time.Millisecond

// command runs a command to its result, or starts it in the background.
func (r *Runner) command(ctx context.Context, h hook.Handler, in hook.Input, raw []byte, c Call) hook.Result {
	life := r.begin(in, h.Command.Async)
	p, err := r.start(h, in.Event(), raw, c.Dir)
	if err != nil {
		life.finish(nil, nil, err)
		return hook.Result{Fault: fmt.Errorf("it could not be started: %w", err)}
	}
	if h.Command.Async {
		r.leave(p, h, in, life)
		return hook.Result{}
	}
	defer life.progress(p.out)()
	x, err := p.wait(ctx)
	if err != nil { // H-64
		life.finish(p.out, nil, err)
		r.debug(in, err.Error())
		return hook.Result{Fault: err}
	}
	res := hook.Result{}
	var log string
	res.Output, log, res.Fault = hook.FromCommand(in.Event(), x)
	life.finish(p.out, &x.Code, res.Fault)
	r.debug(in, log)
	r.bound(&res.Output)
	return res
}

// leave lets a command go on in the background (H-68, H-69).
func (r *Runner) leave(p *process, h hook.Handler, in hook.Input, life *life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end {
		p.tree.End(0)
		p.close()
		life.finish(p.out, nil, context.Canceled)
		return
	}
	r.wait.Go(func() {
		ctx, cancel := context.WithTimeoutCause(r.background, h.Timeout, &TimeoutError{h.Timeout})
		defer cancel()
		defer life.progress(p.out)()
		x, err := p.wait(ctx)
		if err != nil {
			life.finish(p.out, nil, err)
			r.debug(in, err.Error())
			return
		}
		life.finish(p.out, &x.Code, nil)
		if h.Command.Rewake && x.Code == 2 {
			r.wake(x)
			return
		}
		o := hook.ParseAsync(in.Event(), x.Stdout)
		r.bound(&o)
		if o.Context == "" && o.SystemMessage == "" {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.late = append(r.late, hook.Result{Name: hook.Name(in), Output: o})
	})
}

func (r *Runner) wake(x hook.Exit) {
	text := strings.TrimSpace(string(x.Stderr))
	if text == "" {
		text = strings.TrimSpace(string(x.Stdout))
	}
	if r.cfg.Wake != nil && text != "" {
		r.cfg.Wake(r.short(text))
	}
}

// process is a command that runs.
type process struct {
	tree           *proc.Tree
	out            *captured
	stdin          *os.File
	stdout, stderr *pipe
}

// start starts a command with the event on its standard input.
func (r *Runner) start(h hook.Handler, ev hook.Event, raw []byte, dir string) (_ *process, err error) {
	mark := r.family.Mark()
	cmd, preset, err := r.program(h, mark)
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Env = dir, r.environ(h, ev)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		cmd.Dir = r.cfg.ProjectDir
	}
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p := &process{stdin: feed, out: &captured{}}
	end := make([]byte, 32)
	_, _ = rand.Read(end) // never fails
	end[0] = 0xFF         // in no text
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.stdout, err = newPipe(end); err != nil {
		return nil, err
	}
	if p.stderr, err = newPipe(end); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, p.stdout.w, p.stderr.w
	if p.tree, err = r.family.Start(cmd, mark, preset); err != nil {
		return nil, err
	}
	go p.stdout.pump(p.out.addStdout)
	go p.stderr.pump(p.out.addStderr)
	go func() { // ends when the command has read it, or with close
		_, _ = feed.Write(append(raw[:len(raw):len(raw)], '\n'))
		_ = feed.Close()
	}()
	return p, nil
}

// wait waits for the exit of the command itself, not for what it started: that
// lives until the session ends (B-073). When ctx ends first the command is
// killed with all that came of it.
func (p *process) wait(ctx context.Context) (hook.Exit, error) {
	defer p.close()
	select {
	case <-p.tree.Exited():
	case <-ctx.Done():
		p.tree.End(grace)
		p.stdout.drain()
		p.stderr.drain()
		return hook.Exit{}, context.Cause(ctx)
	}
	p.stdout.drain()
	p.stderr.drain()
	return hook.Exit{Code: p.tree.ExitCode(), Stdout: p.out.stdout, Stderr: p.out.stderr}, nil
}

func (p *process) close() {
	_ = p.stdin.Close()
	p.stdout.close()
	p.stderr.close()
}

// program is the command that a handler means (H-26). In arguments, and for
// PowerShell, the variables of H-29 are put in; sh and bash do that themselves,
// since they are in the environment: put in by us, a directory's name could
// become a command.
func (r *Runner) program(h hook.Handler, mark proc.Mark) (cmd *exec.Cmd, preset bool, err error) {
	c := h.Command
	if c.Args != nil {
		args := make([]string, len(c.Args))
		for i, a := range c.Args {
			args[i] = r.expand(h, a)
		}
		return exec.Command(r.expand(h, c.Command), args...), false, nil
	}
	shell := c.Shell
	if shell == "" && runtime.GOOS == "windows" {
		if shell = "powershell"; found("bash") != "" {
			shell = "bash"
		}
	}
	switch shell {
	case "powershell":
		path := found("pwsh", "powershell")
		if path == "" {
			return nil, false, errors.New("there is no PowerShell on this machine")
		}
		return exec.Command(path, "-NoProfile", "-NonInteractive", "-Command", r.expand(h, c.Command)), false, nil
	case "bash":
		path := found("bash")
		if path == "" {
			return nil, false, errors.New("there is no bash on this machine")
		}
		return exec.Command(path, "-c", mark.Shell()+c.Command), mark.Shell() != "", nil
	}
	return exec.Command("/bin/sh", "-c", c.Command), false, nil
}

func found(names ...string) string {
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			if abs, err := filepath.Abs(path); err == nil {
				return abs
			}
		}
	}
	return ""
}

// vars are the variables of H-28 that are substituted too.
func (r *Runner) vars(h hook.Handler) [][2]string {
	vars := [][2]string{{"CLAUDE_PROJECT_DIR", r.cfg.ProjectDir}}
	if h.PluginRoot != "" {
		vars = append(vars, [2]string{"CLAUDE_PLUGIN_ROOT", h.PluginRoot})
	}
	if h.PluginData != "" {
		vars = append(vars, [2]string{"CLAUDE_PLUGIN_DATA", h.PluginData})
	}
	return vars
}

func (r *Runner) expand(h hook.Handler, s string) string {
	var pairs []string
	for _, v := range r.vars(h) {
		pairs = append(pairs, "${"+v[0]+"}", v[1])
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// environ is the environment of a command (H-28, H-30, K-260, K-261).
func (r *Runner) environ(h hook.Handler, ev hook.Event) []string {
	var env []string
	if r.cfg.Environ != nil {
		for _, v := range r.cfg.Environ() {
			if !strings.HasPrefix(v, "CLAUDE_ENV_FILE=") {
				env = append(env, v)
			}
		}
	}
	for _, v := range r.vars(h) {
		env = append(env, v[0]+"="+v[1])
	}
	env = append(env, "CLAUDE_CODE_SESSION_ID="+r.cfg.SessionID, "CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1")
	switch ev {
	case hook.SessionStart, hook.Setup, hook.CwdChanged, hook.FileChanged:
		if r.cfg.EnvFile != nil {
			if path := r.cfg.EnvFile(); path != "" {
				env = append(env, "CLAUDE_ENV_FILE="+path)
			}
		}
	}
	return env
}
