package proc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// needsWatch is false: marks are never used again.
const needsWatch = false

// Shell returns a command for bash or zsh that sets the mark.
func (m Mark) Shell() string { return fmt.Sprintf("ulimit -S -x %d 2>/dev/null; ", m.value) }

// setMark marks a child that has not been waited for. What it forked before is
// not marked.
func setMark(pid int, m Mark) bool {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &old); err != nil {
		return false
	}
	return unix.Prlimit(pid, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: m.value, Max: old.Max}, nil) == nil
}

// markChildren marks what a process has forked before it got its own mark.
func markChildren(pid int, m Mark) {
	for _, task := range numbers("/proc/" + strconv.Itoa(pid) + "/task") {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, task))
		for _, f := range bytes.Fields(raw) {
			child, err := strconv.Atoi(string(f))
			if limit, ok := lockLimit(child); err == nil && ok && limit != m.value {
				setMark(child, m)
				markChildren(child, m)
			}
		}
	}
}

// process is one process for good: a number alone may be used again.
type process struct {
	pid   int
	start uint64 // since boot
}

type status struct {
	process
	ppid, sid int
	dead      bool // a zombie, or less
}

// readStatus reads /proc/<pid>/stat; ok is false when there is no such process.
func readStatus(pid int) (s status, ok bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	return parseStatus(pid, raw)
}

func parseStatus(pid int, raw []byte) (s status, ok bool) {
	// The name of the program, in parentheses, may itself contain any byte.
	end := bytes.LastIndexByte(raw, ')')
	if end < 0 {
		return s, false
	}
	f := bytes.Fields(raw[end+1:])
	if len(f) < 20 {
		return s, false
	}
	s.pid, s.dead = pid, f[0][0] == 'Z' || f[0][0] == 'X'
	s.ppid, _ = strconv.Atoi(string(f[1]))
	s.sid, _ = strconv.Atoi(string(f[3]))
	s.start, _ = strconv.ParseUint(string(f[19]), 10, 64)
	return s, true
}

func pids() []int { return numbers("/proc") }

// numbers returns the names in a directory that are numbers.
func numbers(dir string) []int {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	out := make([]int, 0, len(names))
	for _, n := range names {
		if n, err := strconv.Atoi(n); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// search finds the processes with some marks.
type search struct {
	family *Family
	mine   func(mark uint64) bool
	byEnv  bool
	send   func(process, syscall.Signal) // process.signal; tests look on
}

func (f *Family) search(mine func(uint64) bool) search {
	f.treeMu.Lock()
	defer f.treeMu.Unlock()
	return search{f, mine, f.byEnv, process.signal}
}

func (t *Tree) search() search {
	return t.family.search(func(v uint64) bool { return v == t.mark.value })
}

func (s search) marked(pid int) bool {
	mine, _ := s.looksMarked(pid)
	return mine
}

// looksMarked also says whether it is sure: a process that is becoming another
// program has no environment for an instant.
func (s search) looksMarked(pid int) (mine, sure bool) {
	limit, ok := lockLimit(pid)
	if ok && s.mine(limit) {
		return true, true
	}
	if !s.byEnv {
		return false, true
	}
	mark, ok := envMark(pid)
	return s.mine(mark), ok || !hasProgram(pid)
}

// hasProgram is false for what is dead and for the kernel's own threads.
func hasProgram(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil
}

// How often, and after which time, a process without an environment is looked
// at again.
const (
	execTries = 5
	execPause = 200 * time.Microsecond
)

// markedPIDs returns the marked processes, dead ones too.
func (s search) markedPIDs() []int {
	var out, unsure []int
	look := pids()
	for try := 0; len(look) > 0; try++ {
		for _, pid := range look {
			switch mine, sure := s.looksMarked(pid); {
			case mine:
				out = append(out, pid)
			case !sure:
				unsure = append(unsure, pid)
			}
		}
		look, unsure = unsure, nil
		if len(look) == 0 || try == execTries {
			break
		}
		time.Sleep(execPause)
	}
	return out
}

func lockLimit(pid int) (uint64, bool) {
	var l unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &l)
	if err == nil {
		return l.Cur, true
	}
	if !errors.Is(err, unix.EPERM) {
		return 0, false
	}
	// It runs as another user. The file may be read all the same.
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0, false
	}
	_, line, _ := bytes.Cut(raw, []byte("Max file locks"))
	f := bytes.Fields(line)
	if len(f) == 0 {
		return 0, false
	}
	v, err := strconv.ParseUint(string(f[0]), 10, 64)
	return v, err == nil
}

// envMark returns the mark in the environment that a process started with; 0:
// none. ok is false where there is no environment.
func envMark(pid int) (mark uint64, ok bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return 0, true
	}
	for v := range bytes.SplitSeq(raw, []byte{0}) {
		if hex, ok := bytes.CutPrefix(v, []byte(envKey+"=")); ok {
			mark, _ := strconv.ParseUint(string(hex), 16, 64)
			return mark, true
		}
	}
	return 0, len(raw) > 0
}

// alive returns the marked processes that are not dead, and buries those dead
// ones that have become children of this program: it is the first process of a
// container, or the reaper of its descendants.
func (s search) alive() []status {
	var out []status
	for _, pid := range s.markedPIDs() {
		st, ok := readStatus(pid)
		switch {
		case !ok:
		case !st.dead:
			out = append(out, st)
		case st.ppid == os.Getpid() && !s.family.isRoot(pid):
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
	return out
}

// isRoot reports whether somebody else waits for the process.
func (f *Family) isRoot(pid int) bool {
	f.treeMu.Lock()
	defer f.treeMu.Unlock()
	for t := range f.trees {
		if t.cmd.Process.Pid == pid {
			return true
		}
	}
	return false
}

// all returns the marked processes and those that belong to them by session or
// parent.
func (s search) all() []status {
	found := s.alive()
	if len(found) == 0 {
		return nil
	}
	in, sessions := map[int]bool{}, map[int]bool{}
	for _, p := range found {
		in[p.pid], sessions[p.sid] = true, true
	}
	self, ok := readStatus(os.Getpid())
	if !ok {
		return found
	}
	delete(sessions, self.sid)
	delete(sessions, 0)
	var others []status
	for _, pid := range pids() {
		if pid == self.pid || pid == 1 || in[pid] {
			continue
		}
		if st, ok := readStatus(pid); ok && !st.dead {
			others = append(others, st)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range others {
			if !in[p.pid] && (in[p.ppid] || sessions[p.sid]) {
				found, in[p.pid], grown = append(found, p), true, true
			}
		}
	}
	return found
}

// signal sends to this process and to no other that has got its number since.
func (p process) signal(sig syscall.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if st, ok := readStatus(p.pid); !ok || st.process != p {
		return
	}
	if err != nil || errors.Is(unix.PidfdSendSignal(fd, sig, nil, 0), unix.ENOSYS) {
		_ = syscall.Kill(p.pid, sig) // no descriptor to be had
	}
}

// kill kills until nothing is left, or for killWait. Processes are stopped
// first, so that they cannot fork while their relatives are being killed. known
// are processes to kill even where the search does not find them any more.
func (s search) kill(known processes) {
	stopped := processes{}
	for p := range known {
		stopped[p] = true
		s.send(p, syscall.SIGSTOP)
	}
	pause := time.Millisecond
	for end, round := time.Now().Add(killWait), 1; time.Now().Before(end); round++ {
		found := s.all()
		if len(found) == 0 && !stopped.alive() {
			return
		}
		fresh := false
		for _, p := range found {
			if !stopped[p.process] {
				stopped[p.process], fresh = true, true
				s.send(p.process, syscall.SIGSTOP)
			}
		}
		if fresh && round%10 != 0 {
			continue // look for what they started meanwhile
		}
		for p := range stopped { // also what no longer shows its mark
			s.send(p, syscall.SIGKILL)
		}
		time.Sleep(pause)
		pause = min(2*pause, 20*time.Millisecond)
	}
}

// processes are some that were seen.
type processes map[process]bool

// alive reports whether one of them is not dead yet. One that is on its way has
// lost its environment already, and with it maybe its mark.
func (ps processes) alive() bool {
	for p := range ps {
		if st, ok := readStatus(p.pid); ok && st.process == p && !st.dead {
			return true
		}
	}
	return false
}

// group sends to the process group where there is no /proc to search in, while
// its number cannot belong to others.
func (t *Tree) group(sig syscall.Signal) {
	if len(pids()) == 0 && !t.hasExited() {
		_ = syscall.Kill(-t.cmd.Process.Pid, sig)
	}
}

// Alive reports whether the tree has a process that is not dead.
func (t *Tree) Alive() bool { return len(t.search().alive()) > 0 }

// terminate asks all processes of the tree to end, and returns them: those that
// are known by a parent or a session only cannot be found when that one has
// ended.
func (t *Tree) terminate() processes {
	all := t.search().all()
	// The first process comes first: a shell whose child has ended before it
	// says so in the output of the command.
	slices.SortStableFunc(all, func(a, b status) int { return cmp.Compare(a.start, b.start) })
	known := processes{}
	for _, p := range all {
		known[p.process] = true
		p.signal(syscall.SIGTERM)
	}
	t.group(syscall.SIGTERM)
	return known
}

func (t *Tree) kill(known processes) {
	t.search().kill(known)
	t.group(syscall.SIGKILL)
}

func (f *Family) killAll() {
	f.treeMu.Lock()
	used := f.count > 0
	var roots []*Tree
	for t := range f.trees {
		roots = append(roots, t)
	}
	f.treeMu.Unlock()
	if !used {
		return
	}
	f.search(func(v uint64) bool { return v&^(1<<memberBits-1) == f.base }).kill(nil)
	for _, t := range roots {
		t.group(syscall.SIGKILL)
	}
}

// EndLeft kills what commands of a process that has ended have left: those that
// have entry, a variable as "NAME=value", in their environment, and all that came
// of them. It leaves those alone that another process of this program has started
// and still waits for, does nothing where this process has the variable itself, and
// on systems other than Linux, where such processes are not found.
func EndLeft(entry string) {
	if name, value, _ := strings.Cut(entry, "="); os.Getenv(name) == value {
		return // it came of that command
	}
	marks, owned := map[uint64]bool{}, map[uint64]bool{}
	for _, pid := range pids() {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || !bytes.Contains(raw, []byte(entry+"\x00")) {
			continue
		}
		mark, ok := envMark(pid)
		st, there := readStatus(pid)
		if !ok || !there || mark == 0 {
			continue
		}
		marks[mark] = !owned[mark]
		if st.ppid != os.Getpid() && isProgram(st.ppid) {
			marks[mark], owned[mark] = false, true
		}
	}
	if len(marks) == len(owned) {
		return
	}
	s := NewFamily().search(func(v uint64) bool { return marks[v] })
	s.byEnv = true
	s.kill(nil)
}

// isProgram reports a process that runs the same program as this one.
func isProgram(pid int) bool {
	theirs, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	mine, own := os.Readlink("/proc/self/exe")
	return err == nil && own == nil && theirs == mine
}

func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
