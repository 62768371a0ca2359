//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestLongLines sends a long user line behind another line: it reaches the
// model whole, and comes back in a line that a client can read.
func TestLongLines(t *testing.T) {
	t.Parallel()
	for _, size := range []int{200_000, 2_000_000, 50_000_000} {
		for _, bytewise := range []bool{false, true} {
			if size > 200_000 && (bytewise || testing.Short()) && size > 2_000_000 {
				continue
			}
			t.Run(fmt.Sprint(size, bytewise), func(t *testing.T) {
				conform.Covers(t, "B-202", "W-24", "W-27", "M-40")
				got := 0
				srv := agenttest.NewServer(t, agenttest.NoValidate(), agenttest.KeepRequests(0), agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
					got = len(r.UserText())
					return agenttest.Text("Hello.")
				}))
				p := streaming(t, srv, "--no-session-persistence", "--replay-user-messages")
				line := `{"type":"control_request","request_id":"1","request":{"subtype":"initialize","hooks":null}}` + "\n" +
					`{"type":"user","message":{"role":"user","content":"` + strings.Repeat("0123456789", size/10) + `"}}` + "\n"
				p.Stdin = strings.NewReader(line)
				if bytewise {
					p.Stdin = small{strings.NewReader(line)}
				}
				var out bytes.Buffer
				p.Stdout = &out
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				if code := p.end(); code != 0 || p.stderr.Len() > 0 {
					t.Errorf("exit code %d, %s", code, &p.stderr)
				}
				if got != size {
					t.Errorf("the model got %d characters, not %d", got, size)
				}
				for l := range bytes.Lines(out.Bytes()) {
					if len(l) > 1_000_001 {
						t.Errorf("a line of %d bytes: %.100s", len(l), l)
					}
				}
				if n := bytes.Count(out.Bytes(), []byte(`"isReplay":true`)); n != 1 {
					t.Errorf("%d replays", n)
				}
			})
		}
	}
}

// small reads a few bytes at a time, without the shortcuts of io.Copy.
type small struct{ r io.Reader }

func (s small) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 113)]) }

// TestBoundedMemory floods the command with garbage and with requests whose
// answers nobody reads: its memory stays bounded, and so does what it takes in.
func TestBoundedMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("floods")
	}
	conform.Covers(t, "W-31", "K-174")
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc")
	}
	srv := agenttest.NewServer(t)
	p := streaming(t, srv)
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	// One line of garbage that is larger than the bound.
	for range 400 {
		if _, err := in.Write(bytes.Repeat([]byte("g"), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	flood := bytes.Repeat([]byte("\n"+`{"type":"control_request","request_id":"flood","request":{"subtype":"initialize"}}`), 200)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for range 1000 { // 200,000 answers of some KB, were they all taken in
			if _, err := in.Write(flood); err != nil {
				return
			}
		}
	}()
	p.waitFor("the flood is not stopped", func() bool { return asleep(p.Process.Pid) })
	if kb := rss(t, p.Process.Pid); kb > 400<<10 {
		t.Errorf("%d MB of memory", kb>>10)
	}
	// The reader comes back, and everything goes on.
	r := bufio.NewReader(out)
	n := 0
	for n < 20_000 {
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		n++
	}
	out.Close()
	if code := p.end(); code != 1 || p.stderr.Len() > 0 {
		t.Errorf("exit code %d, %s", code, &p.stderr)
	}
	<-stopped
}

// rss is the resident memory of a process in KB.
func rss(t *testing.T, pid int) (kb int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		}
	}
	return kb
}

// asleep reports a process that uses no processor time for a while.
func asleep(pid int) bool {
	ticks := func() string {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if f := strings.Fields(string(text)); len(f) > 14 {
			return f[13] + " " + f[14]
		}
		return ""
	}
	before := ticks()
	for range 50 {
		time.Sleep(10 * time.Millisecond)
		if ticks() != before {
			return false
		}
	}
	return true
}

// TestUnreadableInput is told to the client, and is the end of the input.
func TestUnreadableInput(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "L-199")
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	p := streaming(t, agenttest.NewServer(t))
	p.Stdin = dir
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 || p.stderr.Len() > 0 || !strings.Contains(out.String(), "reading standard input") {
		t.Errorf("exit code %d, %s%s", code, &out, &p.stderr)
	}
}
