package turnwright_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"golang.org/x/tools/txtar"
)

// page is one page of the documentation.
type page struct{ name, text string }

// pages are what users read: the pages beside the contract, whose sentences
// are requirements and not instructions.
func pages(t *testing.T) (all []page) {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "README.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page{name, string(text)})
	}
	return all
}

// block is one fenced block of a page.
type block struct {
	where string // page:line
	text  string
}

// fenced returns the blocks of a language.
func (p page) fenced(language string) (all []block) {
	open := ""
	var b block
	for i, line := range strings.Split(p.text, "\n") {
		mark, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == "":
			open = mark + " "
			b = block{where: fmt.Sprintf("%s:%d", p.name, i+1)}
		case isFence:
			if strings.TrimSpace(open) == language {
				all = append(all, b)
			}
			open = ""
		case open != "":
			b.text += line + "\n"
		}
	}
	return all
}

// shellLabels are the languages of fenced blocks that hold commands.
var shellLabels = []string{"sh", "bash", "zsh", "fish", "shell", "console", "terminal"}

// shellFence finds fences with a label that looks like a shell's, so that none is
// missing above.
var shellFence = regexp.MustCompile(`^(?i)[a-z-]*(sh|shell|console|terminal|session|cmd|prompt)\b`)

var (
	// program begins a command that uses the program, maybe behind another one.
	program = regexp.MustCompile(`(^|[|(;&] ?)(\$ )?(turnwright|go run \./cmd/turnwright)( |$)`)
	// placeholder stands in a command that shows the form and cannot be run.
	placeholder = regexp.MustCompile(`\[(flags|--)|\b[A-Z]{4,}\b|\|zsh\|`)
)

// commands returns the commands of a page, each as a block of one line: those of
// fenced and indented blocks, and those in running text that use the program.
func (p page) commands() (all []block) {
	for _, language := range shellLabels {
		for _, b := range p.fenced(language) {
			for line := range strings.Lines(b.text) {
				all = append(all, block{b.where, line})
			}
		}
	}
	open, shell := false, false
	for i, line := range strings.Split(p.text, "\n") {
		b := block{where: fmt.Sprintf("%s:%d", p.name, i+1)}
		if label, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			open, shell = !open, slices.Contains(shellLabels, label)
		}
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case open && shell: // above
		case open:
			if strings.HasPrefix(line, "$ ") || program.MatchString(line) {
				b.text = line
				all = append(all, b)
			}
		case indented && (program.MatchString(code) || strings.HasPrefix(code, "$ ")):
			b.text = code
			all = append(all, b)
		default:
			for _, code := range inlineCode.FindAllString(line, -1) {
				if code = strings.Trim(code, "`"); program.MatchString(code) {
					b.text = code
					all = append(all, b)
				}
			}
		}
	}
	for i := range all {
		command := strings.TrimPrefix(strings.TrimSpace(all[i].text), "$ ")
		if at := strings.Index(command, "  "); at > 0 && !strings.Contains(command[:at], `"`) {
			command = command[:at] // a remark stands behind it
		}
		if at := strings.Index(command, " # "); at > 0 && !strings.Contains(command, "go test ./bench ") {
			command = command[:at]
		}
		all[i].text = strings.TrimSpace(command)
	}
	return slices.DeleteFunc(all, func(b block) bool {
		return b.text == "" || strings.HasPrefix(b.text, "#") || b.text == "turnwright"
	})
}

// TestDocumentedCommands finds every command of the documentation covered:
// run here against a scripted model, or by .ci/run. It looks at blocks and at
// running text.
func TestDocumentedCommands(t *testing.T) {
	covered := map[string]func(*testing.T, string){
		"go run ./cmd/turnwright demo":            ranByCI,
		"go test ./...":                           ranByCI,
		"go get github.com/turnwright/turnwright": namesModule,
		".ci/campaign --rounds 20 --fuzztime 10m": knowsFlags,
		`turnwright -p "What does this repository do?" --max-turns 10 --max-budget-usd 0.50`:                                               runsCommand,
		`turnwright -p "And which of them has no tests?" --continue`:                                                                       goesOn,
		"go install ./cmd/turnwright":                                                                                                      installs,
		`turnwright -p "Which packages have no tests?" --max-turns 10`:                                                                     runsCommand,
		`turnwright -p "Write the missing tests for ./auth" --allowedTools "Write,Edit,Bash(go test *)" --max-turns 30 --max-budget-usd 1`: runsCommand,
		`turnwright -p "And run all of them again" --continue --allowedTools "Bash(go test *)"`:                                            goesOn,
		`turnwright -p "What does this repository do?" --setting-sources user --settings '{"permissions":{"deny":["Bash(curl *)"]}}'`:      runsCommand,
		"turnwright sessions":                        goesOn,
		"turnwright sessions --all":                  goesOn,
		"turnwright sessions show":                   helps,
		"turnwright explain":                         helps,
		"turnwright replay":                          helps,
		"turnwright permissions check --json":        helps,
		"turnwright sessions show ID":                looksAfter,
		"turnwright sessions tag ID TAG":             looksAfter,
		"turnwright sessions delete ID":              looksAfter,
		"turnwright explain ID":                      looksAfter,
		"turnwright demo":                            demonstrates,
		"go run ./cmd/turnwright demo --max-turns 2": demonstrates,
		"turnwright completion":                      helps,
		"source <(turnwright completion bash)":       completes,
		"source <(turnwright completion zsh)":        completes,
		"turnwright completion fish > ~/.config/fish/completions/turnwright.fish":                                                                       completes,
		"turnwright permissions check":                                                                                                                  helps,
		"turnwright explain 6f2c…":                                                                                                                      explainsRun,
		`turnwright -p --resume "$SESSION" --rewind-files "$MESSAGE"`:                                                                                   putsBack,
		`turnwright -p "What does this repository do?" --setting-sources user`:                                                                          choosesSources,
		`turnwright -p "What does this repository do?" --setting-sources ""`:                                                                            choosesSources,
		`turnwright permissions check --rules 'deny:Bash(curl *) allow:Bash(go *)' 'go vet ./... && echo $(curl example.com)'`:                          explains,
		`turnwright permissions check --json --rules 'Bash(go *)' 'go test ./... | tee test.log'`:                                                       explains,
		`turnwright permissions check --permission-mode acceptEdits --tool Edit .git/config`:                                                            explains,
		`echo '{"type":"user","message":{"role":"user","content":"hi"}}' | turnwright --input-format stream-json --output-format stream-json --verbose`: runsStream,
	}
	if runtime.GOOS != "windows" {
		buildProgram(t) // once for all of them
	}
	seen := map[string]bool{}
	for _, p := range pages(t) {
		if p.name == "docs/conformance.md" {
			continue // generated from the contract
		}
		for i, line := range strings.Split(p.text, "\n") {
			label, ok := strings.CutPrefix(strings.TrimSpace(line), "```")
			if ok && shellFence.MatchString(label) && !slices.Contains(shellLabels, label) {
				t.Errorf("%s:%d: a block labelled %q: say in this test whether it holds commands", p.name, i+1, label)
			}
		}
		for _, b := range p.commands() {
			command := b.text
			check := covered[command]
			switch {
			case strings.HasPrefix(command, "go test ./bench ") || strings.Contains(command, " -bench "):
				check, covered[command] = runsBenchmark, runsBenchmark
			case check == nil && placeholder.MatchString(command):
				check, covered[command] = helps, helps
			}
			if check == nil {
				t.Errorf("%s: nothing runs %q; say in this test what does", b.where, command)
				continue
			}
			if !seen[command] {
				t.Run(command, func(t *testing.T) { check(t, command) })
			}
			seen[command] = true
		}
	}
	for command := range covered {
		if !seen[command] {
			t.Errorf("no page has the command %q", command)
		}
	}
}

// ranByCI finds the command among those below "Set-up", which .ci/run runs.
func ranByCI(t *testing.T, command string) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"go run ./internal/ci readme", `bash -c "$first"`, `bash -c "$second"`} {
		if !strings.Contains(string(script), step) {
			t.Errorf(".ci/run has no %s any more", step)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Set-up\n")
	section, _, _ = strings.Cut(section, "\n## ")
	i := slices.IndexFunc(page{text: section}.fenced("sh"), func(b block) bool { return strings.TrimSpace(b.text) == command })
	if i != 0 && i != 1 {
		t.Errorf("%q is not one of the first two commands below Set-up", command)
	}
}

// namesModule compares the module of "go get" with go.mod.
func namesModule(t *testing.T, command string) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "module " + strings.TrimPrefix(command, "go get ") + "\n"; !strings.HasPrefix(string(mod), want) {
		t.Errorf("go.mod does not start with %q", want)
	}
}

// installs runs "go install" into a directory of the test.
func installs(t *testing.T, command string) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", strings.Fields(command)[1:]...)
	cmd.Env = append(os.Environ(), "GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := exec.LookPath(filepath.Join(dir, "turnwright")); err != nil {
		t.Error(err)
	}
}

// knowsFlags looks for a script and for the flags that it is called with: a
// campaign takes hours.
func knowsFlags(t *testing.T, command string) {
	words := strings.Fields(command)
	script, err := os.ReadFile(words[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "--") && !strings.Contains(string(script), w) {
			t.Errorf("%s does not know %s", words[0], w)
		}
	}
}

// runsCommand runs the command as it stands there, in a shell, with the command
// built from this checkout and a scripted model behind it.
func runsCommand(t *testing.T, command string) {
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Read", `{"file_path":"README.md"}`),
		agenttest.Text("It runs agents."),
	))
	if out := built(t, srv)(command); out != "It runs agents.\n" {
		t.Errorf("got %q", out)
	}
	if res := srv.Last().LastToolResults(); len(res) != 1 || res[0].IsError {
		t.Errorf("the tool: %+v", res)
	}
}

// demonstrates runs the demo, which needs no model.
func demonstrates(t *testing.T, command string) {
	run := built(t, agenttest.NewServer(t))
	out := run(strings.Replace(command, "go run ./cmd/turnwright", "turnwright", 1) + "; echo exit code $?")
	want := "exit code 0\n"
	if strings.Contains(command, "--max-turns 2") {
		want = "exit code 1\n"
	}
	if !strings.HasSuffix(out, want) || !strings.Contains(out, "Why it stopped") {
		t.Errorf("%s", out)
	}
}

// helps takes a command that is named or shown in its form, and has the program
// explain it.
func helps(t *testing.T, command string) {
	words := strings.Fields(command)
	for i, w := range words {
		if i > 0 && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz-") != "" || strings.HasPrefix(w, "-") {
			words = words[:i]
			break
		}
	}
	name := strings.Join(words, " ")
	if out := built(t, agenttest.NewServer(t))(name + " --help"); !strings.HasPrefix(out, "Usage: "+name) {
		t.Errorf("%s --help says\n%s", name, out)
	}
}

// completes runs one that puts completions into a shell, where there is that
// shell.
func completes(t *testing.T, command string) {
	shell := regexp.MustCompile("completion ([a-z]+)").FindStringSubmatch(command)[1]
	if _, err := exec.LookPath(shell); err != nil {
		t.Skip(err)
	}
	run := built(t, agenttest.NewServer(t))
	home := t.TempDir()
	switch shell {
	case "bash":
		command += "; complete -p turnwright"
	case "zsh":
		command = "autoload -U compinit && compinit -u; " + command + "; echo $_comps[turnwright]"
	case "fish":
		command = "mkdir -p ~/.config/fish/completions; " + command + `; complete -C "turnwright --res"; complete -C "turnwright --res" | grep -q resume && echo turnwright`
	}
	if out := run("HOME='" + home + "' " + shell + " -c '" + command + "'"); !strings.Contains(out, "turnwright") {
		t.Errorf("%s", out)
	}
}

// explainsRun runs one that explains a session, which it names by its title.
func explainsRun(t *testing.T, command string) {
	run := built(t, agenttest.NewServer(t, agenttest.Forever(agenttest.Text("It has three packages."))))
	title := strings.Fields(command)[2]
	run(`turnwright -p "What is here?" --name ` + title)
	if out := run(command); !strings.Contains(out, "What is here?") || !strings.Contains(out, "stopped") {
		t.Errorf("%s", out)
	}
}

// runsStream runs one that sends a line of streaming input.
func runsStream(t *testing.T, command string) {
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Text("Hello.")))
	out := built(t, srv)(command)
	if strings.Count(out, "\n") != 3 || !strings.Contains(out, `"result":"Hello."`) || srv.Last().UserText() != "hi" {
		t.Errorf("%s", out)
	}
}

// programDir is where the command is while a test runs; "" when it is nowhere.
var programDir string

// buildProgram builds the command for t and the tests in it.
func buildProgram(t *testing.T) {
	t.Helper()
	programDir = t.TempDir()
	t.Cleanup(func() { programDir = "" })
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", programDir, "./cmd/turnwright").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// built builds the command and returns how to run it in a shell, with a home of
// its own, in which the user has these instructions.
func built(t *testing.T, srv *agenttest.Server, instructions ...string) (run func(command string) string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a Unix shell")
	}
	if programDir == "" {
		buildProgram(t)
	}
	env := append(os.Environ(), "PATH="+programDir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for k, v := range base(t, srv).Env {
		env = append(env, k+"="+v)
		if k == "CLAUDE_CONFIG_DIR" && len(instructions) > 0 {
			putIn(t, v, "CLAUDE.md", strings.Join(instructions, "\n"))
		}
	}
	return func(command string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		return string(out)
	}
}

// putsBack runs a command that undoes what the first message of a session made.
func putsBack(t *testing.T, command string) {
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Write", `{"file_path":"made.txt","content":"made\n"}`), agenttest.Text("Made."),
	))
	run := built(t, srv)
	dir := t.TempDir()
	in := func(command string) string {
		return run("export CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1; cd '" + dir + "' && " + command)
	}
	var res struct {
		Session string `json:"session_id"`
		Message string `json:"user_message_uuid"`
	}
	out := in(`turnwright -p "Make a file" --allowedTools Write --output-format json`)
	if err := json.Unmarshal([]byte(out), &res); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made := filepath.Join(dir, "made.txt")
	if _, err := os.Stat(made); err != nil {
		t.Fatal(err)
	}
	out = in("SESSION=" + res.Session + " MESSAGE=" + res.Message + "; " + command)
	if !strings.HasPrefix(out, "Put 1 file back, 0 lines added and 1 removed:\n  ") {
		t.Errorf("got %q", out)
	}
	if _, err := os.Stat(made); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
}

// goesOn runs a command of a session that exists.
func goesOn(t *testing.T, command string) {
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("It has three packages.")))
	run := built(t, srv)
	run(`turnwright -p "What is here?"`)
	out := run(command)
	if strings.Contains(command, "--continue") {
		if out != "It has three packages.\n" || srv.Last().FirstUserText() != "What is here?" {
			t.Errorf("got %q, told %q", out, srv.Last().FirstUserText())
		}
	} else if !strings.Contains(out, "  What is here?") || strings.Count(out, "\n") != 1 {
		t.Errorf("got %q", out)
	}
}

// looksAfter runs one that is about a session, in place of ID.
func looksAfter(t *testing.T, command string) {
	run := built(t, agenttest.NewServer(t, agenttest.Forever(agenttest.Text("It has three packages."))))
	run(`turnwright -p "What is here?"`)
	var list []struct{ SessionID, Tag string }
	sessions := func() int {
		list = nil
		if err := json.Unmarshal([]byte(run("turnwright sessions --json")), &list); err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if sessions() != 1 {
		t.Fatalf("%+v", list)
	}
	out := run(strings.Replace(command, " ID", " "+list[0].SessionID, 1))
	left := sessions()
	switch {
	case strings.Contains(command, "delete"):
		if left != 0 {
			t.Errorf("%s, %+v is left", out, list)
		}
	case strings.Contains(command, "tag"):
		if left != 1 || list[0].Tag != "TAG" {
			t.Errorf("%s, %+v", out, list)
		}
	case !strings.Contains(out, "What is here?"):
		t.Errorf("got %q", out)
	}
}

// choosesSources runs one that says which instruction files it wants.
func choosesSources(t *testing.T, command string) {
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("It runs agents.")))
	run := built(t, srv, "says the user")
	if out := run(command); out != "It runs agents.\n" {
		t.Errorf("got %q", out)
	}
	if told := strings.Contains(srv.Last().FirstUserText(), "says the user"); told != strings.HasSuffix(command, " user") {
		t.Errorf("told %q", srv.Last().FirstUserText())
	}
}

// TestDocumentedInstructions lays out the files of docs/memory.md and finds
// what the page says that the model is told.
func TestDocumentedInstructions(t *testing.T) {
	text, err := os.ReadFile("docs/memory.md")
	if err != nil {
		t.Fatal(err)
	}
	p := page{"docs/memory.md", string(text)}
	files, told := p.fenced("txtar"), p.fenced("told")
	if len(files) != 1 || len(told) != 2 {
		t.Fatalf("the page has %d blocks of files and %d of what is told", len(files), len(told))
	}
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("Read", `{"file_path":"parser/lex_test.go"}`), agenttest.Text("done")))
	o := base(t, srv)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse([]byte(files[0].text)).Files {
		putIn(t, root, f.Name, string(f.Data))
	}
	o.CWD, o.Env["CLAUDE_CONFIG_DIR"] = filepath.Join(root, "project"), filepath.Join(root, "home")
	if out := query(t, "go", o); out.err != nil {
		t.Fatal(out.err)
	}
	for i, r := range srv.Requests() {
		got := strings.ReplaceAll(r.UserText(), root+string(filepath.Separator), "")
		_, got, _ = strings.Cut(got, "\n\n")
		got, _, _ = strings.Cut(got, "</system-reminder>")
		if got != told[i].text {
			t.Errorf("%s: the model is told\n%s", told[i].where, got)
		}
	}
}

// explains runs a check of permissions; the page has what it prints.
func explains(t *testing.T, command string) {
	out := built(t, agenttest.NewServer(t))(command)
	page, err := os.ReadFile("docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.Contains(command, "curl"):
		if !strings.Contains(string(page), "```text\n"+out+"```") {
			t.Errorf("the page does not have\n%s", out)
		}
	case strings.Contains(command, "--json"):
		var got struct{ Behavior, Step string }
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Behavior != "ask" || got.Step != "prompt" {
			t.Errorf("%s: %v", out, err)
		}
	default:
		if !strings.HasPrefix(out, "ask ") {
			t.Errorf("%s", out)
		}
	}
}

// TestPermissionsPage finds the Go of docs/permissions.md in the examples, which
// are run.
func TestPermissionsPage(t *testing.T) {
	text, err := os.ReadFile("docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	tested, err := os.ReadFile("example_permissions_test.go")
	if err != nil {
		t.Fatal(err)
	}
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	blocks := page{"docs/permissions.md", string(text)}.fenced("go")
	if len(blocks) < 3 {
		t.Errorf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(flat(string(tested)), flat(b.text)) {
			t.Errorf("%s: no example has\n%s", b.where, b.text)
		}
	}
}

// runsBenchmark runs each benchmark that the command names once.
func runsBenchmark(t *testing.T, command string) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("builds and runs benchmarks in a Unix shell")
	}
	command, _, _ = strings.Cut(command, " #")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command+" -benchtime 1x -count 1")
	cmd.Env = append(os.Environ(), "TURNWRIGHT_BENCH_SMALL=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nBenchmark") {
		t.Errorf("%v\n%s", err, out)
	}
}

// snippetImports are the packages that the documentation's Go may name.
var snippetImports = map[string]string{
	"turnwright": "github.com/turnwright/turnwright", "agenttest": "github.com/turnwright/turnwright/agenttest",
	"bytes": "bytes", "context": "context", "errors": "errors", "fmt": "fmt", "log": "log", "os": "os", "time": "time",
	"message": "github.com/turnwright/turnwright/message",
	"sqlite":  "github.com/turnwright/turnwright/session/sqlite",
	"hook":    "github.com/turnwright/turnwright/hook", "json": "encoding/json", "slog": "log/slog", "strings": "strings",
	"file": "github.com/turnwright/turnwright/session/file", "filepath": "path/filepath",
}

// TestDocumentedGo compiles the Go of the documentation. Each block becomes the
// body of a function that has what a reader is expected to have: ctx, t, and a
// function lookup.
func TestDocumentedGo(t *testing.T) {
	src := "package snippets\n"
	var bodies strings.Builder
	used := map[string]bool{"context": true}
	n := 0
	for _, p := range pages(t) {
		for _, b := range p.fenced("go") {
			n++
			head := fmt.Sprintf("func snippet%d(ctx context.Context, t agenttest.TB) error {\n", n)
			file, err := parser.ParseFile(token.NewFileSet(), b.where, "package p\n"+head+b.text+"return nil\n}\n", 0)
			if err != nil {
				t.Fatalf("%s: %v", b.where, err)
			}
			fmt.Fprintf(&bodies, "\n%s%s%sreturn nil\n}\n", head, b.text, blanks(file))
			ast.Inspect(file, func(node ast.Node) bool {
				if sel, ok := node.(*ast.SelectorExpr); ok {
					if x, ok := sel.X.(*ast.Ident); ok && snippetImports[x.Name] != "" {
						used[x.Name] = true
					}
				}
				return true
			})
		}
	}
	if n == 0 {
		t.Fatal("the documentation has no Go")
	}
	for name := range used {
		src += fmt.Sprintf("import %q\n", snippetImports[name])
	}
	src += "\nfunc lookup(context.Context, string) (string, error) { return \"\", nil }\n" + bodies.String()

	// The overlay puts the file into the module without writing it there.
	dir := t.TempDir()
	file := filepath.Join(dir, "snippets.go")
	if err := os.WriteFile(file, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "internal", "snippets", "snippets.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "./internal/snippets").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, src)
	}
}

// blanks uses the variables that a snippet leaves to its reader.
func blanks(file *ast.File) string {
	body := file.Decls[0].(*ast.FuncDecl).Body
	var b strings.Builder
	for _, stmt := range body.List {
		def, ok := stmt.(*ast.AssignStmt)
		if !ok || def.Tok != token.DEFINE {
			continue
		}
		for _, left := range def.Lhs {
			if id, ok := left.(*ast.Ident); ok && id.Name != "_" {
				fmt.Fprintf(&b, "_ = %s\n", id.Name)
			}
		}
	}
	return b.String()
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	qualified  = regexp.MustCompile(`\b(turnwright|agenttest|message|model|tool|session|permission|storetest|hook)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	optionName = regexp.MustCompile(`\bOptions\.([A-Z]\w*)`)
	linkTarget = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
)

// plannedNames are mentioned before they exist, by the page on the design.
var plannedNames = []string{"session.Mirror"}

// TestDocumentedNames finds every exported name that the documentation mentions.
func TestDocumentedNames(t *testing.T) {
	dirs := map[string]string{"turnwright": ".", "storetest": "session/storetest"}
	declared := map[string]map[string]bool{}
	names := func(pkg string) map[string]bool {
		if declared[pkg] == nil {
			dir := dirs[pkg]
			if dir == "" {
				dir = pkg
			}
			declared[pkg] = exportedNames(t, dir)
		}
		return declared[pkg]
	}
	for _, p := range pages(t) {
		if p.name == "docs/conformance.md" {
			continue // generated, and full of the names of tests
		}
		for _, code := range inlineCode.FindAllString(p.text, -1) {
			for _, m := range qualified.FindAllStringSubmatch(code, -1) {
				if slices.Contains(plannedNames, m[0]) {
					continue
				}
				if !names(m[1])[m[2]] || m[3] != "" && !names(m[1])[m[2]+"."+m[3]] {
					t.Errorf("%s: there is no %s", p.name, m[0])
				}
			}
			for _, m := range optionName.FindAllStringSubmatch(code, -1) {
				if !names("turnwright")["Options."+m[1]] {
					t.Errorf("%s: there is no %s", p.name, m[0])
				}
			}
		}
	}
}

// exportedNames are the exported names of a package, methods and fields as
// Type.Name.
func exportedNames(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no package in %s: %v", dir, err)
	}
	names := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(names, spec)
				}
			}
		}
	}
	return names
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

func addSpec(names map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, id := range s.Names {
			names[id.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		var list *ast.FieldList
		switch typ := s.Type.(type) {
		case *ast.StructType:
			list = typ.Fields
		case *ast.InterfaceType:
			list = typ.Methods
		default:
			return
		}
		for _, f := range list.List {
			for _, id := range f.Names {
				names[s.Name.Name+"."+id.Name] = true
			}
		}
	}
}

// TestStreamPage holds the page for those who know another SDK against the
// messages of this one: which Go type a line is, that each system subtype has
// its own, and that content and model are wrapped.
func TestStreamPage(t *testing.T) {
	conform.Covers(t, "M-15")
	text, err := os.ReadFile("docs/stream.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)`(?:, subtype `([a-z_]+)`|, [a-z ]+)? \\| `message\\.(\\w+)` \\| (.+) \\| (.+) \\|$")
	types := map[string]bool{}
	for _, r := range row.FindAllStringSubmatch(string(text), -1) {
		typ, subtype, goType, typescript, python := r[1], r[2], r[3], r[4], r[5]
		if goType == "Unknown" {
			subtype = "not_known_yet"
		}
		line := fmt.Sprintf(`{"type":%q,"message":{"role":"user","model":"m","content":[]},"event":{}}`, typ)
		switch typ {
		case "system":
			line = fmt.Sprintf(`{"type":"system","subtype":%q}`, subtype)
		case "result":
			line = `{"type":"result","subtype":"success","result":""}`
		}
		m, err := message.Decode([]byte(line))
		if got := fmt.Sprintf("%T", m); err != nil || got != "*message."+goType {
			t.Errorf("%s %s is a %s, not a %s: %v", typ, subtype, got, goType, err)
		}
		types[goType] = true
		if own := strings.Contains(typescript, "a type of its own") || strings.Contains(typescript, "SDK"); typ == "system" && (goType != "Unknown" && !own || !strings.HasPrefix(python, "`SystemMessage`")) {
			t.Errorf("%s: %s, %s", subtype, typescript, python)
		}
	}
	for _, want := range []string{"Init", "CompactBoundary", "Informational", "Unknown", "Assistant", "User", "StreamEvent", "Result"} {
		if !types[want] {
			t.Errorf("the table has no %s", want)
		}
	}
	for _, want := range []string{
		"In TypeScript every `system` subtype except `init` has its own type.", "In Python all of them are one type, `SystemMessage`, with `subtype` and the remaining fields in the dictionary `data`",
		"Python flattens both: `message.content` and `message.model`",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}

// TestDocumentedLinks follows every link of the documentation to a file.
func TestDocumentedLinks(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range linkTarget.FindAllStringSubmatch(p.text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(p.name), m[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", p.name, m[1])
			}
		}
	}
}
