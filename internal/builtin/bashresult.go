package builtin

import (
	"fmt"
	"strings"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

// The ceilings of what stands in a result (T-117, T-118), in characters.
const (
	inlineSuccess = 30_000
	inlineFailure = 10_000
	previewSize   = 2_000
)

// bashOutput is the structured output (T-121).
type bashOutput struct {
	Stdout                   string `json:"stdout"` // both streams in order of arrival
	Stderr                   string `json:"stderr"` // only what the tool itself has to say
	Interrupted              bool   `json:"interrupted"`
	BackgroundTaskID         string `json:"backgroundTaskId,omitempty"`
	TimedOutAfterMs          int64  `json:"timedOutAfterMs,omitempty"`
	BackgroundCwdHint        string `json:"backgroundCwdHint,omitempty"`
	ReturnCodeInterpretation string `json:"returnCodeInterpretation,omitempty"`
	PersistedOutputPath      string `json:"persistedOutputPath,omitempty"`
	PersistedOutputSize      int64  `json:"persistedOutputSize,omitempty"`
	RawOutputPath            string `json:"rawOutputPath,omitempty"` // the file of a background command
}

// result renders the ending for the model and for tool_use_result, and keeps
// what the session remembers of the command.
func (p *command) result(c *tool.Call, e *ending) (*tool.Result, error) {
	var out bashOutput
	var text, head string
	failed := true
	switch {
	case e.cancel != nil:
		head = fmt.Sprintf("Command was interrupted after %s", spelledDuration(e.took))
		out.Interrupted = true
	case e.timeout > 0:
		head = "Command timed out after " + spelledDuration(e.timeout)
		out.Interrupted, out.TimedOutAfterMs = true, e.timeout.Milliseconds()
	case e.tooMuch:
		head = fmt.Sprintf("Command was killed: it wrote more than %d bytes", p.out.max())
		out.Interrupted = true
	case e.code == 0:
		failed = false
		p.read.record(c.Env)
	default:
		if meaning, ok := meaningOfOne(p.in.Command); e.code == 1 && ok {
			failed, out.ReturnCodeInterpretation = false, meaning
			break
		}
		head = fmt.Sprintf("Exit code %d", e.code)
	}

	if failed {
		out.Stdout = trimEnd(p.out.excerpt(min(inlineFailure, readBack(c.Env))))
		text = head
		if strings.TrimSpace(out.Stdout) != "" {
			text += "\n" + out.Stdout
		} else {
			text += "\n(no output)"
		}
	} else {
		out.Stdout = p.out.success(c, &out)
		switch {
		case strings.TrimSpace(out.Stdout) != "":
			text = out.Stdout
		case out.ReturnCodeInterpretation != "":
			text = "(no output: " + out.ReturnCodeInterpretation + ")"
		default:
			text = "(no output)" // T-129
		}
	}
	out.Stderr = p.notice
	if reset := p.keepDir(c.Env); reset != "" {
		out.Stderr = reset
	}
	if out.Stderr != "" {
		text += "\n" + out.Stderr
	}
	return bashResult(text, failed, out)
}

func bashResult(text string, failed bool, out bashOutput) (*tool.Result, error) {
	raw, err := message.Encode(out)
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: []message.Block{message.NewText(text)}, IsError: failed, Structured: raw}, nil
}

// success returns the output, or where it is too long for the model a preview
// and the path of the file that holds it (T-117).
func (o *output) success(c *tool.Call, out *bashOutput) string {
	limit := min(inlineSuccess, readBack(c.Env))
	if text, ok := o.text(limit); ok {
		return trimEnd(text)
	}
	data, err := o.saved()
	var path string
	if err == nil && c.Env.PutBlob != nil {
		path, err = c.Env.PutBlob("bash-"+safeName(c.ID)+".txt", data)
	}
	if err != nil || path == "" {
		why := "it could not be saved"
		if err != nil {
			why += ": " + err.Error()
		}
		return trimEnd(o.excerpt(limit)) + fmt.Sprintf("\n\n[The output has %d characters; %s.]", o.runes, why)
	}
	out.PersistedOutputPath, out.PersistedOutputSize = path, int64(len(data))
	what, verb := "It", "is"
	if int64(len(data)) < o.size {
		what, verb = fmt.Sprintf("Its first %d of %d bytes", len(data), o.size), "are"
	}
	return fmt.Sprintf("The output is too long to be shown (%d characters). %s %s saved in %s\n\nIts first %d characters:\n%s",
		o.runes, what, verb, path, previewSize, trimEnd(o.preview(previewSize)))
}

// safeName makes part of a file name of an id that comes from outside.
func safeName(id string) string {
	safe := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	return safe[:min(len(safe), 100)]
}

func trimEnd(s string) string { return strings.TrimRight(s, "\n\r\t ") }
