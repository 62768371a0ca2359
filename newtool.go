package turnwright

import (
	"context"
	"time"

	"github.com/turnwright/turnwright/tool"
)

// ToolOption changes a tool made by NewTool.
type ToolOption = tool.Option

// NewTool makes a tool of a function. Its input schema comes from In, a struct
// with json tags; a jsonschema tag describes a field to the model. What the
// function returns becomes the result: a string or a *ToolResult as it is, any
// other value as JSON text (L-234). An error or a panic becomes an error
// result that the model can read (L-137).
//
// A tool runs alone, in request order, unless ReadOnly says that it may run
// beside others (L-132). It panics when In is not a struct or the name is not
// one that the API takes: both are faults of the program.
func NewTool[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...ToolOption) Tool {
	t, err := tool.Func(name, description, fn, opts...)
	if err != nil {
		panic("turnwright.NewTool: " + err.Error())
	}
	return t
}

// ReadOnly says that the tool changes nothing: it may run beside other
// read-only calls and again after a crash. It does not allow the tool: name it
// in Options.AllowedTools.
func ReadOnly() ToolOption { return tool.ReadOnly() }

// ToolTimeout bounds each call of the tool. A call that takes longer becomes
// an error result.
func ToolTimeout(d time.Duration) ToolOption { return tool.Timeout(d) }
