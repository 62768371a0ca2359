package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/turnwright/turnwright/internal/proc"
	"github.com/turnwright/turnwright/tool"
)

// Recover tells what became of a call that the process of an earlier run left
// without a result (decision 15): a shell that went on to its end has left its
// exit code in a file. What it wrote is lost. ok is false where there is no
// such file: the command was killed or became another program. What still runs of
// it is killed before, since its outcome may be looked at from now on.
func (b *Bash) Recover(_ context.Context, c *tool.Call) (*tool.Result, bool) {
	var in bashInput
	if c.Key == "" || json.Unmarshal(c.Input, &in) != nil {
		return nil, false
	}
	proc.EndLeft(callKeyVar + "=" + c.Key)
	outer := outerDir(b.opts.TempDir, c.Env)
	b.temp.found(outer)
	files, err := filepath.Glob(filepath.Join(globQuote(outer), "*", reportName(c)+"*"))
	if err != nil || len(files) != 1 {
		return nil, false // none, or more than one run of it
	}
	code, _, ok := readReport(files[0])
	if !ok {
		return nil, false
	}
	meaning, quiet := meaningOfOne(in.Command)
	failed := code != 0 && (code != 1 || !quiet)
	out := bashOutput{Stderr: "The run was interrupted while the command ran. Its output is lost."}
	if code == 1 && quiet {
		out.ReturnCodeInterpretation = meaning
	}
	r, err := bashResult(fmt.Sprintf("Exit code %d\n%s", code, out.Stderr), failed, out)
	return r, err == nil
}

// globQuote makes a pattern that matches path alone.
func globQuote(path string) string {
	var b []rune
	for _, r := range path {
		if (r == '*' || r == '?' || r == '[' || r == '\\') && filepath.Separator == '/' {
			b = append(b, '\\')
		}
		b = append(b, r)
	}
	return string(b)
}
