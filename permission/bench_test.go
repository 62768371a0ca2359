package permission_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/shell"
	"github.com/turnwright/turnwright/permission"
	"mvdan.cc/sh/v3/syntax"
)

// typicalRules are the 30 of a careful project.
var typicalRules = permission.Config{
	Allow: []string{
		"Bash(npm run *)", "Bash(npm ci)", "Bash(npm test:*)", "Bash(go test *)", "Bash(go build *)", "Bash(go vet *)", "Bash(git add *)", "Bash(git commit *)", "Bash(git switch:*)",
		"Bash(make:*)", "Bash(gh pr view *)", "Bash(docker compose ps)", "Edit(/src/**)", "Read(~/notes/**)", "WebSearch",
	},
	Ask:  []string{"Bash(git push *)", "Bash(npm publish*)", "Bash(docker *)", "Edit(/package.json)", "Edit(/.github/**)"},
	Deny: []string{"Bash(rm -rf *)", "Bash(curl *)", "Bash(wget *)", "Bash(sudo *)", "Bash(git reset --hard*)", "Read(.env)", "Read(**/*.pem)", "Read(~/.ssh/**)", "Edit(/vendor/**)", "Edit(**/go.sum)"},
}

// fill is a text repeated up to the longest command that is read, or nearly.
func fill(before, unit, after string) string {
	return before + strings.Repeat(unit, (shell.MaxLength-len(before)-len(after))/len(unit)) + after
}

// nested is a text in many others: f of f of f …
func nested(text, before, after string) string {
	n := (shell.MaxLength - len(text)) / (len(before) + len(after))
	return strings.Repeat(before, n) + text + strings.Repeat(after, n)
}

type benchCommand struct{ name, command string }

var typicalCommands = []benchCommand{
	{"git-status", "git status"},
	{"go-test", "go test ./..."},
	{"pipe", "ls | grep x"},
	{"and", "npm run build && echo ok"},
	{"commit", `npm run build -- --watch=false && git commit -m "fix: the thing"`},
	{"write", "cat a.txt > out.txt"},
	{"find", "find . -name '*.go'"},
	{"read", "cat a.txt | grep -n foo"},
	{"three", "git status && ls -la src | head -20"},
}

// longCommands are as long as a command may be.
var longCommands = []benchCommand{
	{"simple", fill("", "npm run build -- --name=\"$NAME\" 'some text' && go test ./src/... | grep -v ok; ", "ls")},
	{"files", fill("", "cat a.txt src/b.go; ", "ls")},
	{"distinct", distinct()},
	{"substitutions", fill("", "echo $(cat a.txt) ", "")},
	{"subshells", nested("ls", "( ", " )")},
	{"parentheses", nested("ls", "(", ")")}, // the parser tries each pair as arithmetic first
	{"nested", nested("ls", "echo $(", ")")},
	{"word", fill("echo ", "a", "")},
	{"quoted", fill("echo '", "some text, $X (and) more; ", "'")},
	{"words", fill("", "echo a b c d e f g h ", "")},
	{"pipeline", fill("ls", " | grep x", "")},
	{"and", fill("ls", " && cat a.txt", "")},
	{"scripts", fill("", `sh -c "cat x; rm y" `, "")},
	{"here", fill("cat <<'E'\n", "some text of a file\n", "E\n")},
	{"here-expands", fill("cat <<E\n", "some $TEXT of a file\n", "E\n")},
	{"cd", fill("", "cd src && ", "ls")},
	{"rm", fill("rm ", "src/a ", "")},
	{"args", fill("cat ", "src/b.go ", "")},
	{"glob", fill("cat ", "src/* ", "")},
	{"loop", fill("for i in a b; do ", "cat \"$i\"; ", "done")},
}

// distinct is a line whose words are all different.
func distinct() string {
	var b strings.Builder
	for i := 0; b.Len() < shell.MaxLength-40; i++ {
		b.WriteString("cat src/file" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + ".go; ")
	}
	return b.String() + "ls"
}

// BenchmarkDecide is one decision, with the paths in it looked up on disk; parse
// is what the parser needs for the same text, to compare with. The bounds are
// 20 µs for a typical command and 5 ms for the longest.
func BenchmarkDecide(b *testing.B) {
	w := newWorld(b)
	if err := os.WriteFile(filepath.Join(w.project, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	p := w.policy(b, typicalRules)
	for _, group := range []struct {
		name     string
		commands []benchCommand
	}{{"typical", typicalCommands}, {"long", longCommands}} {
		for _, bb := range group.commands {
			b.Run(group.name+"/"+bb.name+"/decide", func(b *testing.B) {
				r := bash(bb.command)
				b.ReportAllocs()
				for b.Loop() {
					p.Decide(r)
				}
			})
			b.Run(group.name+"/"+bb.name+"/parse", func(b *testing.B) {
				parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := parser.Parse(strings.NewReader(bb.command), ""); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
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
