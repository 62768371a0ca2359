package tool

import (
	"fmt"
	"strings"
)

// UnknownToolError says that a call names a tool that is not there (T-16). Its
// text is the content of the error tool_result (T-18).
type UnknownToolError struct {
	Name  string   // as the model wrote it
	Known []string // names of the tools that can be called
}

func (e *UnknownToolError) Error() string {
	text := fmt.Sprintf("There is no tool named %q.", clip(e.Name, 200))
	switch {
	case len(e.Known) == 0:
		text += " No tool is available."
	case len(e.Known) <= 50:
		text += " Available tools: " + strings.Join(e.Known, ", ") + "."
	}
	return toolUseError(text)
}

// InputError says why the input of a call was refused (T-17). Its text is the
// content of the error tool_result (T-18).
type InputError struct {
	Tool   string
	Faults []Fault // every fault of the input, ordered by field
}

// Fault is one fault of an input.
type Fault struct {
	Field string // path of the field, such as "file_path" or "todos[2].status"; "" is the input itself
	Want  string // what was expected, and what was there instead
}

func (e *InputError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The input of %s is not valid:", e.Tool)
	for i, f := range e.Faults {
		if i == maxFaults {
			fmt.Fprintf(&b, "\n- and %d more faults", len(e.Faults)-i)
			break
		}
		field := f.Field
		if field == "" {
			field = "(input)"
		}
		fmt.Fprintf(&b, "\n- %s: %s", clip(field, 200), f.Want)
	}
	return toolUseError(b.String())
}

// RefusedError tells the model why a call cannot run, whatever its tool would
// say: it was cut off, or its input is no JSON object (L-75, L-138).
type RefusedError struct {
	Tool   string
	Reason string
	Input  string // shown shortened behind the reason; "": not shown
}

func (e *RefusedError) Error() string {
	text := e.Tool + ": " + e.Reason
	if e.Input != "" {
		text += ": " + clip(e.Input, 200)
	}
	return toolUseError(text)
}

// maxFaults bounds the text for an input with very many faults.
const maxFaults = 30

func toolUseError(text string) string { return "<tool_use_error>" + text + "</tool_use_error>" }

// clip shortens s to about n bytes without cutting a character in two.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
