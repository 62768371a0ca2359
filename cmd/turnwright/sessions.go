package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/session"
)

// listed is a session in the JSON form of the listing, with the names that the
// clients' session functions use.
type listed struct {
	SessionID    string `json:"sessionId"`
	Summary      string `json:"summary"`
	LastModified int64  `json:"lastModified"` // ms since the Unix epoch
	FileSize     int64  `json:"fileSize"`
	CustomTitle  string `json:"customTitle,omitempty"`
	FirstPrompt  string `json:"firstPrompt,omitempty"`
	GitBranch    string `json:"gitBranch,omitempty"`
	CWD          string `json:"cwd,omitempty"`
	Tag          string `json:"tag,omitempty"`
	CreatedAt    int64  `json:"createdAt,omitempty"` // ms since the Unix epoch
}

func inJSON(s turnwright.SessionInfo) listed {
	l := listed{
		SessionID: s.SessionID, Summary: s.Summary, LastModified: s.LastModified.UnixMilli(), FileSize: s.FileSize,
		CustomTitle: s.CustomTitle, FirstPrompt: s.FirstPrompt, GitBranch: s.GitBranch, CWD: s.CWD, Tag: s.Tag,
	}
	if !s.CreatedAt.IsZero() {
		l.CreatedAt = s.CreatedAt.UnixMilli()
	}
	return l
}

// sessionsOptions are the flags of the sessions commands.
type sessionsOptions struct {
	json, all, help bool
	page            turnwright.Page
	upTo, title     string // of fork
	clear           bool   // of tag
	places          int    // of search
}

// sessionsCommand is one of them.
type sessionsCommand struct {
	name, args, about string
	count             int    // of arguments
	flags             string // beside --help
	run               func(c *sessionsRun, args []string) error
}

// sessionsCommands are all; the first is what "turnwright sessions" does alone.
var sessionsCommands = []sessionsCommand{
	{"list", "", "the sessions of the working directory and of the other worktrees\nof its repository, the last changed first", 0, "all json limit offset", (*sessionsRun).list},
	{"show", "SESSION", "the messages that resuming the session would go on from", 1, "json limit offset", (*sessionsRun).show},
	{"search", "TEXT", "the sessions that contain the text, whatever its case: in titles, tags,\nprompts, answers, and in inputs and results of tools", 1, "all json limit places", (*sessionsRun).search},
	{"rename", "SESSION TITLE", "give the session a title, by which it can be resumed", 2, "json", (*sessionsRun).rename},
	{"tag", "SESSION [TAG]", "give the session a tag, or take it away with --clear", -1, "json clear", (*sessionsRun).tag},
	{"fork", "SESSION", "copy the session under a new id", 1, "json up-to title", (*sessionsRun).fork},
	{"delete", "SESSION", "remove the session with its subagents and large outputs", 1, "json", (*sessionsRun).remove},
}

// set makes the flags that the command has.
func (o *sessionsOptions) set(c sessionsCommand) *pflag.FlagSet {
	all := pflag.NewFlagSet("turnwright sessions "+c.name, pflag.ContinueOnError)
	all.BoolVar(&o.all, "all", false, "of all directories")
	all.BoolVar(&o.json, "json", false, "print JSON")
	all.IntVar(&o.page.Limit, "limit", 0, "at most so many; 0: all")
	all.IntVar(&o.page.Offset, "offset", 0, "leave out so many at the beginning")
	all.IntVar(&o.places, "places", 3, "at most so many places of each session")
	all.StringVar(&o.upTo, "up-to", "", "uuid of the last message of the copy")
	all.StringVar(&o.title, "title", "", "title of the copy (default: that of the session with \" (fork)\")")
	all.BoolVar(&o.clear, "clear", false, "take the tag away")
	fs := pflag.NewFlagSet(all.Name(), pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for name := range strings.FieldsSeq(c.flags) {
		fs.AddFlag(all.Lookup(name))
	}
	fs.BoolVarP(&o.help, "help", "h", false, "print this help")
	return fs
}

// sessionsRun is one call of a command.
type sessionsRun struct {
	sessionsOptions
	ctx    context.Context
	out    *bufio.Writer
	stderr io.Writer
}

// runSessions looks after stored sessions.
func runSessions(args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	c := sessionsCommands[0]
	named := len(args) > 0 && !strings.HasPrefix(args[0], "-")
	if named {
		found := false
		for _, other := range sessionsCommands {
			if other.name == args[0] {
				c, found = other, true
			}
		}
		if !found {
			return fail(fmt.Errorf("sessions has no command %q: it has %s", args[0], sessionsNames()))
		}
		args = args[1:]
	}
	r := &sessionsRun{ctx: context.Background(), out: bufio.NewWriter(stdout), stderr: stderr}
	fs := r.set(c)
	if err := fs.Parse(args); err != nil {
		return fail(err)
	}
	switch {
	case r.help && !named:
		fmt.Fprint(stdout, sessionsUsage())
		return 0
	case r.help:
		fmt.Fprintf(stdout, "Usage: turnwright sessions %s\n\n%s.\n\nFlags:\n%s", c.usage(), upper(c.about), flagUsages(fs))
		return 0
	case c.count >= 0 && fs.NArg() > c.count:
		return fail(fmt.Errorf("unexpected argument %q: turnwright sessions %s", fs.Arg(c.count), c.usage()))
	case fs.NArg() < c.count:
		return fail(fmt.Errorf("%s needs %s: turnwright sessions %s", c.name, c.args, c.usage()))
	}
	err := c.run(r, fs.Args())
	if ferr := r.out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return fail(err)
	}
	return 0
}

func (c sessionsCommand) usage() string {
	s := c.name
	for name := range strings.FieldsSeq(c.flags) {
		s += " [--" + name
		switch name {
		case "limit", "offset", "places":
			s += " N"
		case "up-to":
			s += " UUID"
		case "title":
			s += " TITLE"
		}
		s += "]"
	}
	if c.args != "" {
		s += " " + c.args
	}
	return s
}

func sessionsNames() string {
	var names []string
	for _, c := range sessionsCommands {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

func sessionsUsage() string {
	var b strings.Builder
	b.WriteString("Usage: turnwright sessions [COMMAND]\n\nCommands:\n")
	for _, c := range sessionsCommands {
		fmt.Fprintf(&b, "  %s\n      %s\n", c.usage(), strings.ReplaceAll(c.about, "\n", "\n      "))
	}
	b.WriteString("\nWithout a command: list. SESSION is the id of a session: of the working directory,\nelse of any other.\n")
	return b.String()
}

// here are the sessions of the working directory, or all of them.
func (r *sessionsRun) here() (turnwright.Sessions, error) {
	if r.all {
		return turnwright.Sessions{}, nil
	}
	dir, err := os.Getwd()
	return turnwright.Sessions{Dir: dir}, err
}

// having are those among which the session is looked for: those of the working
// directory if it is one of them, else all.
func (r *sessionsRun) having(id string) (turnwright.Sessions, error) {
	if _, err := session.ParseID(id); err != nil {
		return turnwright.Sessions{}, err
	}
	s, err := r.here()
	if err != nil {
		return s, err
	}
	if info, err := s.Info(r.ctx, id); err != nil || info != nil {
		return s, err
	}
	return turnwright.Sessions{}, nil
}

func (r *sessionsRun) list([]string) error {
	s, err := r.here()
	if err != nil {
		return err
	}
	if r.json {
		return array(r.out, mapped(s.List(r.ctx, r.page), inJSON))
	}
	n := 0
	for info, err := range s.List(r.ctx, r.page) {
		if err != nil {
			return err
		}
		n++
		where := info.GitBranch
		if r.all {
			where = info.CWD
		}
		r.row(info, where)
	}
	if n == 0 && r.page.Offset == 0 {
		fmt.Fprintln(r.stderr, "No sessions here. --all lists those of other directories.")
	}
	return nil
}

const summaryWidth = 60

// row prints a session on one line. The columns have a fixed width, so that no
// line waits for the next.
func (r *sessionsRun) row(info turnwright.SessionInfo, where string) {
	line := fmt.Sprintf("%s  %s  %-*s  %s", info.SessionID, info.LastModified.Format("2006-01-02 15:04"), summaryWidth, oneLine(info.Summary, summaryWidth), oneLine(where, 1<<10))
	fmt.Fprintln(r.out, strings.TrimRight(line, " "))
}

func (r *sessionsRun) show(args []string) error {
	s, err := r.having(args[0])
	if err != nil {
		return err
	}
	info, err := s.Info(r.ctx, args[0])
	switch {
	case err != nil:
		return err
	case info == nil:
		return &turnwright.NoConversationError{Value: args[0]}
	case r.json:
		return array(r.out, s.Messages(r.ctx, args[0], r.page))
	}
	fmt.Fprintf(r.out, "%s  %s\n", info.SessionID, oneLine(info.Summary, summaryWidth))
	for m, err := range s.Messages(r.ctx, args[0], r.page) {
		if err != nil {
			return err
		}
		fmt.Fprintf(r.out, "\n%s %s\n", m.Type, m.UUID)
		for _, line := range spoken(m.Message) {
			fmt.Fprintf(r.out, "  %s\n", line)
		}
	}
	return nil
}

// spoken are the lines that a person reads of a message.
func spoken(raw json.RawMessage) (lines []string) {
	var m turnwright.UserMessage
	var body struct{ Content json.RawMessage }
	if json.Unmarshal(raw, &body) != nil || json.Unmarshal(body.Content, &m.Message.Content) != nil {
		return []string{"(cannot be read)"}
	}
	add := func(mark, text string, most int) {
		all := strings.Split(strings.TrimRight(text, "\n"), "\n")
		for i, line := range all {
			if i == most {
				lines = append(lines, fmt.Sprintf("%s… %d more lines", mark, len(all)-most))
				return
			}
			lines = append(lines, mark+oneLine(line, 1<<10))
		}
	}
	const text, result = 1 << 20, 10 // lines
	for _, b := range m.Message.Content.Blocks() {
		if u, ok := b.ToolUse(); ok {
			add("> ", u.Name+" "+string(u.Input), result)
		} else if res, ok := b.ToolResult(); ok {
			mark := "< "
			if res.IsError {
				mark = "! "
			}
			add(mark, res.Content.Text(), result)
		} else if b.Type() == "text" {
			add("", b.Text(), text)
		} else {
			add("", "("+b.Type()+")", 1)
		}
	}
	return lines
}

// foundJSON is what search tells in JSON.
type foundJSON struct {
	listed
	Places []placeJSON `json:"places"`
}

type placeJSON struct {
	In   string `json:"in"`
	UUID string `json:"uuid,omitempty"`
	Text string `json:"text"`
}

func (r *sessionsRun) search(args []string) error {
	s, err := r.here()
	if err != nil {
		return err
	}
	found := s.Search(r.ctx, args[0], turnwright.SearchOptions{Limit: r.page.Limit, Places: r.places})
	if r.json {
		return array(r.out, mapped(found, func(f turnwright.FoundSession) foundJSON {
			out := foundJSON{listed: inJSON(f.SessionInfo)}
			for _, p := range f.Places {
				out.Places = append(out.Places, placeJSON(p))
			}
			return out
		}))
	}
	n := 0
	for f, err := range found {
		if err != nil {
			return err
		}
		n++
		where := f.GitBranch
		if r.all {
			where = f.CWD
		}
		r.row(f.SessionInfo, where)
		for _, p := range f.Places {
			fmt.Fprintf(r.out, "    %s: %s\n", p.In, oneLine(p.Text, 1<<10))
		}
		if err := r.out.Flush(); err != nil {
			return err
		}
	}
	if n == 0 {
		fmt.Fprintln(r.stderr, "Nothing found.")
	}
	return nil
}

func (r *sessionsRun) rename(args []string) error {
	s, err := r.having(args[0])
	if err == nil {
		err = s.Rename(r.ctx, args[0], args[1])
	}
	if err != nil {
		return err
	}
	return r.changed(s, args[0], "Renamed")
}

func (r *sessionsRun) tag(args []string) error {
	switch {
	case len(args) == 1 && r.clear, len(args) == 2 && !r.clear:
	default:
		return errors.New("tag needs a session and a tag, or --clear: turnwright sessions tag [--json] SESSION TAG|--clear")
	}
	s, err := r.having(args[0])
	if err != nil {
		return err
	}
	if r.clear {
		err = s.Untag(r.ctx, args[0])
	} else {
		err = s.Tag(r.ctx, args[0], args[1])
	}
	if err != nil {
		return err
	}
	return r.changed(s, args[0], "Tagged")
}

func (r *sessionsRun) fork(args []string) error {
	s, err := r.having(args[0])
	if err != nil {
		return err
	}
	id, err := s.Fork(r.ctx, args[0], turnwright.ForkOptions{UpTo: r.upTo, Title: r.title})
	if err != nil {
		return err
	}
	if !r.json {
		fmt.Fprintln(r.out, id)
		return nil
	}
	return r.changed(s, id, "")
}

func (r *sessionsRun) remove(args []string) error {
	s, err := r.having(args[0])
	if err == nil {
		err = s.Delete(r.ctx, args[0])
	}
	switch {
	case err != nil:
		return err
	case r.json:
		return printJSON(r.out, map[string]any{"sessionId": strings.ToLower(args[0]), "deleted": true})
	}
	fmt.Fprintf(r.out, "Deleted %s.\n", strings.ToLower(args[0]))
	return nil
}

// changed tells how the session is now.
func (r *sessionsRun) changed(s turnwright.Sessions, id, what string) error {
	info, err := s.Info(r.ctx, id)
	switch {
	case err != nil:
		return err
	case info == nil: // deleted meanwhile
		return &turnwright.NoConversationError{Value: id}
	case r.json:
		return printJSON(r.out, inJSON(*info))
	}
	tag := ""
	if info.Tag != "" {
		tag = fmt.Sprintf(" (tag %s)", info.Tag)
	}
	fmt.Fprintf(r.out, "%s %s: %s%s\n", what, info.SessionID, oneLine(info.Summary, summaryWidth), tag)
	return nil
}

// array prints values as a JSON array, each when it comes.
func array[T any](w *bufio.Writer, values iter.Seq2[T, error]) error {
	n := 0
	for v, err := range values {
		if err != nil {
			return err
		}
		raw, err := json.MarshalIndent(v, "  ", "  ")
		if err != nil {
			return err
		}
		begin := ",\n  "
		if n == 0 {
			begin = "[\n  "
		}
		if _, err := w.WriteString(begin + string(raw)); err != nil {
			return err
		}
		n++
	}
	end := "\n]\n"
	if n == 0 {
		end = "[]\n"
	}
	_, err := w.WriteString(end)
	return err
}

func mapped[A, B any](values iter.Seq2[A, error], f func(A) B) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		for v, err := range values {
			if !yield(f(v), err) {
				return
			}
		}
	}
}

func printJSON(w io.Writer, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = w.Write(append(raw, '\n'))
	}
	return err
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// oneLine cuts a text to n characters for a table; control characters, which
// could move a terminal's cursor, become blanks.
func oneLine(s string, n int) string {
	clean := []rune(s)
	for i, r := range clean {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			clean[i] = ' '
		}
	}
	if len(clean) > n {
		return string(clean[:n-1]) + "…"
	}
	return string(clean)
}
