package crash

import (
	"strings"

	"github.com/turnwright/turnwright/agenttest"
)

// Call is one call that a plan wants made.
type Call struct {
	Tool  string
	Input string // a JSON object that has Mark in it
	Mark  string // tells the call from all others; no mark is part of another
	// Changes says that the call leaves Mark in the ledger and must do so once.
	// A call without it may be made again.
	Changes bool
}

// Task is what one prompt asks for: steps, and in each the calls that one
// response makes.
type Task struct {
	Prompt string // stands in the prompt; no such text is part of another
	Steps  [][]Call
}

// Plan is a model with a plan. What it says is a function of the request alone,
// so it serves a session however often its process ends.
type Plan struct {
	Tasks []Task
	Look  Call // reads the ledger
}

// state is what the model knows of a call.
type state int

const (
	owed    state = iota // never made, or surely not run
	unknown              // it may have run
	done
)

// Next answers a request. It makes the first calls that are owed, repeats those
// whose result says that they did not run, and looks at the ledger before it
// decides on one whose outcome is unknown (S-44).
func (p *Plan) Next(r *agenttest.Request) agenttest.Step {
	known, asked := p.read(r)
	for _, t := range asked {
		for _, step := range t.Steps {
			var next []agenttest.Step
			for _, c := range step {
				switch {
				case known[c.Mark] == unknown && c.Changes:
					return agenttest.Call(p.Look.Tool, p.Look.Input)
				case known[c.Mark] != done:
					next = append(next, agenttest.Call(c.Tool, c.Input))
				}
			}
			if len(next) > 0 {
				return agenttest.Blocks(next...)
			}
		}
	}
	return agenttest.Text("All done.")
}

// read goes through the conversation.
func (p *Plan) read(r *agenttest.Request) (known map[string]state, asked []Task) {
	known = map[string]state{}
	marks := map[string]string{} // by call id
	for _, m := range r.Messages() {
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				for _, t := range p.Tasks {
					if m.Role == "user" && strings.Contains(b.Text, t.Prompt) {
						asked = append(asked, t)
					}
				}
			case "tool_use":
				marks[b.ID] = p.markIn(string(b.Input))
			case "tool_result":
				text := ""
				for _, c := range b.Content {
					text += c.Text
				}
				switch mark := marks[b.ToolUseID]; {
				case mark == p.Look.Mark:
					p.looked(known, text)
				case strings.HasPrefix(text, "Not executed:"):
					known[mark] = owed
				case strings.HasPrefix(text, "Interrupted:"), strings.HasPrefix(text, "Killed:"):
					known[mark] = unknown
				default:
					known[mark] = done
				}
			}
		}
	}
	return known, asked
}

// looked settles what was unknown by what the ledger says.
func (p *Plan) looked(known map[string]state, ledger string) {
	for _, text := range []string{"Not executed:", "Interrupted:", "Killed:", "Its output is lost"} {
		if strings.Contains(ledger, text) {
			return // it has not seen the ledger
		}
	}
	for mark, s := range known {
		switch {
		case s != unknown:
		case strings.Contains(ledger, mark):
			known[mark] = done
		default:
			known[mark] = owed
		}
	}
}

func (p *Plan) markIn(input string) string {
	for _, c := range p.calls() {
		if strings.Contains(input, c.Mark) {
			return c.Mark
		}
	}
	return ""
}

func (p *Plan) calls() (all []Call) {
	for _, t := range p.Tasks {
		for _, step := range t.Steps {
			all = append(all, step...)
		}
	}
	return append(all, p.Look)
}

// Faults compares a ledger with what had to be done: a mark that is missing was
// lost, one that is there twice was doubled.
func (p *Plan) Faults(ledger []string) (lost, doubled []string) {
	n := map[string]int{}
	for _, mark := range ledger {
		n[mark]++
	}
	for _, c := range p.calls() {
		switch {
		case !c.Changes:
		case n[c.Mark] == 0:
			lost = append(lost, c.Mark)
		case n[c.Mark] > 1:
			doubled = append(doubled, c.Mark)
		}
	}
	return lost, doubled
}
