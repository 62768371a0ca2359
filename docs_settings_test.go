package turnwright_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
)

// settingsExample is a file in docs/settings.md and the table of calls behind it.
type settingsExample struct {
	file, text string
	rows       [][]string // the call, what becomes of it
	head       string     // of the second column
}

var (
	exampleFile = regexp.MustCompile("^`([^`]+)`:$")
	exampleRow  = regexp.MustCompile("^\\| `(\\w+)` (?:of|to) `(.+?)` \\| (runs|is denied)(?:: `([^`]+)`)? \\|$")
)

// settingsExamples reads the page: a line that names a file, its text, and a
// table whose head begins with "call".
func settingsExamples(t *testing.T) (all []*settingsExample) {
	t.Helper()
	doc, err := os.ReadFile("docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	var open *settingsExample // whose text is being read
	name, inTable := "", false
	for _, line := range strings.Split(string(doc), "\n") {
		switch m := exampleRow.FindStringSubmatch(line); {
		case line == "```json":
			open = &settingsExample{file: name}
			if name == "" {
				t.Error("a JSON block without the name of its file before it")
			}
		case line == "```" && open != nil:
			all, open, name = append(all, open), nil, ""
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "| call |"):
			inTable = true
			all[len(all)-1].head = strings.Trim(strings.TrimPrefix(line, "| call |"), " |")
		case inTable && m != nil:
			last := all[len(all)-1]
			last.rows = append(last.rows, m[1:])
		case inTable && strings.HasPrefix(line, "|--"):
		case inTable && strings.HasPrefix(line, "|"):
			t.Errorf("a row that this test does not run: %s", line)
		default:
			inTable = false
			if m := exampleFile.FindStringSubmatch(line); m != nil {
				name = m[1]
			}
		}
	}
	return all
}

// TestDocumentedSettings puts each file of docs/settings.md where the page says
// and has the model make each call of the table behind it.
func TestDocumentedSettings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a Unix shell")
	}
	t.Setenv("DEBUG", "1")
	examples := settingsExamples(t)
	rows := 0
	for _, e := range examples {
		for _, row := range e.rows {
			rows++
			t.Run(row[0]+" "+row[1], func(t *testing.T) { e.run(t, row) })
		}
		if len(e.rows) == 0 && !json.Valid([]byte(e.text)) {
			t.Errorf("%s is not JSON", e.file)
		}
	}
	if len(examples) < 4 || rows < 9 {
		t.Errorf("%d files, %d calls", len(examples), rows)
	}
}

func (e *settingsExample) run(t *testing.T, row []string) {
	tool, target, outcome, output := row[0], row[1], row[2], row[3]
	var srv *agenttest.Server
	input := map[string]string{"command": target}
	var o turnwright.Options
	dir := t.TempDir()
	if tool == "Write" {
		input = map[string]string{"file_path": filepath.Join(dir, target), "content": "x"}
	}
	srv = agenttest.NewServer(t, agenttest.Script(agenttest.Call(tool, string(mustJSON(input))), agenttest.Text("done")))
	o = base(t, srv)
	o.CWD = dir
	put(t, filepath.Join(dir, "config", ".env"), "SECRET=1")
	told := lines(&o)
	switch e.file {
	case "managed-settings.json":
		policy(t, e.text)
	case ".claude/settings.json", ".claude/settings.local.json":
		put(t, filepath.Join(dir, e.file), e.text)
	default:
		t.Fatalf("this test cannot place %s", e.file)
	}
	switch {
	case e.head == "in a trusted folder":
		trust(t, &o)
	case e.head == "in a folder that is not trusted":
	case strings.HasPrefix(e.head, "with `--allowedTools "):
		o.AllowedTools = []string{strings.Trim(strings.TrimPrefix(e.head, "with `--allowedTools "), "`")}
	default:
		t.Fatalf("this test does not know %q", e.head)
	}
	out := query(t, "go", o)
	res := srv.Last().LastToolResults()
	if len(res) != 1 || res[0].IsError != (outcome == "is denied") || (len(out.result.PermissionDenials) == 1) != (outcome == "is denied") {
		t.Errorf("%+v, denials %+v", res, out.result.PermissionDenials)
	}
	if output != "" && !strings.Contains(res[0].Text, output) {
		t.Errorf("output %q", res[0].Text)
	}
	if len(told()) > 0 {
		t.Errorf("told %q", told())
	}
}
