package builtin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/turnwright/turnwright/internal/proc"
	"github.com/turnwright/turnwright/internal/safeopen"
	"github.com/turnwright/turnwright/tool"
)

// command is a shell command that runs or has run.
type command struct {
	in     bashInput
	tree   *proc.Tree
	out    *output
	start  time.Time
	dir    string // that it started in
	notice string // what the model must know of dir
	report string // file that the shell leaves its ending in; "": none
	read   readCommand

	mark      []byte
	r, w      *os.File
	tooMuch   chan struct{} // closed when it has written more than it may
	collected chan struct{} // closed when all that its shell wrote has been taken
}

// ending says how a command ended.
type ending struct {
	code    int
	took    time.Duration
	timeout time.Duration // set when that ended it
	tooMuch bool          // it wrote more than killSize
	cancel  error         // the cause when the call was cancelled
	moved   bool          // it has not ended: it goes on in the background
}

// start starts the command. The caller waits for it with wait, or hands it to
// the background.
func (b *Bash) start(c *tool.Call, in bashInput) (_ *command, err error) {
	shell, err := findShell(c.Env)
	if err != nil {
		return nil, err
	}
	p := &command{in: in, mark: make([]byte, 32), tooMuch: make(chan struct{}), collected: make(chan struct{})}
	p.out = &output{kill: b.opts.killSize, tempDir: func() (string, error) { return b.temp.path(b.opts.TempDir, c.Env) }}
	defer func() {
		if err != nil {
			p.out.close()
			p.dropReport()
		}
	}()
	_, _ = rand.Read(p.mark) // never fails
	p.mark[0] = 0xFF         // in no text: pump never waits at the end of a line whether it is the mark
	if in.Background {
		if err := p.out.keepAll(); err != nil {
			return nil, fmt.Errorf("run_in_background: the file for the output cannot be made: %w", err)
		}
	}
	p.dir, p.notice = startDir(c.Env)
	if info, err := os.Stat(p.dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the working directory %s does not exist or is no directory", p.dir)
	}
	p.read = readOf(shell, p.dir, in.Command)
	mark := b.family.Mark()
	script, preset := in.Command, false
	if sh := shellOf(shell); sh.posix {
		if !in.Background {
			p.report = b.temp.report(b.opts.TempDir, c)
		}
		script, preset = sh.script(c.Env, mark, p.report, in.Command), sh.limits
	} else if script[0] == '-' || script[0] == '+' {
		script = " " + script // or the shell would read it as an option
	}
	cmd := exec.Command(shell, "-c", script)
	cmd.Dir = p.dir
	cmd.Env = childEnv(c, p.dir)
	// Standard input stays nil: the null device.

	if p.r, p.w, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("Bash: %w", err)
	}
	cmd.Stdout, cmd.Stderr = p.w, p.w // one pipe: the order of arrival is kept
	p.start = time.Now()
	if p.tree, err = b.family.Start(cmd, mark, preset); err != nil {
		p.r.Close()
		p.w.Close()
		return nil, fmt.Errorf("the shell %s cannot be started: %w", shell, safeopen.Cause(err))
	}
	b.mu.Lock()
	b.pipes[p.r] = false
	b.mu.Unlock()
	b.pumps.Go(func() {
		defer b.dropPipe(p.r)
		pump(p.r, p.out, p.mark, func() { close(p.tooMuch) }, func() { close(p.collected) })
	})
	return p, nil
}

// wait waits until the shell exits, or for whatever ends the wait earlier, and
// then for what it has written.
func (b *Bash) wait(ctx context.Context, c *tool.Call, p *command) *ending {
	end := &ending{}
	limit := commandTimeout(c.Env, p.in.Timeout)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	kill := true
	select {
	case <-p.tree.Exited():
		kill = false
	case <-timer.C:
		end.timeout = limit
		if b.mayMove(c, p) {
			end.moved = true
			return end
		}
	case <-ctx.Done():
		end.cancel = context.Cause(ctx)
	case <-b.stop:
		end.cancel = errors.New("the session is closed")
	case <-p.tooMuch:
		end.tooMuch = true
	}
	b.finish(p, end, kill)
	return end
}

// finish ends the command where it has not ended by itself, and takes the rest
// of its output.
func (b *Bash) finish(p *command, end *ending, kill bool) {
	if kill {
		p.tree.End(b.opts.Grace)
	}
	end.code = p.tree.ExitCode()
	end.took = time.Since(p.start)
	// Everything that the shell wrote stands before the mark. Writing it cannot
	// block for long: pump reads.
	_, _ = p.w.Write(p.mark)
	p.w.Close()
	<-p.collected
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, pumped := b.pipes[p.r]; pumped {
		// From now on Close may end the pumping, which a process that cannot be
		// killed would make last for ever.
		b.pipes[p.r] = true
	}
}

func (b *Bash) dropPipe(r *os.File) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pipes, r)
	r.Close()
}

// mayMove reports whether a command that has reached its time limit may go on
// in the background (T-131, T-132).
func (b *Bash) mayMove(c *tool.Call, p *command) bool {
	return !b.opts.NoBackground && c.Env.Tasks != nil && movable(p.in.Command) && p.out.keepAll() == nil
}
