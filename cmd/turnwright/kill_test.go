//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/crash"
)

// killsVar is how many sessions TestKilledAnytime runs.
const killsVar = "TURNWRIGHT_KILLS"

// killed counts what a campaign met.
type killed struct {
	mu sync.Mutex
	sessions, kills, early, ended,
	notExecuted, unknown, recovered, lost, doubled int
}

// TestKilledAnytime ends the command with SIGKILL at random instants, several times a
// session, while it makes calls of Bash that write to a ledger, and resumes it
// until it comes to its end. The model repeats what was not executed, and looks
// at the ledger where it is not known. No line may be lost or be there twice, and
// the server refuses every request that the API would refuse.
func TestKilledAnytime(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "S-44", "S-21", "S-27", "B-114")
	sessions := 100
	if testing.Short() {
		sessions = 8
	}
	if text := os.Getenv(killsVar); text != "" {
		var err error
		if sessions, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", killsVar, err)
		}
	}
	var all killed
	usual := all.session(t, rand.New(rand.NewPCG(0, 0)), 0, 0) // how long one takes that is left alone
	todo := make(chan uint64)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for seed := range todo {
				if !t.Failed() {
					r := rand.New(rand.NewPCG(seed, 1))
					all.session(t, r, 1+r.IntN(5), usual)
				}
			}
		})
	}
	for seed := range uint64(sessions) {
		todo <- seed
	}
	close(todo)
	workers.Wait()
	t.Logf("%d sessions of about %v: %d kills, %d before there was a session, %d after its end; calls: %d not executed, %d unknown, %d found out; lost %d, doubled %d",
		all.sessions, usual.Round(time.Millisecond), all.kills, all.early, all.ended, all.notExecuted, all.unknown, all.recovered, all.lost, all.doubled)
	if sessions >= 100 && (all.notExecuted == 0 || all.unknown+all.recovered == 0) {
		t.Error("no kill met a call")
	}
}

// ledgerPlan is what a session has to do: calls alone, several at once, some that
// take their time before or behind their line.
func ledgerPlan(r *rand.Rand) *crash.Plan {
	task := crash.Task{Prompt: "do-it"}
	n := 0
	for range 2 + r.IntN(3) {
		var step []crash.Call
		for range 1 + r.IntN(3) {
			n++
			mark := fmt.Sprintf("mark-%d.", n)
			command := "echo " + mark + " >> ledger"
			switch r.IntN(4) {
			case 0:
				command += "; sleep 0.0" + strconv.Itoa(r.IntN(10))
			case 1:
				command = "ls; " + command
			case 2:
				if runtime.GOOS == "linux" { // elsewhere it may write after the model has looked
					command = "sleep 0." + strconv.Itoa(r.IntN(3)) + "; " + command
				}
			}
			step = append(step, crash.Call{Tool: "Bash", Input: fmt.Sprintf(`{"command":%q}`, command), Mark: mark, Changes: true})
		}
		task.Steps = append(task.Steps, step)
	}
	return &crash.Plan{
		Tasks: []crash.Task{task},
		Look:  crash.Call{Tool: "Bash", Input: `{"command":"cat ledger # what-was-done"}`, Mark: "what-was-done"},
	}
}

// session runs one session whose first processes are killed, and returns how
// long its last one took.
func (k *killed) session(t *testing.T, r *rand.Rand, kills int, usual time.Duration) time.Duration {
	id := fmt.Sprintf("6f2c0000-0000-4000-8000-%012x", rand.Uint64()>>16) // another one in each run
	plan := ledgerPlan(r)
	request := make(chan struct{}, 1000)
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		request <- struct{}{}
		return plan.Next(r)
	}))
	defer srv.Close()
	dir, temp := t.TempDir(), t.TempDir()
	var began time.Time
	early := 0
	for life := 0; ; life++ {
		p := command(t, srv, "-p", "--allowedTools", "Bash")
		p.Dir = dir
		for name, v := range clean(dir) {
			p.Env = append(p.Env, name+"="+v)
		}
		p.Env = append(p.Env, "ANTHROPIC_BASE_URL="+srv.URL(), "TMPDIR="+temp)
		found, _ := filepath.Glob(filepath.Join(dir, "config", "projects", "*", id+".jsonl"))
		if info, err := os.Stat(strings.Join(found, "")); err == nil && info.Size() > 0 {
			prompt := "Go on."
			if text, _ := os.ReadFile(found[0]); !bytes.Contains(text, []byte("do-it")) {
				prompt = "do-it"
			}
			p.Args = append(p.Args, "--resume", id, prompt)
		} else {
			if life > 0 && life <= kills {
				early++
			}
			p.Args = append(p.Args, "--session-id", id, "do-it")
		}
		var out bytes.Buffer
		p.Stdout = &out
		for len(request) > 0 {
			<-request
		}
		began = time.Now()
		if err := p.Start(); err != nil {
			t.Error(err)
			return 0
		}
		if life < kills {
			k.kill(p, r, request, usual)
			continue
		}
		err := p.Wait()
		if strings.Contains(out.String()+p.stderr.String(), "No conversation found") { // it had a torn line only
			continue
		}
		if err != nil || !strings.Contains(out.String(), "All done.") {
			t.Errorf("the last process: %v\n%s\n%s", err, &out, &p.stderr)
		}
		break
	}
	took := time.Since(began)
	text, err := os.ReadFile(filepath.Join(dir, "ledger"))
	if err != nil {
		t.Error(err)
	}
	lost, doubled := plan.Faults(strings.Fields(string(text)))
	if len(lost)+len(doubled) > 0 {
		var told strings.Builder
		for _, m := range srv.Last().Messages() {
			for _, b := range m.Content {
				fmt.Fprintf(&told, "%s %s %s%s%s\n", m.Role, b.Type, b.Text, b.Input, fmt.Sprint(b.Content))
			}
		}
		t.Errorf("lost %q, doubled %q; the ledger:\n%s\nthe conversation:\n%s", lost, doubled, text, &told)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions++
	k.early += early
	k.lost, k.doubled = k.lost+len(lost), k.doubled+len(doubled)
	for _, m := range srv.Last().Messages() {
		for _, b := range m.Content {
			if b.Type != "tool_result" {
				continue
			}
			switch text := fmt.Sprint(b.Content); {
			case strings.Contains(text, "Not executed:"):
				k.notExecuted++
			case strings.Contains(text, "Interrupted:"):
				k.unknown++
			case strings.Contains(text, "Its output is lost"):
				k.recovered++
			}
		}
	}
	return took
}

// kill ends a process: at any instant of its time, or a moment after one of its
// requests.
func (k *killed) kill(p *process, r *rand.Rand, request chan struct{}, usual time.Duration) {
	gone := make(chan error, 1)
	go func() { gone <- p.Wait() }()
	wait := time.Duration(r.Int64N(int64(usual)))
	if r.IntN(3) > 0 {
		for range 1 + r.IntN(4) {
			select {
			case <-request:
				continue
			case <-gone:
				gone <- nil
			}
			break
		}
		wait = time.Duration(r.Int64N(int64(usual) / 8))
	}
	ended := false
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		_ = p.Process.Kill()
		err := <-gone
		var exit *exec.ExitError
		ended = !errors.As(err, &exit)
	case <-gone:
		ended = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if ended {
		k.ended++
	} else {
		k.kills++
	}
}
