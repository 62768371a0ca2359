package replay

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrNothing tells that a session has no lines of Turnwright: another program
// wrote it, so that there are no decisions to compare.
var ErrNothing = errors.New("nothing to replay: the session has no lines of the agent loop; another program wrote it")

// Report is what a replay found.
type Report struct {
	SessionID string `json:"session_id"`
	Lines     int    `json:"lines"`                   // of the journal, of all kinds
	Skipped   int    `json:"skipped_lines,omitempty"` // of them could not be read
	Given     int    `json:"given,omitempty"`         // entries of a conversation that was taken over, such as that of a fork: they are believed
	Checked   int    `json:"checked"`                 // entries that the machine decided just so
	Steps     int    `json:"steps"`                   // events that were inferred
	Runs      int    `json:"runs"`                    // processes that wrote it, as far as can be seen
	// Torn: the last write is there in part, as a crash leaves it.
	Torn bool `json:"torn,omitempty"`
	// Difference is the first one; nil: there is none. Nothing behind it is
	// compared.
	Difference *Difference `json:"difference"`
}

// Difference is a line that the machine would not have written.
type Difference struct {
	Line    int      `json:"line"`              // its number in the journal, from 1
	Kind    string   `json:"kind"`              // of its entry: user, assistant, system, open, input, call, turn, elide or state
	State   string   `json:"state"`             // of the machine before the step that the line belongs to
	Waiting []string `json:"waiting,omitempty"` // what the machine waited for then, such as "model model/2" or "run 2.0"
	Event   string   `json:"event,omitempty"`   // what must have happened, as near as can be told; "": nothing fits
	Why     string   `json:"why"`               // one sentence
	Fields  []Field  `json:"fields,omitempty"`  // what differs, where the entries are of one kind; the first ten
	Record  string   `json:"recorded"`          // the entry in the journal, as JSON without time and place in the chain
	Decided string   `json:"decided,omitempty"` // the entry that the machine decided on; "": none
}

// Field is a difference in one place of two entries.
type Field struct {
	Path     string `json:"path"`     // such as turn.ending.subtype
	Recorded string `json:"recorded"` // "": not there
	Decided  string `json:"decided"`
}

// maxShown is how many bytes of an entry the text form shows.
const maxShown = 600

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Session %s\n", r.SessionID)
	fmt.Fprintf(&b, "%s, %s in %s, %s.\n", count(r.Lines, "line"), count(r.Checked, "entry"), count(r.Steps, "step"), count(r.Runs, "run"))
	if r.Given > 0 {
		fmt.Fprintf(&b, "%s of a conversation that was taken over: not compared.\n", count(r.Given, "entry"))
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "%s could not be read.\n", count(r.Skipped, "line"))
	}
	if r.Torn {
		b.WriteString("The last write is there in part, as a crash leaves it.\n")
	}
	if d := r.Difference; d == nil {
		b.WriteString("No difference: the machine decides the same again.\n")
	} else {
		d.text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d *Difference) text(b *strings.Builder) {
	fmt.Fprintf(b, "\nFirst difference: line %d (%s).\n  %s\n", d.Line, d.Kind, d.Why)
	fmt.Fprintf(b, "  State before: %s", d.State)
	if len(d.Waiting) > 0 {
		fmt.Fprintf(b, ", waiting for %s", strings.Join(d.Waiting, ", "))
	}
	b.WriteString("\n")
	if d.Event != "" {
		fmt.Fprintf(b, "  Event: %s\n", d.Event)
	}
	for _, f := range d.Fields {
		fmt.Fprintf(b, "  %s: recorded %s, decided %s\n", f.Path, shown(f.Recorded), shown(f.Decided))
	}
	fmt.Fprintf(b, "  Recorded: %s\n", shown(d.Record))
	if d.Decided != "" {
		fmt.Fprintf(b, "  Decided:  %s\n", shown(d.Decided))
	}
}

func shown(s string) string {
	switch {
	case s == "":
		return "nothing"
	case len(s) > maxShown:
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		what = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
