package loop

import (
	"encoding/json"
	"fmt"

	"github.com/turnwright/turnwright/internal/history"
	"github.com/turnwright/turnwright/message"
)

// Snapshot is the machine's whole private state as text, for comparing. What a
// journal's writer sets in the settings is left out: it is about the file.
func Snapshot(m *Machine) string {
	type item struct {
		Role         message.Role
		Blocks       []message.Block
		Text         *string
		UUID         string
		Model, MsgID string
		Flags        history.Flags
	}
	var items []item
	for _, it := range m.hist.Items() {
		items = append(items, item{it.Role, it.Blocks, it.Text, it.UUID, it.Model, it.MsgID, it.Flags})
	}
	var final []string
	for _, c := range m.calls {
		final = append(final, string(c.Final))
	}
	set := m.settings
	set.Format, set.Version = 0, ""
	raw, err := json.Marshal(struct {
		Items    []item
		Turn     Turn
		Queue    []Input
		Prompt   *Input
		Calls    []Call
		Final    []string
		Denials  []message.PermissionDenial
		Settings Settings
		Output   string
		Boundary bool
		Sent     map[string]bool
	}{items, m.turn, m.queue, m.prompt, m.calls, final, m.denials, set, string(m.output), m.boundary, m.sent.all})
	if err != nil {
		return fmt.Sprint("snapshot: ", err)
	}
	return string(raw)
}
