package shell_test

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/shell"
	"pgregory.net/rapid"
)

// TestCommandsAgainstBash: bash runs no command that is not among the parts of a
// text that could be read and is not unsure. The texts name commands that do
// not exist, and bash only says which it looked for.
func TestCommandsAgainstBash(t *testing.T) {
	conform.Covers(t, "P-59", "P-60", "P-70")
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	dir := t.TempDir()
	pieces := []string{
		"qa", "qb", "qc", "-qd", " ", " ", " ", "\n", "\n", "\n", "\\\n", "\\", "#", " # ", ";", " | ", " && ", "'", `"`, "$(", ")", "`", "( ", "{ ", "; }",
		" <<E", " <<'E'", " <<-E", " <<\\E", "\nE\n", "\nE", "E", "E)", "\t", "<&-", ">&-", "0<&-", "2>&-", "<&0", "\nif qa; then ", "; fi", " <<< ", "$'", "!", "=", "x=", "[[ ", " ]]", "<(", "case x in x) ", " ;; esac",
		"'qa'", `"qb"`, "$x", "${x#", "${x:-", "}", "$((1", "))", `\'`, `\"`, "&", "|&", " || ", "! ", "\nE#", " E\n", "$'\\''", "\n#", "#'", "[", "]", "{qa,qb}", "~", "*", "\nwhile qb; do qc; break", "\ndone", "coproc ", "\n\n", "\n\\\n",
	}
	rapid.Check(t, func(rt *rapid.T) {
		command := "qa " + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 14).Draw(rt, "pieces"), "") + rapid.SampledFrom([]string{"", "\nE", "\nE\n)", "\nE\n)\"", "\n"}).Draw(rt, "end")
		s, err := shell.Parse(command)
		if err != nil || len(s.Ask) > 0 || len(s.Unsure) > 0 {
			return
		}
		var whole, names []string // of parts whose words are all literal, and of others
		for _, p := range s.Parts {
			var words []string
			literal := true
			for _, w := range p.Words {
				words, literal = append(words, strings.ReplaceAll(w.Text, "\n", "?")), literal && w.Literal
			}
			if literal {
				whole = append(whole, strings.Join(words, "\x1f"))
			} else {
				names = append(names, words[0])
			}
		}
		for _, ran := range looksFor(rt, bash, dir, command) {
			name, _, _ := strings.Cut(ran, "\x1f")
			if !slices.Contains(whole, ran) && !slices.Contains(names, name) {
				rt.Fatalf("bash runs %q in %q, which is read as %q", ran, command, texts(s))
			}
		}
	})
}

// looksFor runs a text in a bash that finds no program, and returns the words of
// the commands that it looked for, newlines as "?". Nothing in the text may
// write a file.
func looksFor(rt *rapid.T, bash, dir, command string) []string {
	r, w, err := os.Pipe()
	if err != nil {
		rt.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(bash, "--norc", "-c", `command_not_found_handle() { local IFS=$'\x1f'; local all="$*"; printf '%s\n' "${all//$'\n'/?}" >&3; }; eval "$1"`, "bash", command)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = dir, []string{"PATH=/nonexistent", "LC_ALL=C.UTF-8"}, []*os.File{w}
	err = cmd.Start()
	w.Close()
	if err != nil {
		rt.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		rt.Fatal(err)
	}
	_ = cmd.Wait() // whatever it exits with
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
