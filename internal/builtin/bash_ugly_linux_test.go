package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/tool"
)

// ugly are commands of every kind that has been seen to leave something behind
// or to hang. Z is a sleep of an hour that is known by its argument; N is a
// small random number.
var ugly = []string{
	// Trees and escapes.
	`f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; Z; }; f 3`,
	`for i in 1 2 3 4 5 6 7 8 9 10; do Z & done; exit N`,
	`setsid Z & echo left`,
	`(setsid sh -c 'Z & exit' &) ; exit N`,
	`(setsid env -i PATH="$PATH" sh -c '(Z) & exit' >/dev/null 2>&1 &) ; echo daemon`,
	`nohup Z >/dev/null 2>&1 & disown; echo N`,
	`setsid -w bash -c 'trap "" TERM HUP INT; Z'`,
	`trap '' TERM INT HUP; (trap '' TERM; Z) & Z; Z; Z`,
	`while :; do (setsid sleep 0.05 &); sleep 0.01; done`,
	`g() { trap '' TERM; if [ $1 -gt 0 ]; then setsid -f bash -c "$(declare -f g); g $(($1-1))"; fi; Z; }; g 4`,
	`coproc Z; echo ${COPROC_PID:-none}`,
	`cat <(Z) & exec 3< <(Z); echo N`,
	`exec Z`,
	`exec setsid -f Z`,
	`Z | Z | cat; true`,
	// Closed and strange descriptors.
	`exec >&- 2>&- <&-; Z & exit N`,
	`exec 1>&2 2>&-; echo hidden; exit N`,
	`exec 0</dev/tty; cat`,
	`ulimit -n 8; for i in 1 2 3; do Z & done; cat /dev/null`,
	`mkfifo p$$; cat p$$`,
	`mkfifo q$$; (Z >q$$ &) ; exit N`,
	`exec 9>file$$; flock 9; (Z) & exit 0`,
	// Floods and bytes.
	`yes`,
	`cat /dev/zero`,
	`head -c N000000 /dev/urandom`,
	`head -c N00000 /dev/urandom >&2; exit N`,
	`(while :; do echo more; done) & echo first; exit N`,
	`head -c 400000 /dev/zero | tr '\0' '\n'; exit N`,
	`printf '\377\376\0\033[31m%s' N; printf '\360\237\230'`,
	// Waiting.
	`read x; cat; python3 -c 'input()'; echo N`,
	`kill -STOP $$; echo never`,
	`(kill -STOP $BASHPID; Z) & wait`,
	`Z`,
	`wait; sleep 0.N; exit N`,
	// Endings.
	`exit N`,
	`kill -KILL $$`,
	`kill -TERM 0`,
	`kill -SEGV $$`,
	`set -e; false; Z`,
	`trap 'Z & exit 9' EXIT; exit N`,
	`trap 'echo usr' TERM; Z & wait; wait; wait; Z`,
	`if; then`,
	`echo 'unfinished`,
	`no-such-program-N`,
	`mkdir -p d/N && cd d/N && rmdir ../N`,
	`cd /; Z & exit N`,
	`mkdir -p "e/ N'" && cd "e/ N'"; set -u; echo $nothing`,
	`unset PATH; Z; exit N`,
	`env -i /bin/sh -c 'echo N; exit N'`,
	`ulimit -S -t 1; ulimit -v 4000000; Z & true`,
}

// TestBashUgly makes many ugly calls in several sessions side by side, each
// ended by its time limit, by a cancel, in the background, or by itself, and
// then looks for what is left: processes, descriptors, files, goroutines.
// TURNWRIGHT_UGLY is the number of calls.
func TestBashUgly(t *testing.T) {
	conform.Covers(t, "T-128", "B-099", "B-100", "B-101", "B-103", "B-105", "B-106")
	calls := 200
	if testing.Short() {
		calls = 60
	}
	if v := os.Getenv("TURNWRIGHT_UGLY"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("TURNWRIGHT_UGLY is %q", v)
		}
		calls = n
	}
	const side, perSession = 4, 25
	seed := uint64(1)
	if calls > 1000 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%d calls, seed %d", calls, seed)
	// What the test binary itself opens and starts once is not counted.
	uglySession(t, rand.New(rand.NewPCG(seed, 0)), 1)
	files, goroutines := descriptors(t), runtime.NumGoroutine()

	work := make(chan uint64)
	var wg sync.WaitGroup
	for range side {
		wg.Go(func() {
			for n := range work {
				uglySession(t, rand.New(rand.NewPCG(seed, n)), perSession)
			}
		})
	}
	for n := range (calls + perSession - 1) / perSession {
		work <- uint64(n + 1)
	}
	close(work)
	wg.Wait()

	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		f, g := descriptors(t), runtime.NumGoroutine()
		if f <= files && g <= goroutines {
			t.Logf("%d descriptors and %d goroutines, as before", f, g)
			return
		}
		if time.Now().After(end) {
			t.Errorf("%d descriptors, %d before; %d goroutines, %d before", f, files, g, goroutines)
			return
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// uglySession makes n calls in a session of its own and ends it.
func uglySession(t *testing.T, rnd *rand.Rand, n int) {
	dir, temp := t.TempDir(), t.TempDir()
	tag := strconv.Itoa(100_000_000 + rand.IntN(900_000_000)) // another in every run
	k := &sink{t: t, started: map[string]tool.Task{}, ended: map[string]tool.TaskEnd{}, more: make(chan struct{})}
	b := NewBash(BashOptions{TempDir: temp, Grace: 20 * time.Millisecond})
	env := &tool.Env{
		Dir: dir, SessionID: "ugly-" + tag, State: tool.NewState(nil), Tasks: k,
		Getenv:  func(string) string { return "" },
		Environ: func() []string { return append(os.Environ(), "UGLY_TAG="+tag) },
		PutBlob: func(name string, _ []byte) (string, error) { return "/blobs/" + name, nil },
	}
	for i := range n {
		command := ugly[rnd.IntN(len(ugly))]
		command = strings.ReplaceAll(command, "Z", "sleep 3600."+tag)
		command = strings.ReplaceAll(command, "N", strconv.Itoa(1+rnd.IntN(9)))
		input := in{"command": command, "timeout": 1 + rnd.IntN(300)}
		ctx, cancel := context.WithCancel(t.Context())
		switch rnd.IntN(6) {
		case 0:
			time.AfterFunc(time.Duration(rnd.IntN(200))*time.Millisecond, cancel)
		case 1:
			input["run_in_background"] = true
		}
		raw, err := json.Marshal(input)
		if err != nil {
			t.Error(err)
		}
		uglyCall(ctx, t, b, &tool.Call{ID: fmt.Sprint("t", i), Key: fmt.Sprint(tag, "/", i), Name: "Bash", Input: raw, Env: env}, rnd.IntN(2) == 0)
		cancel()
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if len(k.started) != len(k.ended) {
		t.Errorf("%d tasks started, %d ended", len(k.started), len(k.ended))
	}
	if left := tagged(tag); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
}

// uglyCall makes one call, which must come back with something a model can
// have, and stops its task if it has become one and stop is set.
func uglyCall(ctx context.Context, t *testing.T, b *Bash, c *tool.Call, stop bool) {
	type answer struct {
		r   *tool.Result
		err error
	}
	done := make(chan answer, 1)
	go func() {
		r, err := b.Call(ctx, c)
		done <- answer{r, err}
	}()
	var a answer
	select {
	case a = <-done:
	case <-time.After(2 * patience):
		t.Errorf("%s has not returned", c.Input)
		a = <-done
	}
	if a.err != nil {
		if ctx.Err() == nil {
			t.Errorf("%s: %v", c.Input, a.err)
		}
		return
	}
	text := a.r.Content[0].Text()
	if strings.TrimSpace(text) == "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > inlineSuccess+1000 {
		t.Errorf("%s: %d bytes of text, %.50q", c.Input, len(text), text)
	}
	var out bashOutput
	if err := json.Unmarshal(a.r.Structured, &out); err != nil {
		t.Errorf("%s: %v", c.Input, err)
	}
	if out.BackgroundTaskID != "" && stop {
		raw, _ := json.Marshal(in{"task_id": out.BackgroundTaskID})
		_, err := NewTaskStop(b).Call(t.Context(), &tool.Call{Input: raw, Env: c.Env})
		if err != nil && !strings.Contains(err.Error(), "not running") {
			t.Errorf("%s: %v", c.Input, err)
		}
	}
}

// tagged returns the processes, but zombies, that have a tag in their arguments
// or their environment.
func tagged(tag string) (left []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		args, _ := os.ReadFile(d + "/cmdline")
		environ, _ := os.ReadFile(d + "/environ")
		if !bytes.Contains(args, []byte(tag)) && !bytes.Contains(environ, []byte("UGLY_TAG="+tag)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(d))
		if running(pid) {
			left = append(left, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
		}
	}
	return left
}
