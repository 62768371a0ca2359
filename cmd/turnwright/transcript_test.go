//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestTranscriptText puts text that is none everywhere it can come from: the
// prompt, standard input, the title, a command's output, a file and the model.
// The transcript stays lines of compact JSON in plain UTF-8 (decision 61), in which
// the clients find what they search for.
func TestTranscriptText(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "K-300", "K-301", "K-302", "K-304", "K-320", "B-199")
	const id = "6f2c0000-0000-4000-8000-00000000000b"
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(
			agenttest.Raw(`{"type":"text","text":"lone \ud83d half, whole \ud83d\ude00, \u2028 and \u0085"}`),
			agenttest.Call("Bash", `{"command":"printf 'caf\\351 \\342\\202'; printf 'a\\377b' > odd.txt"}`),
		),
		agenttest.Call("Read", `{"file_path":"odd.txt"}`),
		agenttest.Text("größer als 5 € 😀"),
	))
	p := command(t, srv, "-p", "Maß\xff nehmen \u2028 ☃", "--allowedTools", "Bash", "--session-id", id, "--name", "Größe\xfe ☃", "--output-format", "stream-json", "--verbose")
	if err := os.Mkdir(filepath.Join(p.Dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, ".git", "HEAD"), []byte("ref: refs/heads/größe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Stdin = strings.NewReader("piped \xc3")
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, &p.stderr, &out)
	}
	found, err := filepath.Glob(filepath.Join(p.Dir, "config", "projects", "*", id+".jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	raw, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	for what, raw := range map[string][]byte{"the transcript": raw, "the stream": out.Bytes()} {
		if !utf8.Valid(raw) || !bytes.HasSuffix(raw, []byte("\n")) || bytes.HasPrefix(raw, []byte("\ufeff")) {
			t.Errorf("%s is not lines of UTF-8", what)
		}
		for line := range bytes.Lines(raw) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			var object map[string]json.RawMessage
			var compact bytes.Buffer
			if err := json.Unmarshal(line, &object); err != nil {
				t.Errorf("%s: %v in %s", what, err, line)
			} else if err := json.Compact(&compact, line); err != nil || !bytes.Equal(compact.Bytes(), line) {
				t.Errorf("%s: not compact: %s", what, line)
			}
			if bytes.ContainsAny(line, "\u0085\u2028\u2029") {
				t.Errorf("%s: a character that ends a line for the clients stands in %s", what, line)
			}
		}
		text := plainly(raw)
		for _, want := range []string{"größer als 5 € 😀", `half, whole 😀`, "caf\ufffd \ufffd", "a\ufffdb"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q\n%s", what, want, raw)
			}
		}
	}
	dir, err := filepath.EvalSymlinks(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"type":"custom-title","customTitle":"Größe` + "\ufffd" + ` ☃","sessionId":"` + id + `"}` + "\n",
		`"lastPrompt":"Maß` + "\ufffd" + ` nehmen \u2028 ☃\n\npiped ` + "\ufffd" + `"`,
		`"cwd":"` + dir + `"`, `"gitBranch":"größe"`, `"sessionId":"` + id + `"`, `"timestamp":"20`,
		`{"type":"user"`, `"isSidechain":false`,
	} {
		if !strings.Contains(plainly(raw), want) {
			t.Errorf("the clients find no %s in\n%s", want, raw)
		}
	}
}

// plainly has U+FFFD as it is: what is no text is written as the escape of it.
func plainly(raw []byte) string { return strings.ReplaceAll(string(raw), `\ufffd`, "\ufffd") }
