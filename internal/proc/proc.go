package proc

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// ErrEnded is what Start returns after End.
var ErrEnded = errors.New("no command can be started any more: their owner has ended")

// killWait bounds the wait for killed processes: one that hangs in the kernel
// does not end, and must not hold up its owner.
const killWait = 5 * time.Second

// Family is all the processes that one owner starts. It may be used from
// several goroutines. It holds nothing while no command runs.
type Family struct {
	base uint64 // what the marks of the family have in common

	mu    sync.RWMutex // held for reading while a command is being started
	ended bool

	treeMu sync.Mutex
	count  uint64
	trees  map[*Tree]bool // whose first process runs or whose group must be watched
	byEnv  bool           // a tree may have processes without the limit
	ending bool           // no watch begins any more
	late   func()         // tests: runs between the start of a command and its mark
	watch  sync.WaitGroup
	stop   chan struct{}
}

// memberBits is how many bits of a mark tell the commands of a family apart.
const memberBits = 20

// NewFamily returns a family without processes.
func NewFamily() *Family {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	// 61 bits with the first one set: a limit that nobody sets, below "unlimited".
	base := (binary.LittleEndian.Uint64(b[:])>>4 | 1<<60) &^ (1<<memberBits - 1)
	return &Family{base: base, trees: map[*Tree]bool{}, stop: make(chan struct{})}
}

// Mark is what the processes of one command have in common.
type Mark struct{ value uint64 }

// Mark returns a mark that has not been used.
func (f *Family) Mark() Mark {
	f.treeMu.Lock()
	defer f.treeMu.Unlock()
	f.count++
	return Mark{f.base | f.count&(1<<memberBits-1)}
}

// envKey is the variable that carries the mark in the environment.
const envKey = "TURNWRIGHT_PROCESS"

func (m Mark) env() string { return envKey + "=" + strconv.FormatUint(m.value, 16) }

// Tree is a command and all processes that came of it.
type Tree struct {
	family *Family
	cmd    *exec.Cmd
	mark   Mark
	exited chan struct{}
}

// Start starts cmd in a session of its own and marks its processes. preset says
// that cmd marks itself first, with the text that Mark.Shell returns; without
// it a process that is forked within the first instant may carry the mark in
// its environment only. The caller must not call cmd.Wait.
func (f *Family) Start(cmd *exec.Cmd, m Mark, preset bool) (*Tree, error) {
	f.mu.RLock() // End waits, so that it sees this command or Start sees the end
	defer f.mu.RUnlock()
	if f.ended {
		return nil, ErrEnded
	}
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], m.env())
	ownSession(cmd)
	t := &Tree{family: f, cmd: cmd, mark: m, exited: make(chan struct{})}
	// A tree is known before its first process can be a zombie that reap sees.
	f.treeMu.Lock()
	err := cmd.Start()
	if err == nil {
		f.trees[t] = true
		if f.late != nil {
			f.late()
		}
		if !setMark(cmd.Process.Pid, m) || !preset {
			f.byEnv = true
			markChildren(cmd.Process.Pid, m)
		}
	}
	f.treeMu.Unlock()
	if err != nil {
		return nil, err
	}
	go t.wait()
	return t, nil
}

func (t *Tree) wait() {
	_ = t.cmd.Wait() // the state says how it ended
	f := t.family
	f.treeMu.Lock()
	switch {
	case !needsWatch || !t.Alive():
		delete(f.trees, t)
	case !f.ending: // else End has it
		f.watch.Go(t.watchGroup)
	}
	f.treeMu.Unlock()
	close(t.exited)
}

// watchGroup looks whether the group still is there, because its number is
// free for others afterwards and must not be killed then.
func (t *Tree) watchGroup() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for t.Alive() {
		select {
		case <-tick.C:
		case <-t.family.stop:
			return // End has the tree
		}
	}
	t.family.treeMu.Lock()
	delete(t.family.trees, t)
	t.family.treeMu.Unlock()
}

// Exited is closed when the first process has exited; others may live on.
func (t *Tree) Exited() <-chan struct{} { return t.exited }

// ExitCode returns the exit code of the first process as shells write it: 128
// and the signal's number for one that a signal ended; -1 while it runs.
func (t *Tree) ExitCode() int {
	select {
	case <-t.exited:
		return exitCode(t.cmd)
	default:
		return -1
	}
}

// hasExited reports whether the first process has been waited for.
func (t *Tree) hasExited() bool {
	select {
	case <-t.exited:
		return true
	default:
		return false
	}
}

// End asks all processes of the tree to end and, after the grace, kills what
// has not, also what is started meanwhile. It reports whether the first process
// has exited.
func (t *Tree) End(grace time.Duration) bool {
	known := t.terminate()
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		select {
		case <-deadline.C:
			t.kill(known)
			select {
			case <-t.exited:
				return true
			case <-time.After(killWait):
				return false
			}
		case <-time.After(pause):
			if t.hasExited() && !t.Alive() && !known.alive() {
				return true
			}
		}
	}
}

// End kills every process of the family and waits for it. Start fails from now
// on. It may be called more than once.
func (f *Family) End() {
	f.mu.Lock()
	first := !f.ended
	f.ended = true
	f.mu.Unlock()
	f.treeMu.Lock()
	f.ending = true
	f.treeMu.Unlock()
	if first {
		close(f.stop)
	}
	f.watch.Wait()
	f.killAll()
	f.treeMu.Lock()
	left := make([]*Tree, 0, len(f.trees))
	for t := range f.trees {
		left = append(left, t)
	}
	f.treeMu.Unlock()
	over := time.NewTimer(killWait)
	defer over.Stop()
	for _, t := range left {
		select {
		case <-t.exited:
		case <-over.C:
			return
		}
	}
}
