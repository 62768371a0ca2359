package turnwright_test

import (
	"go/build/constraint"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// What a tool reads is in the transcript, which nobody else may read; the
// documentation says so.
func TestCredentialsInTranscript(t *testing.T) {
	conform.Covers(t, "S-23", "S-22")
	const secret = "TOKEN=hunter2-0123456789"
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("Read", `{"file_path":".env"}`), agenttest.Text("I see.")))
	o := onDisk(t, srv)
	if err := os.WriteFile(filepath.Join(o.CWD, ".env"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := transcript(t, o, query(t, "What is in .env?", o).result.SessionID)
	raw, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(raw), secret) {
		t.Errorf("the transcript has not what the tool read (%v)", err)
	}
	if runtime.GOOS != "windows" {
		for at, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(at); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", at, info.Mode(), err)
			}
		}
	}
	said := regexp.MustCompile(`(?i)credentials[^.]*\btranscript\b`)
	for _, name := range []string{"docs/sessions.md", "README.md"} {
		text, err := os.ReadFile(name)
		if err != nil || !said.Match(text) {
			t.Errorf("%s does not say that credentials end up in the transcript (%v)", name, err)
		}
	}
}

// The loop makes no difference between platforms, and the documentation tells
// which of them were tested: those that .ci/run builds, each with what was done.
func TestPlatforms(t *testing.T) {
	conform.Covers(t, "O-47")
	for _, dir := range []string{"internal/loop", "internal/history", "internal/journal", "internal/budget", "internal/engine"} {
		names, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(names) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			if strings.Contains(text, "runtime.GOOS") || regexp.MustCompile(`_(windows|linux|darwin|unix|other)(_test)?\.go$`).MatchString(name) {
				t.Errorf("%s makes a difference between platforms", name)
			}
			for line := range strings.Lines(text) {
				if constraint.IsGoBuild(line) {
					t.Errorf("%s is built for some platforms only", name)
				}
			}
		}
	}
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Platforms\n")
	systems := regexp.MustCompile(`for os in ([a-z ]+); do`).FindStringSubmatch(string(script))
	if !ok || systems == nil {
		t.Fatal("no section on platforms, or no build for them")
	}
	for _, system := range strings.Fields(systems[1]) {
		if !strings.Contains(section, "\n| "+system+" | built") {
			t.Errorf("what was done on %s is not told", system)
		}
	}
	if rows := strings.Count(section, "\n| ") - 1; rows != len(strings.Fields(systems[1])) {
		t.Errorf("%d platforms are told of, %s are built", rows, systems[1])
	}
}
