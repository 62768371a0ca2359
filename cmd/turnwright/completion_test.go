//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/permission"
)

// complete asks what may stand at the end of the line, as the scripts do.
func complete(t *testing.T, words ...string) (offered []string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(append([]string{"__completeNoDesc"}, words...), nil, &out, &errs); code != 0 || strings.Contains(errs.String(), "Error") {
		t.Errorf("%q: exit code %d, %s", words, code, &errs)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[:len(lines)-1] // the last one is for the script
}

// TestCompletion offers what the program has, and nothing that it refuses.
func TestCompletion(t *testing.T) {
	flags := complete(t, "hi", "--")
	(&flagsOfAll{}).each(func(f *pflag.Flag) {
		if slices.Contains(flags, "--"+f.Name) == f.Hidden {
			t.Errorf("--%s (hidden: %v) is not offered, or is: %q", f.Name, f.Hidden, flags)
		}
	})
	for name := range laterFlags {
		if slices.Contains(flags, "--"+name) {
			t.Errorf("--%s is offered and is not built", name)
		}
	}
	if got := complete(t, ""); !slices.Equal(got, []string{"completion", "demo", "explain", "permissions", "replay", "sessions"}) {
		t.Errorf("at the start: %q", got)
	}
	if got := complete(t, "sessions", "--"); !slices.Equal(got, []string{"--all", "--help", "--json", "--limit", "--offset"}) {
		t.Errorf("of sessions: %q", got)
	}
	if got := complete(t, "sessions", "re"); !slices.Equal(got, []string{"rename"}) {
		t.Errorf("commands of sessions: %q", got)
	}
	if got := complete(t, "sessions", "fork", "--"); !slices.Equal(got, []string{"--help", "--json", "--title", "--up-to"}) {
		t.Errorf("of sessions fork: %q", got)
	}
	if got := complete(t, "completion", ""); !slices.Equal(got, shells) {
		t.Errorf("of completion: %q", got)
	}
	for _, line := range [][]string{{"-p", "--output-format"}, {"-p", "--verbose", "--input-format"}, {"-p", "--permission-mode"}} {
		values := complete(t, append(slices.Clone(line), "")...)
		if len(values) < 2 {
			t.Errorf("%q: %q", line, values)
		}
		for _, v := range values {
			args := append(slices.Clone(line), v)
			if v == "stream-json" {
				args = append(args, "--output-format", "stream-json", "--verbose")
			}
			f, err := parse(args)
			if err != nil {
				t.Errorf("%q is offered and refused: %v", args, err)
				continue
			}
			if _, err := permission.ParseMode(f.mode); f.mode != "" && err != nil {
				t.Errorf("%q is offered and refused: %v", args, err)
			}
		}
	}
	models := complete(t, "--model", "") // the shell picks those that fit
	if !slices.Contains(models, "sonnet") || !slices.Contains(models, "claude-sonnet-4-5") || slices.Contains(models, "claude-opus-4-1") {
		t.Errorf("models: %q", models)
	}
}

// flagsOfAll visits the flags of the command itself.
type flagsOfAll struct{ flags }

func (f *flagsOfAll) each(do func(*pflag.Flag)) { f.set().VisitAll(do) }

// inBash sources the script in a bash and has it complete a line whose words
// bash has split at blanks, "=" and ":".
func inBash(t *testing.T, env []string, line string, words ...string) []string {
	t.Helper()
	const ask = `source <(turnwright completion bash)
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
fn=$(complete -p turnwright | sed 's/.*-F \([^ ]*\).*/\1/')
$fn 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"`
	cmd := exec.Command("bash", append([]string{"--norc", "--noprofile", "-c", ask, "bash", line}, words...)...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	var got []string
	for l := range strings.Lines(string(out)) {
		if l = strings.TrimSpace(l); l != "" {
			got = append(got, l)
		}
	}
	return got
}

func TestCompletionInBash(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash: ", err)
	}
	t.Parallel()
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("Hello.")))
	p := command(t, srv, "-p", "the first prompt", "--session-id", "6f2c0000-0000-4000-8000-00000000000c")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d: %s", code, &p.stderr)
	}
	for _, tt := range []struct {
		line  string
		words []string // behind the command's name
		want  []string
	}{
		{"turnwright ", []string{""}, []string{"completion", "demo", "explain", "permissions", "replay", "sessions"}},
		{"turnwright se", []string{"se"}, []string{"sessions"}},
		{"turnwright --input-f", []string{"--input-f"}, []string{"--input-format"}},
		{"turnwright -p hi --output-format ", []string{"-p", "hi", "--output-format", ""}, []string{"json", "stream-json", "text"}},
		{"turnwright -p hi --output-format=st", []string{"-p", "hi", "--output-format", "=", "st"}, []string{"stream-json"}},
		{"turnwright -p hi --output-format=", []string{"-p", "hi", "--output-format", "="}, []string{"json", "stream-json", "text"}},
		{"turnwright -p 'a: b' --permission-mode dont", []string{"-p", "'a: b'", "--permission-mode", "dont"}, []string{"dontAsk"}},
		{"turnwright -p http://x --permission-mode acc", []string{"-p", "http", "://", "x", "--permission-mode", "acc"}, []string{"acceptEdits"}},
		{"turnwright completion b", []string{"completion", "b"}, []string{"bash"}},
	} {
		var got []string
		for _, line := range inBash(t, p.Env, tt.line, append([]string{"turnwright"}, tt.words...)...) {
			got = append(got, strings.Fields(line)[0]) // without the description
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: offered %q, want %q", tt.line, got, tt.want)
		}
	}
	// Of the directory that the shell is in: here there is no session.
	if got := inBash(t, p.Env, "turnwright --resume ", "turnwright", "--resume", ""); len(got) > 0 {
		t.Errorf("sessions: %q", got)
	}
	here := inDir(t, p.Dir, p.Env, "__complete", "--resume", "")
	if !strings.HasPrefix(here, "6f2c0000-0000-4000-8000-00000000000c\tthe first prompt\n") {
		t.Errorf("sessions: %q", here)
	}
	if again := inDir(t, p.Dir, p.Env, "__complete", "sessions", "show", ""); again != here {
		t.Errorf("sessions to show: %q", again)
	}
}

func inDir(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("turnwright", args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The scripts of the other shells are read by those shells where they are there.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		var out, errs bytes.Buffer
		if code := run([]string{"completion", shell}, nil, &out, &errs); code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "__complete") {
			t.Fatalf("%s: exit code %d, %s", shell, code, &errs)
		}
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		path := filepath.Join(t.TempDir(), shell)
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(shell, "-n", path).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	for _, args := range [][]string{{}, {"csh"}, {"bash", "zsh"}} {
		var out, errs bytes.Buffer
		if code := run(append([]string{"completion"}, args...), nil, &out, &errs); code != 1 || out.Len() > 0 || !strings.Contains(errs.String(), "bash, zsh, fish") {
			t.Errorf("%q: exit code %d, %q, %q", args, code, &out, &errs)
		}
	}
	var out bytes.Buffer
	if code := run([]string{"completion", "--help"}, nil, &out, &out); code != 0 || !strings.Contains(out.String(), "source <(turnwright completion bash)") {
		t.Errorf("exit code %d, %s", code, &out)
	}
}
