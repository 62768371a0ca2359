package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
)

// madeUp begins the ids that a tried step makes: they stand for those that were
// made when the journal was written.
var madeUp = [16]byte{0x7e, 0x9a, 0x1d, 0x5c, 0x00, 0x0f, 0x4e, 0x0f, 0x80}

// madeUpText is their beginning as text.
const madeUpText = "7e9a1d5c-000f-4e0f-80"

// formOf is what is compared of an entry: its line without the time, its place in
// the chain and what depends on the writer.
func formOf(e loop.Entry) []byte {
	e.Time = time.Time{}
	raw, err := new(journal.Writer).Encode(e)
	if err != nil {
		raw = []byte(strconv.Quote(err.Error())) // differs from whatever it stands against
	}
	return raw
}

func (r *record) formed() []byte {
	if r.form == nil {
		r.form = formOf(r.Entry)
	}
	return r.form
}

// naming is a one to one renaming of ids that a step makes.
type naming map[string]string

// add notes that a made up id stands for the recorded one. No other does.
func (n naming) add(made, was string) {
	if !strings.HasPrefix(made, madeUpText) {
		return
	}
	for _, other := range n {
		if other == was {
			return // the made up id stays, and differs
		}
	}
	n[made] = was
}

// form is the form of an entry that was decided on, with the ids of the record.
// Every id that a step makes is first that of a line of the chain, or of a result.
func (n naming) form(e loop.Entry, r *record) []byte {
	switch {
	case e.Chain() && r.Chain():
		n.add(e.UUID, r.UUID)
	case e.Kind == loop.KindTurn && r.Kind == loop.KindTurn && e.Turn.Result != nil && r.Turn.Result != nil:
		n.add(e.Turn.Result.UUID, r.Turn.Result.UUID)
	}
	if e.Kind == loop.KindOpen && r.Kind == loop.KindOpen && r.Open.Width == 0 {
		set := *e.Open
		set.Run = loop.Run{} // journals of before do not tell it
		e.Open = &set
	}
	raw := formOf(e)
	if !bytes.Contains(raw, []byte(madeUpText)) {
		return raw
	}
	for made, was := range n { // they do not overlap: the order does not matter
		raw = bytes.ReplaceAll(raw, []byte(made), []byte(was))
	}
	return raw
}

// same reports whether two forms say the same. Another version may have written
// the fields of a result in another order.
func same(a, b []byte) bool {
	return bytes.Equal(a, b) || len(a) == len(b) && len(fields(a, b, 1)) == 0
}

// fields are the first n places in which two forms differ.
func fields(recorded, decided []byte, n int) []Field {
	d := differ{max: n}
	d.walk("", parse(recorded), parse(decided))
	return d.out
}

// parse reads JSON; what is none stands for itself.
func parse(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return string(raw)
	}
	return v
}

type differ struct {
	max int
	out []Field
}

func (d *differ) walk(path string, a, b any) {
	if len(d.out) >= d.max {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			d.object(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range max(len(x), len(y)) {
				d.walk(path+"["+strconv.Itoa(i)+"]", at(x, i), at(y, i))
			}
			return
		}
	case string:
		y, ok := b.(string)
		if ok && x == y {
			return
		}
		if ok && embeds(path) {
			// Values of users and models stand in own lines as JSON in a string.
			vx, vy := parse([]byte(x)), parse([]byte(y))
			_, ox := vx.(map[string]any)
			if _, oy := vy.(map[string]any); ox && oy {
				d.walk(path, vx, vy)
				return
			}
		}
	case json.Number:
		if y, ok := b.(json.Number); ok && x == y {
			return
		}
	case bool:
		if y, ok := b.(bool); ok && x == y {
			return
		}
	case nil:
		if b == nil {
			return
		}
	}
	d.out = append(d.out, Field{Path: path, Recorded: leaf(a), Decided: leaf(b)})
}

func (d *differ) object(path string, x, y map[string]any) {
	keys := slices.Collect(maps.Keys(x))
	for k := range y {
		if _, ok := x[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		p := k
		if path != "" {
			p = path + "." + k
		}
		d.walk(p, value(x, k), value(y, k))
	}
}

// missing is what is not there; null is there.
type missing struct{}

func value(m map[string]any, k string) any {
	if v, ok := m[k]; ok {
		return v
	}
	return missing{}
}

func at(l []any, i int) any {
	if i < len(l) {
		return l[i]
	}
	return missing{}
}

// embeds reports a field of an own line that holds JSON as a string.
func embeds(path string) bool {
	return path == "input" || path == "result" || path == "denial" || path == "finalInput" || path == "value"
}

func leaf(v any) string {
	switch v := v.(type) {
	case missing:
		return ""
	case string:
		return strconv.Quote(v)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
