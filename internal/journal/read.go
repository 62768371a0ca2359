package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/session"
)

// Transcript is a session as its lines tell it.
type Transcript struct {
	// Entries are what a machine folds, in the order of the file. Where the
	// chain has branches they are those of the branch that is followed, and of
	// our own lines only settings and what tools remember.
	Entries []loop.Entry
	Last    string // uuid of the chain's end, the parent of what comes next; "" for none
	Skipped int    // lines that could not be read
	End     string // uuid of the last message in the file, whichever branch it is of; "" for none
	Cut     bool   // Last was asked for, and lines that were on the chain are off it now

	Title      string // the last custom-title
	Tag        string // the last tag
	LastPrompt string // the last last-prompt
	Model      string // of the session: what our own lines say, else that of the last response (S-40)
	Mode       string // permission mode: the last line that says it (K-325)
	Behind     int64  // bytes behind the first of these lines that holds; all where there is none

	Dirs []string  // working directories that were added, by any run of it (S-54)
	CWD  string    // of the first chain line
	Time time.Time // of the last chain line that has one
}

// node is a chain line's place in the chain.
type node struct {
	uuid, parent string
	logical      string // parent of a compaction boundary, which the chain does not go on with
	line         int    // from 0, of those that were read
	typ          string
	aside        bool      // of a side chain or a team: not the conversation
	meta         bool      // no person wrote it
	entry        int       // in entries; -1: of a type that holds no message
	ahead        int       // entries up to here, its own with them
	beforeBad    int       // the last node before the nearest line above that could not be read; -1: none
	at           time.Time // zero: the line has none
}

// linkLine is what every line is looked at for.
type linkLine struct {
	Type        string   `json:"type"`
	Kind        string   `json:"kind"`
	Dirs        []string `json:"dirs"`
	Kept        string   `json:"kept"`
	UUID        string   `json:"uuid"`
	Parent      *string  `json:"parentUuid"`
	Logical     string   `json:"logicalParentUuid"`
	Sidechain   bool     `json:"isSidechain"`
	Team        string   `json:"teamName"`
	Meta        bool     `json:"isMeta"`
	CWD         string   `json:"cwd"`
	Timestamp   string   `json:"timestamp"`
	CustomTitle string   `json:"customTitle"`
	Tag         string   `json:"tag"`
	LastPrompt  string   `json:"lastPrompt"`
	Mode        string   `json:"permissionMode"`
}

// reader collects a transcript.
type reader struct {
	t       Transcript
	entries []loop.Entry
	nodes   []node
	byUUID  map[string]int
	size    int64
	about   map[string]int64 // where the last metadata line of a type ends
	answer  string           // model of the last response
	bad     int              // nodes before the last line that could not be read; -1: there was none
	cuts    []cut
	read    int   // lines so far
	lineOf  []int // of each entry
	outline bool  // what entries say is not kept
}

// cut is a place where a session went on from an earlier line.
type cut struct {
	kept  string // uuid of that line
	ahead int    // entries before the cut
}

// ErrNoMessage tells that a session has no message with the uuid that it is to
// be read up to.
var ErrNoMessage = errors.New("no such message")

// Read reads a session's lines. A line that cannot be read is counted and left
// out (S-21); any other error of lines, and ErrNewerFormat, is returned.
func Read(lines iter.Seq2[[]byte, error]) (*Transcript, error) {
	r, err := collect(lines, false)
	if err != nil {
		return nil, err
	}
	r.follow(r.leaf())
	return &r.t, nil
}

// ReadTo is Read for a session that is to go on from an earlier message, user or
// assistant, as if what follows it had not been said (K-471). Without a message
// of this uuid it returns ErrNoMessage. dropped are the messages on the chain
// that are off it then, in order.
func ReadTo(lines iter.Seq2[[]byte, error], uuid string) (t *Transcript, dropped []Dropped, err error) {
	r, err := collect(lines, false)
	if err != nil {
		return nil, nil, err
	}
	at, err := r.message(uuid)
	if err != nil {
		return nil, nil, err
	}
	before := r.chain(r.leaf())
	kept := r.chain(at)
	for i, on := range before.on {
		if n := r.nodes[i]; on && !kept.on[i] {
			r.t.Cut = true
			if n.entry >= 0 {
				dropped = append(dropped, Dropped{Entry: r.entries[n.entry], Meta: n.meta})
			}
		}
	}
	if r.t.Cut {
		r.cuts = append(r.cuts, cut{uuid, len(r.entries)})
	}
	r.follow(at)
	return &r.t, dropped, nil
}

// message is the node of a message of the conversation.
func (r *reader) message(uuid string) (int, error) {
	at, ok := r.byUUID[uuid]
	if !ok || r.nodes[at].aside || r.nodes[at].entry < 0 || r.nodes[at].typ == "system" {
		return 0, ErrNoMessage
	}
	return at, nil
}

// Dropped is a message that a session goes on without.
type Dropped struct {
	loop.Entry
	Meta bool // no person wrote it
}

// collect reads all lines.
func collect(lines iter.Seq2[[]byte, error], outline bool) (*reader, error) {
	r := &reader{byUUID: map[string]int{}, about: map[string]int64{}, bad: -1, read: -1, outline: outline}
	for line, err := range lines {
		r.read++
		r.size += int64(len(line)) + 1
		var unreadable *session.LineError
		switch {
		case errors.As(err, &unreadable):
			r.skip()
		case err != nil:
			return nil, err
		default:
			if err := r.line(line); err != nil {
				return nil, err
			}
		}
	}
	r.t.Behind = r.size
	first := r.size
	for _, at := range r.about {
		first = min(first, at)
	}
	if len(r.about) > 0 {
		r.t.Behind = r.size - first
	}
	if r.t.Model == "" {
		r.t.Model = r.answer
	}
	return r, nil
}

func (r *reader) skip() {
	r.t.Skipped++
	r.bad = len(r.nodes) - 1
}

func (r *reader) line(line []byte) error {
	var l linkLine
	// A field of another type than ours makes Unmarshal fail and fills the rest.
	_ = json.Unmarshal(line, &l)
	switch l.Type {
	case "custom-title":
		r.t.Title = l.CustomTitle
	case "tag":
		r.t.Tag = l.Tag
	case "last-prompt":
		r.t.LastPrompt = l.LastPrompt
	}
	switch l.Type {
	case "custom-title", "tag", "last-prompt":
		r.about[l.Type] = r.size
		return nil
	case "permission-mode":
		r.t.Mode = l.Mode
		return nil
	case ownType:
		if l.Kind == dirsKind {
			r.dirs(l.Dirs)
			return nil
		}
		if l.Kind == cutKind {
			r.cuts = append(r.cuts, cut{l.Kept, len(r.entries)})
			return nil
		}
	}
	e, ok, err := Decode(line)
	switch {
	case errors.Is(err, ErrNewerFormat):
		return err
	case err != nil:
		r.skip()
		return nil
	}
	if ok && e.Chain() {
		r.t.End = l.UUID
	}
	if _, known := r.byUUID[l.UUID]; known && l.UUID != "" {
		return nil // written twice: an import that was repeated
	}
	at := -1
	if ok {
		at = len(r.entries)
		r.settings(e)
		if r.outline {
			e = loop.Entry{Kind: e.Kind, UUID: e.UUID}
		}
		r.entries, r.lineOf = append(r.entries, e), append(r.lineOf, r.read)
	}
	if l.UUID == "" || !slices.Contains(chainTypes, l.Type) {
		return nil
	}
	n := node{uuid: l.UUID, logical: l.Logical, line: r.read, typ: l.Type, aside: l.Sidechain || l.Team != "", meta: l.Meta, entry: at, ahead: len(r.entries), beforeBad: r.bad}
	if l.Parent != nil {
		n.parent = *l.Parent
	}
	n.at, _ = time.Parse(time.RFC3339Nano, l.Timestamp)
	if r.t.CWD == "" {
		r.t.CWD = l.CWD
	}
	if n.at.After(r.t.Time) {
		r.t.Time = n.at
	}
	r.byUUID[l.UUID] = len(r.nodes)
	r.nodes = append(r.nodes, n)
	return nil
}

// dirs notes added directories, each once.
func (r *reader) dirs(more []string) {
	for _, dir := range more {
		if !slices.Contains(r.t.Dirs, dir) {
			r.t.Dirs = append(r.t.Dirs, dir)
		}
	}
}

// settings notes what an entry tells of the session's settings.
func (r *reader) settings(e loop.Entry) {
	switch {
	case e.Kind == loop.KindOpen:
		r.t.Model, r.t.Mode = cmp.Or(e.Open.Model, r.t.Model), cmp.Or(e.Open.Mode, r.t.Mode)
	case e.Kind == loop.KindAssistant && !e.Assistant.Notice:
		r.answer = cmp.Or(e.Assistant.Message.Model, r.answer)
	}
}

// chainTypes are the types of lines that may be a parent (K-308).
var chainTypes = []string{"user", "assistant", "system", "attachment", "progress"}

// chain is what lies on the way up from a leaf.
type chain struct {
	on   []bool // by node
	root int    // its first node; the leaf where there is none
}

func (r *reader) chain(leaf int) chain {
	c := chain{make([]bool, len(r.nodes)), leaf}
	for i := leaf; i >= 0 && !c.on[i]; i = r.up(i) {
		c.on[i], c.root = true, i
	}
	return c
}

// history yields the chain from its leaf up, and behind each compaction what it
// replaced; each node once.
func (r *reader) history(leaf int) iter.Seq[int] {
	return func(yield func(int) bool) {
		seen := make([]bool, len(r.nodes))
		for i := leaf; i >= 0 && !seen[i]; {
			seen[i] = true
			if !yield(i) {
				return
			}
			up := r.up(i)
			if before, ok := r.byUUID[r.nodes[i].logical]; up < 0 && ok {
				up = before
			}
			i = up
		}
	}
}

// follow walks up from the end of the conversation and decides what a machine
// folds (K-370, K-371).
func (r *reader) follow(leaf int) {
	if leaf < 0 {
		r.t.Entries = r.entries
		return
	}
	r.t.Last = r.nodes[leaf].uuid
	c := r.chain(leaf)
	branched := false
	for i := c.root; i < len(r.nodes); i++ {
		n := r.nodes[i]
		if !c.on[i] && !n.aside && n.entry >= 0 {
			branched = true
		}
	}
	if c.root > 0 && r.nodes[c.root].typ != "system" {
		// What is before a root that is no boundary is not read by anybody.
		branched = branched || slices.ContainsFunc(r.nodes[:c.root], func(n node) bool { return !n.aside && n.entry >= 0 })
	}
	drop := make([]bool, len(r.entries))
	last := 0 // entries up to the last one that is off the chain
	for i, n := range r.nodes {
		if n.entry >= 0 && !c.on[i] && (branched || n.aside) {
			drop[n.entry] = true
			if !n.aside {
				last = n.entry + 1
			}
		}
	}
	clean := r.dropCut(c, drop, last)
	for i, e := range r.entries {
		own := !e.Chain() && e.Kind != loop.KindOpen && e.Kind != loop.KindState
		if !drop[i] && !(branched && own && i < clean) {
			r.t.Entries = append(r.t.Entries, e)
		}
	}
}

// dropCut drops what tools remembered in the parts that a session went on
// without. It returns from which entry on our own lines hold again: behind the
// last cut, where no branch follows it, the session is one line again, and began
// with nothing open.
func (r *reader) dropCut(c chain, drop []bool, last int) (clean int) {
	clean = len(r.entries)
	for _, cut := range r.cuts {
		kept, ok := r.byUUID[cut.kept]
		if !ok || !c.on[kept] {
			continue
		}
		from := r.nodes[kept].ahead
		if slices.ContainsFunc(r.nodes, func(n node) bool {
			return n.entry >= from && n.entry < cut.ahead && c.on[r.byUUID[n.uuid]]
		}) {
			continue // nothing was said behind it, so it does not count
		}
		for i := from; i < cut.ahead; i++ {
			drop[i] = drop[i] || r.entries[i].Kind == loop.KindState
		}
		if cut.ahead >= last {
			clean = cut.ahead
		}
	}
	return clean
}

// leaf is the newest user or assistant line above a line that nobody names as
// its parent; lines that are not the conversation's count only when there is no
// other. It is -1 when there is none.
func (r *reader) leaf() int {
	named := make(map[string]bool, len(r.nodes))
	for _, n := range r.nodes {
		if n.parent != n.uuid {
			named[n.parent] = true
		}
	}
	best, bestAside := -1, -1
	for i, n := range r.nodes {
		if named[n.uuid] {
			continue
		}
		seen := map[int]bool{}
		j := i
		for j >= 0 && r.nodes[j].typ != "user" && r.nodes[j].typ != "assistant" {
			if seen[j] {
				j = -1
				break
			}
			seen[j] = true
			j = r.up(j)
		}
		switch {
		case j < 0:
		case r.nodes[j].aside || r.nodes[j].meta:
			bestAside = max(bestAside, j)
		default:
			best = max(best, j)
		}
	}
	if best < 0 {
		return bestAside
	}
	return best
}

// up is the parent's index, -1 at the root. Where the parent is missing and a
// line before could not be read, the chain goes on before that line (S-21).
func (r *reader) up(i int) int {
	n := r.nodes[i]
	if n.parent == "" {
		return -1
	}
	if p, ok := r.byUUID[n.parent]; ok {
		return p
	}
	return n.beforeBad
}
