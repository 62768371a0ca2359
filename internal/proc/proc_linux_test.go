package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
)

const patience = 60 * time.Second

// starts runs a shell command and returns once it has written the ids of n
// processes into the file $F, one a line.
func starts(t *testing.T, f *Family, script string, n int, preset bool) (*Tree, []int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pids")
	m := f.Mark()
	if preset {
		script = m.Shell() + script
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = append(os.Environ(), "F="+file)
	tree, err := f.Start(cmd, m, preset)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		raw, _ := os.ReadFile(file)
		if lines := strings.Fields(string(raw)); len(lines) >= n && strings.HasSuffix(string(raw), "\n") {
			var out []int
			for _, l := range lines {
				pid, err := strconv.Atoi(l)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, pid)
			}
			return tree, out
		}
	}
	t.Fatalf("%q has not written %d process ids", script, n)
	return nil, nil
}

func lives(pid int) bool {
	st, ok := readStatus(pid)
	return ok && !st.dead
}

// escapes are ways out of a process group that leave a sleeping process, which
// writes its id.
var escapes = map[string]string{
	"own session":               `setsid sh -c 'echo $$ >>$F; exec sleep 300' & wait`,
	"one program after another": `export L='exec sh -c "$L"'; setsid sh -c 'echo $$ >>$F; exec sh -c "$L"' & wait`,
	"daemon":                    `(setsid sh -c 'sh -c "echo \$\$ >>$F; exec sleep 300" & exit' &) ; sleep 300`,
	"no environment":            `(setsid env -i F=$F PATH=$PATH sh -c '(echo $(exec sh -c "echo \$PPID") >>$F; exec sleep 300) & exit' &) ; sleep 300`,
	"no descriptors":            `(setsid sh -c 'echo $$ >>$F; exec sleep 300' <&- >&- 2>&- &); exit`,
	"deaf":                      `trap '' TERM HUP INT; (trap '' TERM HUP INT; setsid sh -c 'echo $$ >>$F; while :; do sleep 1; done') & wait`,
	"stopped":                   `(setsid sh -c 'echo $$ >>$F; kill -STOP $$; sleep 300' &); sleep 300`,
	"name with parentheses":     `cp /bin/sleep "$(dirname $F)/) Z 1 1 ("; "$(dirname $F)/) Z 1 1 (" 300 & echo $! >>$F; wait`,
	"the shell became other":    `echo $$ >>$F; exec sleep 300`,
}

func TestEndFindsAll(t *testing.T) {
	for name, script := range escapes {
		for _, preset := range []bool{true, false} {
			if name == "no environment" && !preset {
				continue // without the mark from the start there is nothing to find it by
			}
			t.Run(name+"/preset "+strconv.FormatBool(preset), func(t *testing.T) {
				conform.Covers(t, "T-128", "B-100", "B-101")
				f := NewFamily()
				defer f.End()
				other, otherPID := starts(t, f, `echo $$ >>$F; sleep 300`, 1, true)
				tree, ids := starts(t, f, script, 1, preset)
				if !lives(ids[0]) {
					t.Fatal("not running")
				}
				if !tree.End(50 * time.Millisecond) {
					t.Error("the first process has not exited")
				}
				if lives(ids[0]) {
					t.Error("still runs")
				}
				if !lives(otherPID[0]) || !other.Alive() || other.hasExited() {
					t.Error("another command was killed")
				}
				f.End()
				if lives(otherPID[0]) {
					t.Error("runs after the end of the family")
				}
			})
		}
	}
}

// TestLeftovers: what outlives its command is found at the end of the family,
// without having been watched.
func TestLeftovers(t *testing.T) {
	conform.Covers(t, "T-128")
	f := NewFamily()
	var all []int
	for range 20 {
		tree, ids := starts(t, f, `(setsid sh -c 'echo $$ >>$F; exec sleep 300' >/dev/null 2>&1 &) ; sleep 300 & echo $! >>$F; true`, 2, true)
		<-tree.Exited()
		if !tree.Alive() || tree.ExitCode() != 0 {
			t.Error("what it left is not seen")
		}
		all = append(all, ids...)
	}
	f.End()
	f.End()
	for _, pid := range all {
		if lives(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
	if _, err := f.Start(exec.Command("true"), f.Mark(), false); err != ErrEnded {
		t.Errorf("after the end: %v", err)
	}
}

// TestLateMark: a command that forks before it has its mark is found whole,
// and so is a process of it that is becoming another program again and again.
func TestLateMark(t *testing.T) {
	for _, name := range []string{"own session", "one program after another", "deaf"} {
		t.Run(name, func(t *testing.T) {
			conform.Covers(t, "T-128", "B-101")
			f := NewFamily()
			defer f.End()
			file := filepath.Join(t.TempDir(), "late")
			f.late = func() {
				for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
					if _, err := os.Stat(file); err == nil {
						return
					}
				}
			}
			tree, ids := starts(t, f, escapes[name]+" & sleep 0.05; :>"+file+"; wait", 1, false)
			if !tree.End(50 * time.Millisecond) {
				t.Error("the first process has not exited")
			}
			if lives(ids[0]) {
				t.Error("still runs")
				_ = syscall.Kill(ids[0], syscall.SIGKILL)
			}
		})
	}
}

// relatives are processes without a mark of their own: they set the limit anew
// and have an empty environment. They write their ids.
var relatives = map[string]struct {
	script string
	n      int
}{
	// Its parent is gone: it is known by the session of the shell.
	"of the session": {`( (ulimit -S -x unlimited; echo $BASHPID >>$F; exec env -i sleep 300) & ); `, 1},
	// In a session of its own: known by its parent.
	"child": {`(ulimit -S -x unlimited; exec setsid env -i F=$F PATH=$PATH bash -c 'echo $$ >>$F; exec sleep 300') & `, 1},
	// By its parent, which is known by its own alone, and so on.
	"generations": {`(ulimit -S -x unlimited; exec setsid env -i F=$F PATH=$PATH bash -c '
		echo $$ >>$F; setsid bash -c "echo \$\$ >>\$F; setsid bash -c \"echo \\\$\\\$ >>\\\$F; exec sleep 300\" & wait" & wait') & `, 3},
}

// TestEndFindsRelatives: what belongs to a marked process without being marked
// is ended with it.
func TestEndFindsRelatives(t *testing.T) {
	for name, test := range relatives {
		t.Run(name, func(t *testing.T) {
			conform.Covers(t, "T-128", "B-101")
			f := NewFamily()
			defer f.End()
			// The shell is deaf, so that it must be killed.
			tree, ids := starts(t, f, `trap '' TERM; `+test.script+`while :; do sleep 1; done`, test.n, true)
			t.Cleanup(func() {
				for _, pid := range ids {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			})
			for _, pid := range ids {
				for end := time.Now().Add(patience); tree.search().marked(pid) && time.Now().Before(end); {
					time.Sleep(10 * time.Millisecond)
				}
				if !lives(pid) || tree.search().marked(pid) {
					t.Fatalf("process %d of %d: not running, or marked", pid, ids)
				}
			}
			if !tree.End(10 * time.Millisecond) {
				t.Error("the shell has not exited")
			}
			for _, pid := range ids {
				if lives(pid) {
					t.Errorf("process %d of %d still runs", pid, ids)
				}
			}
		})
	}
}

// TestStopBeforeKill: no process is killed before all that are known have been
// stopped, or those left would fork while their relatives die.
func TestStopBeforeKill(t *testing.T) {
	conform.Covers(t, "B-101")
	f := NewFamily()
	defer f.End()
	tree, ids := starts(t, f, `for i in 1 2 3 4 5; do setsid sleep 300 & echo $! >>$F; done; wait`, 5, true)
	s := tree.search()
	stopped, killed := map[int]bool{}, map[int]bool{}
	s.send = func(p process, sig syscall.Signal) {
		switch sig {
		case syscall.SIGSTOP:
			if len(killed) > 0 {
				t.Errorf("%d is stopped after %d processes were killed", p.pid, len(killed))
			}
			stopped[p.pid] = true
		case syscall.SIGKILL:
			if !stopped[p.pid] {
				t.Errorf("%d is killed and was not stopped", p.pid)
			}
			killed[p.pid] = true
		}
		p.signal(sig)
	}
	s.kill(nil)
	for _, pid := range append(ids, tree.cmd.Process.Pid) {
		if !stopped[pid] || !killed[pid] || lives(pid) {
			t.Errorf("%d: stopped %v, killed %v, lives %v", pid, stopped[pid], killed[pid], lives(pid))
		}
	}
}

// TestForkTree ends a tree that goes on forking while it is killed.
func TestForkTree(t *testing.T) {
	conform.Covers(t, "B-101")
	f := NewFamily()
	// At most a few dozen processes at a time: each ends after its children.
	tree, _ := starts(t, f, `g() { trap '' TERM; if [ $1 -gt 0 ]; then g $(($1-1)) & g $(($1-1)) & fi; sleep 0.1; wait; }
		while :; do setsid bash -c "$(declare -f g); g 3" & echo $! >>$F; sleep 0.3; done`, 2, true)
	tree.End(10 * time.Millisecond)
	if tree.Alive() {
		t.Error("processes are left")
	}
	f.End()
}

func TestExitCodes(t *testing.T) {
	f := NewFamily()
	defer f.End()
	for script, want := range map[string]int{"exit 0": 0, "exit 77": 77, "kill -KILL $$": 137, "kill -TERM $$; sleep 300": 143} {
		tree, err := f.Start(exec.Command("bash", "-c", script), f.Mark(), false)
		if err != nil {
			t.Fatal(err)
		}
		<-tree.Exited()
		if got := tree.ExitCode(); got != want {
			t.Errorf("%q: %d, want %d", script, got, want)
		}
	}
	if _, err := f.Start(exec.Command("/does/not/exist"), f.Mark(), false); err == nil {
		t.Error("started nothing")
	}
}

// TestReusedNumber: a process that has the number of one of ours but is another
// gets no signal.
func TestReusedNumber(t *testing.T) {
	f := NewFamily()
	defer f.End()
	_, ids := starts(t, f, `echo $$ >>$F; sleep 300`, 1, true)
	st, ok := readStatus(ids[0])
	if !ok {
		t.Fatal("no such process")
	}
	st.start--
	st.signal(9)
	if !lives(ids[0]) {
		t.Error("a process of another start was killed")
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("12 (a) b) S 1 12 12 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 5678 0 0"))
	f.Add([]byte(") Z"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		st, ok := parseStatus(7, raw)
		if ok && st.pid != 7 || !ok && st != (status{}) {
			t.Errorf("%q: %+v, %v", raw, st, ok)
		}
	})
}
