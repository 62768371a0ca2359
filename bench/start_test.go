package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// bareSource is a program that sends the same request and nothing else.
const bareSource = `package main

import (
	"net/http"
	"os"
	"strings"
)

func main() {
	r, err := http.NewRequest("POST", os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", strings.NewReader("{}"))
	if err != nil {
		os.Exit(1)
	}
	if a, err := http.DefaultClient.Do(r); err == nil {
		a.Body.Close()
	}
}
`

// BenchmarkStart starts the built command and, in turn, a program that only
// sends a request. It reports the time from the start of the process to the
// first request at the server, and the command's resident memory then.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	source := filepath.Join(dir, "bare", "main.go")
	if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(source, []byte(bareSource), 0o644); err != nil {
		b.Fatal(err)
	}
	for name, pkg := range map[string]string{"turnwright": "../cmd/turnwright", "bare.exe": source} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, name), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	asked := make(chan time.Time, 16)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- time.Now()
		_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is only seen behind the body
		<-r.Context().Done()               // until the program is ended
	}))
	defer srv.Close()
	home := b.TempDir()
	start := func(name string, args ...string) (took time.Duration, rss int) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(dir, name), args...)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "ANTHROPIC_BASE_URL="+srv.URL, "ANTHROPIC_API_KEY=x", "CLAUDE_CONFIG_DIR="+home)
		began := time.Now()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		select {
		case at := <-asked:
			took = at.Sub(began)
		case <-ctx.Done():
			b.Fatal("no request came")
		}
		rss = resident(cmd.Process.Pid)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return took, rss
	}
	var ours, bare []time.Duration
	memory := 0
	for b.Loop() {
		took, rss := start("turnwright", "-p", "hi", "--model", "claude-sonnet-4-5")
		ours, memory = append(ours, took), max(memory, rss)
		took, _ = start("bare.exe")
		bare = append(bare, took)
	}
	slices.Sort(ours)
	slices.Sort(bare)
	middle := func(d []time.Duration) float64 { return float64(d[len(d)/2].Microseconds()) / 1000 }
	b.ReportMetric(middle(ours), "ms")
	b.ReportMetric(middle(bare), "bare-ms")
	b.ReportMetric(middle(ours)/middle(bare), "ratio")
	b.ReportMetric(float64(memory)/1024, "MB-resident")
}

// resident is a process's resident memory in kilobytes, 0 where it is not known.
func resident(pid int) (kb int) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, _ = fmt.Sscan(rest, &kb)
		}
	}
	return kb
}
