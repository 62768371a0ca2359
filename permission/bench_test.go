package permission_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/shell"
	"github.com/turnwright/turnwright/permission"
)

// typicalRules are those of a careful project.
var typicalRules = permission.Config{
	Allow: []string{"Bash(npm run *)", "Bash(go test *)", "Bash(go build *)", "Bash(git add *)", "Bash(git commit *)", "Bash(make:*)", "Edit(/src/**)", "Read(~/notes/**)"},
	Ask:   []string{"Bash(git push *)", "Bash(npm publish*)", "Edit(/package.json)"},
	Deny:  []string{"Bash(rm -rf *)", "Bash(curl *)", "Bash(sudo *)", "Read(.env)", "Read(**/*.pem)", "Edit(/vendor/**)"},
}

// longCommand is a command line of 10,000 characters.
func longCommand() string {
	var b strings.Builder
	for b.Len() < shell.MaxLength-80 {
		b.WriteString("npm run build -- --name=\"$NAME\" 'some text' && go test ./src/... | grep -v ok; ")
	}
	return b.String() + strings.Repeat("x", shell.MaxLength-b.Len())
}

// BenchmarkDecide is one decision, with the paths in it looked up on disk. The
// bounds are 20 µs for a typical command and 5 ms for the longest.
func BenchmarkDecide(b *testing.B) {
	w := newWorld(b)
	p := w.policy(b, typicalRules)
	for _, bb := range []struct {
		name    string
		command string
	}{
		{"one", "go test ./..."},
		{"typical", `npm run build -- --watch=false && git commit -m "fix: the thing"`},
		{"typical-read", "git status && ls -la src | head -20"},
		{"typical-file", "cat a.txt | grep -n foo"},
		{"long", longCommand()},
		{"long-files", strings.Repeat("cat a.txt src/b.go; ", 490)},
		{"long-nested", strings.Repeat("echo $(cat a.txt) ", 500)},
		{"long-word", "echo " + strings.Repeat("a", 9_900)},
		{"long-words", strings.Repeat("echo a b c d e f g h ", 470)},
		{"long-scripts", strings.Repeat(`sh -c "cat x; rm y" `, 480)},
		{"long-here", "cat <<'E'\n" + strings.Repeat("some text of a file\n", 480) + "E\n"},
		{"long-cd", strings.Repeat("cd src && ", 900) + "ls"},
		{"long-rm", "rm " + strings.Repeat("src/a ", 1600)},
		{"long-glob", "cat " + strings.Repeat("src/* ", 1600)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := bash(bb.command)
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(r)
			}
		})
	}
	file := filepath.Join(w.project, "src", "b.go")
	r := permission.Request{Tool: "Edit", Accesses: []permission.Access{{Kind: permission.Write, Target: file, Written: file}}, Input: json.RawMessage(`{}`)}
	b.Run("edit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Decide(r)
		}
	})
}

// BenchmarkNewPolicy is what is paid once for a session's rules.
func BenchmarkNewPolicy(b *testing.B) {
	w := newWorld(b)
	for b.Loop() {
		w.policy(b, typicalRules)
	}
}
