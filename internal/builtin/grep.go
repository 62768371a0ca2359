package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright/internal/search"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// Grep searches in files (T-97 to T-106), with an engine of its own that
// follows ripgrep.
type Grep struct{}

// NewGrep returns the Grep tool.
func NewGrep() *Grep { return &Grep{} }

const grepSchema = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","minLength":1,"description":"Regular expression, in ripgrep's syntax"},` +
	`"path":{"type":"string","description":"File or directory to search; absolute, or relative to the working directory, which is the default"},` +
	`"glob":{"type":"string","description":"Search only files that fit, such as *.js, src/**/*.{ts,tsx} or !*_test.go; without a slash it is for names at any depth, with one for paths below the searched directory"},` +
	`"type":{"type":"string","description":"Search only files of a type, such as js, ts, py, go, rust, java, md"},` +
	`"output_mode":{"type":"string","enum":["content","files_with_matches","count"],"description":"content: matching lines; files_with_matches (default): paths; count: matching lines counted for each file"},` +
	`"-i":{"type":"boolean","description":"Ignore case"},` +
	`"-n":{"type":"boolean","description":"Line numbers, for content; default true"},` +
	`"-o":{"type":"boolean","description":"Only the matching parts of lines, for content"},` +
	`"-A":{"type":"integer","minimum":0,"description":"Lines to show after each match, for content"},` +
	`"-B":{"type":"integer","minimum":0,"description":"Lines to show before each match, for content"},` +
	`"-C":{"type":"integer","minimum":0,"description":"Lines to show before and after each match, for content"},` +
	`"context":{"type":"integer","minimum":0,"description":"The same as -C"},` +
	`"head_limit":{"type":"integer","minimum":0,"description":"Show only the first entries: lines of content, files otherwise; default 250, 0 shows all"},` +
	`"offset":{"type":"integer","minimum":0,"description":"Entries to leave out before the first one shown"},` +
	`"multiline":{"type":"boolean","description":"Let a match span lines; the dot fits line ends too"}},` +
	`"required":["pattern"],"additionalProperties":false}`

// Spec describes the tool.
func (*Grep) Spec() tool.Spec {
	return tool.Spec{
		Name: "Grep",
		Description: "Searches files for a regular expression, as ripgrep does: files that git ignores, binary files " +
			"and the directories of version control are left out, hidden files are searched; a path named in path is always searched. " +
			"The most recently changed files come first. Paths are relative to the working directory where they lie in it. " +
			"Look-around and backreferences are not supported.",
		InputSchema: json.RawMessage(grepSchema),
		Traits:      tool.Traits{ReadOnly: true, Concurrent: true, Repeatable: true},
	}
}

type grepInput struct {
	Pattern    string   `json:"pattern"`
	Path       string   `json:"path"`
	Glob       string   `json:"glob"`
	Type       string   `json:"type"`
	OutputMode string   `json:"output_mode"`
	IgnoreCase bool     `json:"-i"`
	Numbers    *bool    `json:"-n"`
	Only       bool     `json:"-o"`
	After      *float64 `json:"-A"` // the schema lets 3.0 through as an integer
	Before     *float64 `json:"-B"`
	Around     *float64 `json:"-C"`
	Context    *float64 `json:"context"`
	HeadLimit  *float64 `json:"head_limit"`
	Offset     float64  `json:"offset"`
	Multiline  bool     `json:"multiline"`
}

// The modes of Grep (T-97).
const (
	filesMode   = "files_with_matches"
	contentMode = "content"
	countMode   = "count"
)

// defaultHeadLimit is how many entries are shown when head_limit is not given
// (T-105).
const defaultHeadLimit = 250

// Normalize makes path absolute and fills it in.
func (*Grep) Normalize(env *tool.Env, input json.RawMessage) (json.RawMessage, error) {
	var in grepInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("Grep: %w", err)
	}
	root, err := searchRoot(env, in.Path)
	if err != nil {
		return nil, err
	}
	return setFields(input, map[string]string{"path": root})
}

// Accesses returns the file or directory that is searched.
func (*Grep) Accesses(input json.RawMessage) ([]permission.Access, error) {
	var in grepInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("Grep: %w", err)
	}
	return searchAccess(in.Path)
}

// Call searches.
func (*Grep) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	var in grepInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("Grep: %w", err)
	}
	opts, err := in.options(c)
	if err != nil {
		return nil, err
	}
	dir, err := statRoot(opts.Root, opts.Real)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	if !dir && opts.Skip != nil && opts.Skip(opts.Root) {
		return nil, errors.New("path: File is covered by a Read deny rule in your permission settings and cannot be searched.")
	}
	found, err := search.Grep(ctx, opts)
	if err != nil {
		return nil, err
	}
	return in.result(c, &opts, found)
}

// options turns the input into what the engine takes; what the engine refuses
// is an error with its words (T-99).
func (in *grepInput) options(c *tool.Call) (o search.GrepOptions, err error) {
	switch {
	case in.Pattern == "":
		return o, errors.New("pattern: is empty")
	case strings.ContainsRune(in.Pattern, 0):
		return o, fmt.Errorf("pattern: %q contains a NUL byte", in.Pattern)
	case strings.ContainsRune(in.Glob, 0):
		return o, fmt.Errorf("glob: %q contains a NUL byte", in.Glob)
	}
	switch in.OutputMode {
	case "", filesMode:
		in.OutputMode, o.Mode = filesMode, search.Files
	case contentMode:
		o.Mode = search.Content
	case countMode:
		o.Mode = search.Count
	default:
		return o, fmt.Errorf("output_mode: %q: must be content, files_with_matches or count", in.OutputMode)
	}
	env := c.Env
	if o.Root, err = searchRoot(env, in.Path); err != nil {
		return o, err
	}
	if o.Real, err = resolve(c, o.Root); err != nil {
		return o, fmt.Errorf("path: %w", err)
	}
	if o.Matcher, err = search.Compile(in.Pattern, in.IgnoreCase, in.Multiline); err != nil {
		return o, fmt.Errorf("pattern: %w", err)
	}
	if o.Filter, err = search.NewFilter(filepath.ToSlash(in.Glob), ""); err != nil {
		return o, fmt.Errorf("glob: %w", err)
	}
	if in.Type != "" {
		if o.Filter, err = search.NewFilter(filepath.ToSlash(in.Glob), in.Type); err != nil {
			return o, fmt.Errorf("type: %w", err)
		}
	}
	o.Hidden, o.Ignore = true, true
	o.Skip, o.Getenv, o.Name = skipDenied(env, o.Root, o.Real), env.Getenv, namer(env)
	o.Offset, o.Limit = count(in.Offset), defaultHeadLimit
	if in.HeadLimit != nil {
		o.Limit = count(*in.HeadLimit)
	}
	if o.Mode == search.Content {
		o.Only, o.Numbers = in.Only, in.Numbers == nil || *in.Numbers
		o.Before, o.After = lineCount(in.Before, in.Around, in.Context), lineCount(in.After, in.Around, in.Context)
	}
	return o, nil
}

// count turns a number of the input, which is not negative, into an int.
func count(f float64) int { return int(min(max(f, 0), 1<<30)) }

// lineCount is the first of the values that is given.
func lineCount(values ...*float64) int {
	for _, v := range values {
		if v != nil {
			return count(*v)
		}
	}
	return 0
}

// grepOutput is Grep's structured output (T-103).
type grepOutput struct {
	Mode          string   `json:"mode"`
	NumFiles      int      `json:"numFiles"`
	Filenames     []string `json:"filenames"`
	Content       string   `json:"content,omitempty"`
	NumLines      int      `json:"numLines,omitempty"`
	NumMatches    int      `json:"numMatches,omitempty"`
	TotalFiles    int      `json:"totalFiles"`
	TotalLines    int      `json:"totalLines,omitempty"`
	AppliedLimit  int      `json:"appliedLimit,omitempty"`
	AppliedOffset int      `json:"appliedOffset,omitempty"`
}

func (in *grepInput) result(c *tool.Call, o *search.GrepOptions, found *search.GrepResult) (*tool.Result, error) {
	out := grepOutput{
		Mode: in.OutputMode, NumFiles: len(found.Files), Filenames: []string{},
		TotalFiles: found.TotalFiles, AppliedOffset: o.Offset,
	}
	for _, f := range found.Files {
		out.Filenames = append(out.Filenames, strings.ToValidUTF8(o.Name(f.Path), "\uFFFD"))
	}
	if found.More {
		out.AppliedLimit = o.Limit
	}
	var text string
	shown := len(found.Files)
	switch o.Mode {
	case search.Files:
		text = fmt.Sprintf("Found %s\n%s", quantity(found.TotalFiles, "file", "files"), strings.Join(out.Filenames, "\n"))
	case search.Count:
		lines := make([]string, len(found.Files))
		for i, f := range found.Files {
			lines[i] = fmt.Sprintf("%s:%d", out.Filenames[i], f.Matches)
		}
		out.Content, out.NumMatches = strings.Join(lines, "\n"), found.Matches
		text = fmt.Sprintf("%s\n\nFound %s in %s.", out.Content,
			quantity(found.Matches, "match", "matches"), quantity(found.TotalFiles, "file", "files"))
	case search.Content:
		shown = len(found.Lines)
		out.Content, out.NumLines, out.NumMatches = strings.Join(found.Lines, "\n"), shown, found.Matches
		if o.Before == 0 && o.After == 0 && !in.Multiline {
			out.TotalLines = found.Matches
		}
		text = out.Content
	}
	switch {
	case found.TotalFiles == 0 && o.Mode == search.Files:
		text = "No files found"
	case found.TotalFiles == 0:
		text = "No matches found"
	case shown == 0 && o.Offset > 0 && o.Mode != search.Count:
		text = "No entries at this offset" // T-102
	}
	text = fitInline(c, text)
	if len(out.Content) > grepInline {
		out.Content = cutLines(out.Content, grepInline)
	}
	return searchResult(text, in.notes(o, found, shown), out)
}

// notes say what the model could not know from the entries.
func (in *grepInput) notes(o *search.GrepOptions, found *search.GrepResult, shown int) (notes []string) {
	if found.More {
		what := "files"
		if o.Mode == search.Content {
			what = "lines"
		}
		notes = append(notes, fmt.Sprintf("There are more %s. Go on with offset %d, or narrow the search.", what, o.Offset+shown))
	}
	if found.Searched == 0 && (in.Glob != "" || in.Type != "") { // B-098
		var filters []string
		if in.Glob != "" {
			filters = append(filters, fmt.Sprintf("glob %q", in.Glob))
		}
		if in.Type != "" {
			filters = append(filters, fmt.Sprintf("type %q", in.Type))
		}
		note := "No file was searched: none fits " + strings.Join(filters, " and ") + "."
		if found.LeftOut {
			note = "No file was searched: none that git does not ignore fits " + strings.Join(filters, " and ") +
				". Ignored files are left out; to search them, name their directory, or the file, as path."
		}
		notes = append(notes, note)
	}
	if found.TooLarge > 0 {
		notes = append(notes, quantity(found.TooLarge, "file was", "files were")+" left out, being too large for multiline.")
	}
	return append(notes, unreadableNote(found.Unreadable)...)
}

// grepInline is how many bytes of a result are shown to the model; a larger one
// goes to a file.
const grepInline = 100_000

// fitInline saves a text that is too large and returns its start with the path.
func fitInline(c *tool.Call, text string) string {
	if len(text) <= grepInline {
		return text
	}
	where := "it could not be saved"
	if c.Env.PutBlob != nil {
		path, err := c.Env.PutBlob("grep-"+safeName(c.ID)+".txt", []byte(text))
		if err != nil {
			where += ": " + err.Error()
		} else {
			where = "all of it is saved in " + path
		}
	}
	return fmt.Sprintf("%s\n\n[The result has %d bytes; %s.]", cutLines(text, grepInline), len(text), where)
}

// cutLines returns whole lines from the start of a text, up to a size.
func cutLines(text string, size int) string {
	if i := strings.LastIndexByte(text[:size], '\n'); i >= 0 {
		return text[:i]
	}
	return strings.ToValidUTF8(text[:size], "")
}

var _ interface {
	tool.Tool
	tool.Accesser
	tool.Normalizer
} = (*Grep)(nil)
