package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/search"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// Glob finds files by name (T-89 to T-96).
type Glob struct {
	// limit ends a search after a time; tests end it otherwise.
	limit func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// NewGlob returns the Glob tool.
func NewGlob() *Glob {
	return &Glob{limit: func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, d, errGlobTime)
	}}
}

// errGlobTime is the cause of a search's end by its time limit.
var errGlobTime = errors.New("the time limit of the search")

const globSchema = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","minLength":1,"description":"Pattern for paths below the directory: * and ? within a name, ** for any directories, [a-z], {a,b}; for example **/*.ts or src/**/*.{js,css}"},` +
	`"path":{"type":"string","description":"Directory to search; absolute, or relative to the working directory, which is the default"}},` +
	`"required":["pattern"],"additionalProperties":false}`

// Spec describes the tool.
func (*Glob) Spec() tool.Spec {
	return tool.Spec{
		Name: "Glob",
		Description: "Finds files whose path fits a pattern; the newest come first, at most 100. " +
			"*.go finds files in the directory itself, **/*.go also those in all directories below. " +
			"Hidden files, and files that git ignores, are found too. " +
			"Paths are relative to the working directory where they lie in it. To search in files, use Grep.",
		InputSchema: json.RawMessage(globSchema),
		Traits:      tool.Traits{ReadOnly: true, Concurrent: true, Repeatable: true},
	}
}

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

// globCap is how many paths a call returns (T-90).
const globCap = 100

// Normalize makes path absolute and fills it in. A pattern that leads out of
// path, being absolute or beginning with "~" or "..", becomes a path and a
// pattern below it, so that rules judge the directory that is searched.
func (*Glob) Normalize(env *tool.Env, input json.RawMessage) (json.RawMessage, error) {
	var in globInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("Glob: %w", err)
	}
	if strings.ContainsRune(in.Pattern, 0) {
		return nil, fmt.Errorf("pattern: %q contains a NUL byte", in.Pattern)
	}
	root, err := searchRoot(env, in.Path)
	if err != nil {
		return nil, err
	}
	base, rest := search.SplitPattern(filepath.ToSlash(in.Pattern))
	switch {
	case strings.HasPrefix(base, "~/"), base != "" && filepath.IsAbs(filepath.FromSlash(base)):
		if root, err = absolute(env, "pattern", base); err != nil {
			return nil, err
		}
		in.Pattern = rest
	case !filepath.IsLocal(filepath.FromSlash(path.Clean(base + "x"))):
		root, in.Pattern = filepath.Join(root, filepath.FromSlash(base)), rest
	}
	return setFields(input, map[string]string{"path": root, "pattern": in.Pattern})
}

// Accesses returns the directory that is searched: path, and what of the
// pattern names directories without wildcards.
func (*Glob) Accesses(input json.RawMessage) ([]permission.Access, error) {
	var in globInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("Glob: %w", err)
	}
	base, _ := search.SplitPattern(filepath.ToSlash(in.Pattern))
	if !filepath.IsAbs(in.Path) {
		return nil, fmt.Errorf("path: %q: not absolute", in.Path)
	}
	return searchAccess(filepath.Join(in.Path, filepath.FromSlash(base)))
}

// Call searches.
func (g *Glob) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	start := time.Now()
	var in globInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("Glob: %w", err)
	}
	if in.Pattern == "" {
		return nil, errors.New("pattern: is empty")
	}
	root, err := searchRoot(c.Env, in.Path)
	if err != nil {
		return nil, err
	}
	from := filepath.Join(root, filepath.FromSlash(first(search.SplitPattern(filepath.ToSlash(in.Pattern)))))
	real, err := resolve(c, from)
	realRoot := real
	if err == nil && from != root { // which must be there all the same
		realRoot, err = permission.Resolve(root)
	}
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	switch dir, err := statRoot(root, realRoot); {
	case err != nil:
		return nil, fmt.Errorf("path: %w", err)
	case !dir:
		return nil, fmt.Errorf("path: %s is a file, not a directory", root)
	}
	limited, cancel := g.limit(ctx, globTime(c.Env))
	defer cancel()
	found, err := search.Glob(limited, search.GlobOptions{
		Root: root, Real: real, Pattern: in.Pattern, Limit: globCap,
		Hidden: !switchedOff(c.Env, "CLAUDE_CODE_GLOB_HIDDEN"),
		Ignore: switchedOff(c.Env, "CLAUDE_CODE_GLOB_NO_IGNORE"),
		Skip:   skipDenied(c.Env, from, real),
		Getenv: c.Env.Getenv,
	})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && found == nil:
		return nil, fmt.Errorf("pattern: %w", err)
	case err != nil && limited.Err() == nil:
		return nil, err
	}
	return globResult(c.Env, in.Pattern, found, err == nil, time.Since(start))
}

func first(a, _ string) string { return a }

// globOutput is Glob's structured output (T-91).
type globOutput struct {
	DurationMs      int64    `json:"durationMs"`
	NumFiles        int      `json:"numFiles"`
	Filenames       []string `json:"filenames"`
	Truncated       bool     `json:"truncated"`
	TotalMatches    int      `json:"totalMatches"`
	CountIsComplete bool     `json:"countIsComplete"`
}

func globResult(env *tool.Env, pattern string, found *search.GlobResult, complete bool, took time.Duration) (*tool.Result, error) {
	out := globOutput{
		DurationMs: took.Milliseconds(), NumFiles: len(found.Paths), Filenames: []string{},
		Truncated: !complete || found.Total > len(found.Paths), TotalMatches: found.Total, CountIsComplete: complete,
	}
	name := namer(env)
	for _, p := range found.Paths {
		out.Filenames = append(out.Filenames, strings.ToValidUTF8(name(p), "\uFFFD"))
	}
	text := strings.Join(out.Filenames, "\n")
	if text == "" {
		text = "No files found"
	}
	var notes []string
	switch {
	case !complete:
		notes = append(notes, fmt.Sprintf("The search ran into its time limit of %s; there may be more files. Use a narrower pattern or path.", globTime(env)))
	case out.Truncated:
		notes = append(notes, fmt.Sprintf("These are the newest %d of %d files. Use a narrower pattern or path to see others.", len(found.Paths), found.Total))
	case found.Total == 0 && pattern != "**" && !strings.Contains(filepath.ToSlash(pattern), "/"):
		notes = append(notes, fmt.Sprintf("The pattern looks in the directory itself only; **/%s looks below it too.", pattern))
	}
	if found.LeftOut {
		notes = append(notes, "Files that git ignores were left out (CLAUDE_CODE_GLOB_NO_IGNORE is false); name their directory to see them.")
	}
	return searchResult(text, append(notes, unreadableNote(found.Unreadable)...), out)
}

func unreadableNote(n int) []string {
	if n == 0 {
		return nil
	}
	return []string{quantity(n, "file or directory", "files or directories") + " could not be read."}
}

// searchResult makes a result of a text, notes below it and structured output.
func searchResult(text string, notes []string, out any) (*tool.Result, error) {
	if len(notes) > 0 {
		text += "\n\n[" + strings.Join(notes, " ") + "]"
	}
	raw, err := message.Encode(out)
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: []message.Block{message.NewText(text)}, Structured: raw}, nil
}

// The time limits of a search (T-93).
const (
	globSeconds    = 20
	globSecondsWSL = 60
)

// globTime is the time limit: CLAUDE_CODE_GLOB_TIMEOUT_SECONDS where that is a
// positive number.
func globTime(env *tool.Env) time.Duration {
	v := strings.TrimSpace(getenv(env, "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s <= 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if onWSL() {
		return globSecondsWSL * time.Second
	}
	return globSeconds * time.Second
}

// onWSL reports whether this is Linux under Windows, whose disks are slow.
var onWSL = sync.OnceValue(func() bool {
	if runtime.GOOS != "linux" {
		return false
	}
	version, _ := os.ReadFile("/proc/version")
	return strings.Contains(strings.ToLower(string(version)), "microsoft")
})

var _ interface {
	tool.Tool
	tool.Accesser
	tool.Normalizer
} = (*Glob)(nil)
