package report

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestParseLine(t *testing.T) {
	for _, tc := range []struct {
		line  string
		id    string // "" when the line is no requirement
		class Class
		text  string
		fault string
	}{
		{line: "- L-9001 (core) The first request.", id: "L-9001", class: Core, text: "The first request."},
		{line: "- L-9078 (ext) Bounded.", id: "L-9078", class: Extended, text: "Bounded."},
		{line: "- L-9233 (host) Login.", id: "L-9233", class: Host, text: "Login."},
		{line: "- **K-9001** (C) `-p` selects.", id: "K-9001", class: Core, text: "`-p` selects."},
		{line: "- **W-9430** (X) Path.", id: "W-9430", class: Extended, text: "Path."},
		{line: "| **K-9054** | C py | `--x` | uuid | keep |", id: "K-9054", class: Core, text: "`--x` · uuid · keep"},
		{line: "| **K-9079** | H | `--advisor` | model |", id: "K-9079", class: Host, text: "`--advisor` · model"},
		{line: "| **W-9141** (C) | PreToolUse | `tool_name` |", id: "W-9141", class: Core, text: "PreToolUse · `tool_name`"},
		{line: "| W-9090 | C | `interrupt` | – |", id: "W-9090", class: Core, text: "`interrupt` · –"},
		{line: `| O-9009 | core | a\|b | list |`, id: "O-9009", class: Core, text: "a|b · list"},
		{line: "- **T-9001** core — One name.", id: "T-9001", class: Core, text: "One name."},
		{line: "- **T-9003** extended — More.", id: "T-9003", class: Extended, text: "More."},
		{line: "- **C-9137** host-specific — Keys.", id: "C-9137", class: Host, text: "Keys."},
		{line: "### B-004 (low) Empty list.", id: "B-004", class: Case, text: "Empty list."},
		{line: "See L-9001 (core)."},
		{line: "- OPEN-L1 num_turns: L-9020."},
		{line: "- **OPEN-K1** Flags."},
		{line: "| id | class | text |"},
		{line: "- L-9012 forgot its class", fault: "L-9012 has no class"},
		{line: "- **T-9012** corely — text", fault: "T-9012 has no class"},
	} {
		r, ok, err := parseLine(tc.line)
		if tc.fault != "" {
			if err == nil || err.Error() != tc.fault {
				t.Errorf("%q: error %v, want %q", tc.line, err, tc.fault)
			}
			continue
		}
		if err != nil || ok != (tc.id != "") || r.ID != tc.id || r.Class != tc.class || r.Statement != tc.text {
			t.Errorf("%q: got %+v, %v, %v", tc.line, r, ok, err)
		}
	}
}

func TestReadContractFaults(t *testing.T) {
	page := func(text string) fstest.MapFS {
		return fstest.MapFS{"loop.md": {Data: []byte(text)}}
	}
	for name, tc := range map[string]struct {
		fs   fstest.MapFS
		want string
	}{
		"twice":    {page("- L-9001 (core) a\n\n- L-9001 (ext) b\n"), "loop.md:3: L-9001 stands already at loop.md:1"},
		"no class": {page("\n- L-9001 a\n"), "loop.md:2: L-9001 has no class"},
		"empty":    {page("nothing here\n"), "contract: no requirement in 1 pages"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadContract(tc.fs); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestIDsSortByNumber(t *testing.T) {
	got := sortIDs([]string{"M-9001", "L-9001", "L-998", "L-9001"})
	if want := []string{"L-998", "L-9001", "M-9001"}; !slices.Equal(got, want) {
		t.Errorf("sortIDs: %q, want %q", got, want)
	}
}

func TestLetters(t *testing.T) {
	l, err := ParseLetters("# head\nA L-9001..9010 M-9001\nB L-9003..9004 # part\n\nlater L-9004\n")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"L-9001": "A", "L-9002": "A", "L-9003": "B", "L-9004": "later", "L-9010": "A", "L-9011": "", "M-9001": "A", "M-9002": "", "S-9001": "",
	} {
		if got := l.Of(id); got != want {
			t.Errorf("Of(%s) = %q, want %q", id, got, want)
		}
	}
	for text, want := range map[string]string{
		"Z L-9001":       `letters:1: "Z" is neither`,
		"\nA":            "letters:2: A names no id",
		"A L-9005..9002": `letters:1: range "L-9005..9002" runs backwards`,
		"A L-9001..M2":   `letters:1: "L-9001..M2" is neither`,
	} {
		if _, err := ParseLetters(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ParseLetters(%q): %v, want %q", text, err, want)
		}
	}
}

func TestFirstWords(t *testing.T) {
	long := strings.Repeat("word ", 17)
	for _, tc := range []struct{ in, want string }{
		{"Short. [agent-loop, seed-a]", "Short."},
		{"a|b", `a\|b`},
		{`a\|b`, `a\|b`},
		{long + "`code span that is cut`", strings.TrimSpace(long) + " …"},
		{strings.Repeat("ä", 200) + " b", strings.Repeat("ä", statementRunes) + " …"},
	} {
		if got := firstWords(tc.in); got != tc.want {
			t.Errorf("firstWords(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

// TestRepositories generates the page for small repositories kept as txtar
// files: the input files, and "want", the page's part below the preamble, or
// "error".
func TestRepositories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			want := map[string]string{}
			var inputs []txtar.File
			for _, f := range archive.Files {
				if f.Name == "want" || f.Name == "error" {
					want[f.Name] = string(f.Data)
					continue
				}
				inputs = append(inputs, f)
				to := filepath.Join(root, filepath.FromSlash(f.Name))
				if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
					t.Fatal(err)
				}
				// A nested archive's own markers are written with a leading "> ".
				if err := os.WriteFile(to, bytes.ReplaceAll(f.Data, []byte("> -- "), []byte("-- ")), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got := map[string]string{}
			page, err := Generate(root)
			if err != nil {
				got["error"] = err.Error() + "\n"
			} else {
				got["want"] = strings.TrimPrefix(string(page), preamble)
			}
			if maps.Equal(got, want) {
				return
			}
			if !*update {
				t.Fatalf("got:\n%s%s\nwant:\n%s%s", got["want"], got["error"], want["want"], want["error"])
			}
			archive.Files = inputs
			for _, part := range slices.Sorted(maps.Keys(got)) {
				archive.Files = append(archive.Files, txtar.File{Name: part, Data: []byte(got[part])})
			}
			if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestRoot(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	for _, dir := range []string{deep, filepath.Join(root, "docs", "contract")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Root(deep); err == nil {
		t.Error("found a root without go.mod")
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Root(deep); err != nil || got != root {
		t.Errorf("Root = %q, %v, want %q", got, err, root)
	}
}
