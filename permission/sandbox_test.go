package permission_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
)

// sandbox is a user, mount and network namespace in which only one directory can
// be written, at the path that it has outside.
type sandbox struct {
	bwrap string
	root  string
}

// newSandbox makes the sandbox and makes sure that it holds: without it nothing
// may be run.
func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the sandbox is for Linux")
	}
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("no bubblewrap here: commands are not run")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &sandbox{bwrap, root}
	if out, err := s.run(t, "exit 0"); err != nil {
		t.Skipf("bubblewrap cannot be used here: %v: %s", err, out)
	}
	outside := t.TempDir()
	probe := fmt.Sprintf(`: > %q/in; : > %q/out; : > /usr/out; : > /etc/out; : > /out; : > /tmp/out; read -r a b < <(echo x >/dev/tcp/127.0.0.1/9) ; wc -l < /proc/net/dev > %q/net`, root, outside, root)
	_, _ = s.run(t, probe)
	lines, err := os.ReadFile(filepath.Join(root, "net"))
	if _, in := os.Stat(filepath.Join(root, "in")); in != nil || err != nil || strings.TrimSpace(string(lines)) != "3" {
		t.Fatalf("the sandbox does not work as it should: %v, interfaces and two lines of heads: %q", in, lines)
	}
	for _, name := range []string{filepath.Join(outside, "out"), "/usr/out", "/etc/out", "/out", "/tmp/out"} {
		if _, err := os.Lstat(name); err == nil {
			t.Fatalf("the sandbox lets %s be written", name)
		}
	}
	return s
}

// run runs a script in the sandbox.
func (s *sandbox) run(t *testing.T, script string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	flags := []string{
		"--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
		"--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--bind", s.root, s.root,
	}
	for _, dir := range []string{"/bin", "/lib", "/lib64"} {
		if to, err := os.Readlink(dir); err == nil {
			flags = append(flags, "--symlink", to, dir)
		} else if _, err := os.Stat(dir); err == nil {
			flags = append(flags, "--ro-bind", dir, dir)
		}
	}
	flags = append(flags, "--remount-ro", "/", "--chdir", s.root, "--setenv", "PATH", "/usr/bin", "--", "/usr/bin/bash", "--norc", "-c", script, "bash")
	cmd := exec.CommandContext(ctx, s.bwrap, append(flags, args...)...)
	return cmd.CombinedOutput()
}

// The names that generated commands are made of: stubs that write down that
// they ran, and programs that change files.
var (
	stubs = []string{"qa", "qb", "qc", "danger"}
	tools = strings.Fields("cat head tail sed sort tee touch mkdir rm rmdir cp mv ln dd truncate install ls wc grep find env xargs nice nohup timeout sh bash chmod stdbuf setsid")
)

// cell is one small world in the sandbox: the same tree each time.
type cell struct {
	dir, project, outside, home string
}

func newCell(t *testing.T, dir string) cell {
	t.Helper()
	c := cell{dir, filepath.Join(dir, "a", "project"), filepath.Join(dir, "outside"), filepath.Join(dir, "home")}
	for _, d := range []string{"bin", "a/project/src/deep", "a/project/locked", "a/project/.git/objects", "outside", "home"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"a.txt", ".env", "src/b.go", "src/deep/c.txt", "locked/l.txt", ".git/HEAD", ".git/config", "../../outside/o.txt"} {
		if err := os.WriteFile(filepath.Join(c.project, f), []byte(f+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"link": c.outside, "out.txt": c.outside + "/o.txt", "lockedlink": "locked", "dangling": "locked/new", "srclink": "src"} {
		if err := os.Symlink(to, filepath.Join(c.project, from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range stubs {
		script := "#!/usr/bin/sh\nprintf '%s\\n' \"${0##*/}\" >> \"" + dir + "/ran\"\n"
		if name == "qb" {
			script += "exit 1\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range tools {
		if err := os.Symlink("/usr/bin/"+name, filepath.Join(dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// snapshot is what the tree holds, without the record of the stubs.
func (c cell) snapshot(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == filepath.Join(c.dir, "bin") {
			return fs.SkipDir
		}
		if base := filepath.Base(path); filepath.Dir(path) == c.dir && (base == "ran" || base == "command") {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += to
		case d.Type().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf("%x", sha256.Sum256(text))
		}
		all[path] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// maker makes command lines.
type maker struct {
	*rand.Rand
	c cell
}

func (m *maker) pick(list ...string) string { return list[m.IntN(len(list))] }

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// name is a command name in one of its spellings.
func (m *maker) name(name string) string {
	switch m.IntN(14) {
	case 0:
		return `\` + name
	case 1:
		return name[:1] + "'" + name[1:] + "'"
	case 2:
		return `"` + name + `"`
	case 3:
		return "$'" + fmt.Sprintf(`\x%x`, name[0]) + name[1:] + "'"
	case 4:
		return m.c.dir + "/bin/" + name
	case 5:
		return name[:1] + "\\\n" + name[1:]
	case 6:
		return name[:1] + `""` + name[1:]
	}
	return name
}

func (m *maker) path() string {
	return m.pick("a.txt", "b.txt", "new/x", "src/b.go", "src", "src/n", "./src/../a.txt", "locked/l.txt", "./locked/x", "src/../locked/y", "lockedlink/z", "lockedlink",
		"dangling", "link/n", "link", "out.txt", "../x", "../../outside/o.txt", "locked", ".", "..", ".git/config", ".git/hooks", ".env", "srclink/n", "srclink/../locked/l.txt",
		m.c.project+"/locked/v", m.c.outside+"/v", `"$PWD"/locked/w`, "lock*/l.txt", "{locked,src}/w", "$X", `"lock"ed/l.txt`, "$'locked/l.txt'", `loc\ked/l.txt`, "~/h", "*.txt",
		"src/*", "l*/l.txt", "locked/", "./-n", "src/deep/c.txt", "src/deep/../../locked/l.txt", "-t", "--", "-r", "-f", "-s", "-n")
}

func (m *maker) redirect() string {
	return " " + m.pick(">", ">>", "2>", "&>", ">|", "<", "<>", "3>", ">&", "1>") + m.pick("", " ") + m.path()
}

// simple is a command without operators.
func (m *maker) simple() string {
	var b strings.Builder
	for m.IntN(8) == 0 {
		b.WriteString(m.pick("A=1 ", "LANG=C ", "X=locked/l.txt ", "PATH="+m.c.dir+"/bin "))
	}
	for m.IntN(6) == 0 {
		b.WriteString(m.pick("timeout 5 ", "nice ", "nohup ", "env ", "env A=1 ", "command ", "stdbuf -oL ", "nice -n 1 ", "xargs ", "setsid -w ", "exec ", "builtin ", "env -C src ", "env -S"+quoted("qa")+" "))
	}
	file := func(words ...string) {
		b.WriteString(strings.Join(words, " "))
	}
	switch m.IntN(26) {
	case 0:
		file(m.name("touch"), m.path())
	case 1:
		file(m.name("cp"), m.path(), m.path())
	case 2:
		file(m.name("mv"), m.path(), m.path())
	case 3:
		file(m.name("rm"), m.pick("", "-r", "-rf"), m.path())
	case 4:
		file(m.name("ln"), m.pick("", "-s", "-sf", "-sfn"), m.path(), m.path())
	case 5:
		file(m.name("mkdir"), m.pick("", "-p"), m.path())
	case 6:
		file("echo x |", m.name("tee"), m.pick("", "-a"), m.path())
	case 7:
		file(m.name("sed"), "-i", "s/x/y/", m.path())
	case 8:
		file(m.name("sed"), "-n", quoted("w "+m.pick("locked/s", "b.txt")), m.path())
	case 9:
		file(m.name("sort"), "-o", m.path(), m.path())
	case 10:
		file(m.name("dd"), "of="+m.path(), "if="+m.path())
	case 11:
		file(m.name("cp"), m.pick("-r", "-a", "-t"), m.path(), m.path())
	case 12:
		file(m.name("truncate"), "-s", "0", m.path())
	case 13:
		file(m.name("install"), m.path(), m.path())
	case 14:
		file("cd", m.path())
	case 15:
		file("echo", "x"+m.redirect())
	case 16:
		file(m.name("find"), m.pick(".", "src", "locked"), "-name", "'*.txt'", m.pick("-print", "-delete", "-exec "+m.pick(stubs...)+" {} \\;", "-exec rm {} +", "-exec touch locked/f \\;"))
	case 17:
		file(m.name("chmod"), "+x", m.path())
	case 18:
		file(m.name("cat"), m.path(), m.path())
	case 19:
		file("printf", m.pick("'%s\\n'", "qa", "danger"), m.path())
	default:
		file(m.name(m.pick(stubs...)), m.pick("", "x", "a.txt", m.path()))
	}
	for m.IntN(5) == 0 {
		b.WriteString(m.redirect())
	}
	return b.String()
}

// line is a command line of at most some depth.
func (m *maker) line(depth int) string {
	if depth <= 0 || m.IntN(4) == 0 {
		return m.simple()
	}
	x := func() string { return m.line(depth - 1) }
	switch m.IntN(36) {
	case 0, 1, 2:
		return x() + m.pick(" && ", " || ", "; ", " | ", " |& ", "\n", ";", "&&", " & ", " &\n") + x()
	case 3:
		return "(" + x() + ")"
	case 4:
		return "{ " + x() + "; }"
	case 5:
		return "! " + x()
	case 6:
		return "if " + x() + "; then " + x() + "; else " + x() + "; fi"
	case 7:
		return "for i in 1 " + m.path() + "; do " + x() + "; done"
	case 8:
		return "case a in " + m.pick("a", "*", "b) qc;; a") + ") " + x() + m.pick(";;", ";&", "") + " esac"
	case 9:
		return "echo $(" + x() + ")"
	case 10:
		return "echo `" + strings.NewReplacer("\\", `\\`, "`", "\\`").Replace(x()) + "`"
	case 11:
		return "cat <(" + x() + ")"
	case 12:
		return "echo \"a $(" + x() + ") b\"" + m.pick("", m.redirect())
	case 13:
		return m.pick("sh", "bash", "bash -e", "env sh", "nohup sh") + " -c " + quoted(x())
	case 14:
		return "eval " + quoted(x())
	case 15:
		return m.pick("bash", "sh", "cat", "qa", "tee locked/h") + " <<'E'\n" + x() + "\nE" + m.pick("", "\n"+x())
	case 16:
		return "cat <<E\n$(" + x() + ")\nE"
	case 17:
		return "f() { " + x() + "; }; " + m.pick("f", "qa", "f; f")
	case 18:
		return "cd " + m.path() + m.pick(" && ", "; ", "\n") + x()
	case 19:
		return "trap " + quoted(x()) + " EXIT"
	case 20:
		return "x=$(" + x() + "); " + x()
	case 21:
		return "[[ -n $(" + x() + ") ]]"
	case 22:
		return "echo ${x:-$(" + x() + ")}"
	case 23:
		return "X=" + m.path() + m.pick("; ", "\n", " && ") + x()
	case 24:
		return "time " + x()
	case 25:
		return "(" + x() + ")" + m.redirect()
	case 26:
		return "{ " + x() + "; }" + m.redirect()
	case 27:
		return "echo " + m.pick(stubs...) + " | " + m.pick("sh", "xargs", "bash -s", "xargs touch", "xargs -I{} {}")
	case 28:
		return x() + " # " + m.pick("qa", "danger", "'") + "\n" + x()
	case 29:
		return "ln -s " + m.pick("locked", m.c.outside, "..") + " z" + m.pick(" && ", "; ", "\n") + m.pick("touch z/x", "echo x > z/y", "cp a.txt z", x())
	case 30:
		return "mkdir " + m.pick("d", "-p d/e") + " && " + m.pick("cd d && "+x(), "mv a.txt d", "cp -r src d && "+x(), "ln -s .. d/up && touch d/up/locked/x")
	case 31:
		return "export X=" + m.path() + "; " + m.pick("touch $X", "cat $X", x())
	case 32:
		return "mv " + m.pick("link", "lockedlink", "locked", "src") + " " + m.path() + m.pick(" && ", "; ") + x()
	case 33:
		return m.pick("cp -a", "cp -P", "cp -d", "cp -r", "mv", "cp -s", "ln", "ln -s") + " " + m.path() + " " + m.pick("z", "d/z", m.path()) + m.pick(" && ", "; ", "\n") + m.pick("touch z/x", "ln -s a.txt z", "cp a.txt z/y", x())
	}
	return m.soup()
}

// soup is pieces of shell text in any order: mostly nonsense, and what parsers
// divide differently.
func (m *maker) soup() string {
	pieces := []string{
		"qa", "qb", "qc", "danger", "danger", "touch locked/x", "a.txt", "locked/l.txt", " ", " ", " ", "\n", "\n", "\\\n", "\\", "#", " # ", ";", " | ", " && ", "'", `"`, "$(", ")", "`", "( ", "{ ", "; }",
		" <<E", " <<'E'", " <<-E", " <<\\E", "\nE\n", "\nE", "E", "\t", "<&-", ">&-", "2>&1", " <<< ", "$'", "!", "=", "x=", "[[ ", " ]]", "<(", ">(", "case x in x) ", " ;; esac",
		"$x", "${x#", "${x:-", "}", "$((1", "))", `\'`, `\"`, "&", "|&", " || ", " > locked/s", " >b.txt", "[", "]", "{qa,danger}", "~", "*", "if ", "; then ", "; fi", "eval ", "sh -c ", "env ", "coproc ", "time ",
	}
	var b strings.Builder
	b.WriteString("qa ")
	for range 1 + m.IntN(14) {
		b.WriteString(pieces[m.IntN(len(pieces))])
	}
	return b.String() + m.pick("", "\nE", "\nE\n)", "\n", "'", `"`)
}

// inParts collects what the parts of an explanation list.
func inParts(parts []permission.Part) (runs []string, writes []string) {
	for _, p := range parts {
		runs = append(runs, p.Runs...)
		for _, a := range p.Files {
			if a.Kind == permission.Write {
				writes = append(writes, a.Target, a.Written)
			}
		}
		r, w := inParts(p.Inside)
		runs, writes = append(runs, r...), append(writes, w...)
	}
	return runs, writes
}

// sandboxPolicies are under what the commands are judged, and what must hold of
// a run of those that are allowed.
func sandboxPolicies(t *testing.T, c cell) map[string]*permission.Policy {
	t.Helper()
	base := permission.Config{Dirs: []string{c.project}, Home: c.home}
	denies, narrow, reads, bypass := base, base, base, base
	denies.Allow, denies.Deny = []string{"Bash"}, []string{"Bash(danger *)", "Edit(/locked/**)"}
	bypass.Mode, bypass.BypassAvailable, bypass.Deny = permission.ModeBypass, true, denies.Deny
	narrow.Allow, narrow.Mode = []string{"Bash(qa *)", "Bash(qb:*)"}, permission.ModeAcceptEdits
	return map[string]*permission.Policy{"denies": newPolicy(t, denies), "bypass": newPolicy(t, bypass), "narrow": newPolicy(t, narrow), "reads": newPolicy(t, reads)}
}

// TestCommandsInSandbox runs generated commands that the policies allow in a real
// bash, in a sandbox, and compares with what stubs and file system recorded:
// nothing ran or was written that the analysis had not listed, nothing that a
// rule denies, nothing outside of what narrow rules allow.
//
// TURNWRIGHT_SANDBOX is the number of commands (default 60), TURNWRIGHT_SEED
// the seed (default: another one each time).
func TestCommandsInSandbox(t *testing.T) {
	conform.Covers(t, "P-29", "P-59", "P-60", "P-61", "P-66", "P-70", "P-72", "P-73", "P-75", "P-8", "P-9")
	s := newSandbox(t)
	number := func(name string, otherwise uint64) uint64 {
		n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
		if err != nil {
			return otherwise
		}
		return n
	}
	seed := number("TURNWRIGHT_SEED", uint64(time.Now().UnixNano()))
	t.Logf("TURNWRIGHT_SEED=%d", seed)
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 1))}
	left := int(number("TURNWRIGHT_SANDBOX", 60))
	allowed := map[string]int{}
	made := 0
	for batch := 0; left > 0; batch++ {
		var cells []sandboxRun
		var dirs []string
		for len(cells) < 50 && left > 0 {
			c := newCell(t, filepath.Join(s.root, fmt.Sprintf("%d-%d", batch, len(cells))))
			policies := sandboxPolicies(t, c)
			m.c = c
			run := sandboxRun{cell: c}
			target := policies[[]string{"denies", "narrow", "reads", "bypass"}[left%4]]
			for tries := 0; len(run.allowed) == 0 && tries < 1000; tries++ {
				run.command = m.line(1 + m.IntN(3))
				if made++; target.Decide(bash(run.command)).Behavior != allow && tries < 500 {
					continue
				}
				run.allowed = map[string]permission.Explanation{}
				for name, p := range policies {
					if e := p.Explain(bash(run.command)); e.Behavior == allow {
						run.allowed[name] = e
						allowed[name]++
					}
				}
			}
			left--
			run.before = c.snapshot(t)
			if err := os.WriteFile(filepath.Join(c.dir, "command"), []byte(run.command), 0o644); err != nil {
				t.Fatal(err)
			}
			cells, dirs = append(cells, run), append(dirs, c.dir)
		}
		script := `for d; do
			IFS= read -r -d '' text < "$d/command"
			cd "$d/a/project" && env -i PATH="$d/bin" HOME="$d/home" LC_ALL=C.UTF-8 /usr/bin/timeout -s KILL 2 /usr/bin/bash --norc -c "$text" < /dev/null > /dev/null 2>&1
		done; exit 0`
		if out, err := s.run(t, script, dirs...); err != nil {
			t.Fatalf("the sandbox failed: %v: %s", err, out)
		}
		for _, run := range cells {
			run.check(t)
			if err := os.RemoveAll(run.cell.dir); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d commands made; allowed: %v", made, allowed)
	for _, name := range []string{"denies", "bypass", "narrow", "reads"} {
		if !t.Failed() && allowed[name] == 0 {
			t.Errorf("no command was allowed under %q, so nothing was tested", name)
		}
	}
}

type sandboxRun struct {
	cell    cell
	command string
	allowed map[string]permission.Explanation // by policy
	before  map[string]string
}

func (r sandboxRun) check(t *testing.T) {
	t.Helper()
	recorded, err := os.ReadFile(filepath.Join(r.cell.dir, "ran"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var ran, changed []string
	for line := range bytes.Lines(recorded) {
		ran = append(ran, strings.TrimSpace(string(line)))
	}
	after := r.cell.snapshot(t)
	for path, what := range after {
		if r.before[path] != what {
			changed = append(changed, path)
		}
	}
	for path := range r.before {
		if _, there := after[path]; !there {
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	below := func(dir string, paths ...string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") })
	}
	for name, e := range r.allowed {
		fail := func(format string, args ...any) {
			t.Errorf("%s allows (%s: %s)\n%s\n%s\nran %q, changed %q", name, e.Step, e.Reason, r.command, fmt.Sprintf(format, args...), ran, changed)
		}
		runs, writes := inParts(e.Parts)
		for _, stub := range ran {
			if !slices.Contains(runs, stub) && !slices.ContainsFunc(runs, func(s string) bool { return filepath.Base(s) == stub }) {
				fail("%s ran and is not listed among %q", stub, runs)
			}
		}
		for _, path := range changed {
			// A directory is changed, in its mode at most, when files in it are.
			if !below(path, writes...) && !slices.ContainsFunc(writes, func(w string) bool { return below(w, path) }) {
				fail("%s was changed and is not listed among %q", path, writes)
			}
		}
		switch name {
		case "denies", "bypass":
			if slices.Contains(ran, "danger") {
				fail("danger ran")
			}
			if below(r.cell.project+"/locked", changed...) {
				fail("locked was changed")
			}
		case "narrow":
			for _, stub := range ran {
				if stub != "qa" && stub != "qb" {
					fail("%s ran", stub)
				}
			}
			for _, path := range changed {
				if !below(r.cell.project, path) || below(r.cell.project+"/.git", path) {
					fail("%s was changed", path)
				}
			}
		case "reads":
			if len(ran) > 0 || len(changed) > 0 {
				fail("it did more than read")
			}
		}
	}
}
