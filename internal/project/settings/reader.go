package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/names"
	"github.com/turnwright/turnwright/permission"
)

// Config says where settings are looked for.
type Config struct {
	// Sources are the files that are read besides managed ones: SourceUser,
	// SourceProject, SourceLocal. Nil: all three; empty: none (C-9).
	Sources []permission.Source
	Home    string // the configuration home, absolute; "": there is none (C-3)
	Dir     string // the directory that the session starts in, absolute, resolved
	System  string // the directory of managed settings, absolute; "": there is none
	// Flag is the value of the option Settings: JSON, or the path of a file,
	// relative to Dir (C-13).
	Flag string
	// Managed are settings of the host that count as policy (C-23); nil: none.
	Managed json.RawMessage
	// Global is the file in which trust is recorded, absolute; "": there is
	// none, and nothing is trusted (P-103).
	Global string
	Now    func() time.Time // nil: time.Now
}

// The names of the options, in messages.
const (
	flagOption    = "Settings"
	managedOption = "ManagedSettings"
)

// Reader reads the settings of one session and looks whether they change. It
// holds nothing open. Its methods may be called from several goroutines.
type Reader struct {
	cfg   Config
	trust trust

	mu      sync.Mutex
	files   []*watched // user, project, local, in this order
	flag    *watched   // the file of --settings; nil: none, or JSON
	inline  *Layer     // its JSON; nil: none, or a file
	managed []*watched // the main file, then the others by name
	parent  *Layer     // Config.Managed; nil: none
	now     *Settings
}

// Open reads the settings. An error is an option that cannot be read: a
// *FlagError for Config.Flag, or one for Config.Managed. Everything else that is
// wrong is a Problem, and what is right counts.
func Open(c Config) (r *Reader, problems []Problem, err error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	r = &Reader{cfg: c, trust: trust{dir: c.Dir, global: c.Global}}
	add := func(source permission.Source, file, dir string) {
		if c.Sources == nil || slices.Contains(c.Sources, source) {
			r.files = append(r.files, &watched{as: Layer{Source: source, File: file, Dir: dir}, max: maxFile})
		}
	}
	user, project, local := names.Settings(c.Home, c.Dir)
	if user != "" {
		add(permission.SourceUser, user, c.Home)
	}
	if len(r.files) == 0 || !same(c.Home, filepath.Join(c.Dir, names.Dir)) { // in the home directory the file is the user's
		add(permission.SourceProject, project, c.Dir)
	}
	add(permission.SourceLocal, local, c.Dir)
	if c.System != "" {
		r.managed = []*watched{{as: Layer{Source: permission.SourceManaged, File: filepath.Join(c.System, "managed-settings.json"), Dir: c.System}, max: maxFile}}
	}
	inline, err := r.openFlag()
	if err != nil {
		return nil, nil, err
	}
	parent, err := r.openParent()
	if err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, problems, notes := r.look()
	if f := r.flag; f != nil && f.doc == nil {
		return nil, nil, &FlagError{Value: f.as.File, Err: errors.New(f.fault)}
	}
	if f := r.flag; f != nil && f.layer == nil {
		return nil, nil, &FlagError{Value: f.as.File, Err: problems[slices.IndexFunc(problems, func(p Problem) bool { return p.File == f.as.File })]}
	}
	problems = slices.Concat(inline.problems, parent.problems, problems)
	more := r.build(slices.Concat(inline.notes, parent.notes, notes))
	return r, append(problems, more...), nil
}

// same reports whether two paths are one directory.
func same(a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	x, err := os.Stat(a)
	if err != nil {
		return a == b
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// FlagError is a value of Config.Flag that cannot be read (C-17).
type FlagError struct {
	Value string // the file; "": the JSON that was given
	Err   error
}

func (e *FlagError) Error() string {
	if e.Value == "" {
		return e.Err.Error()
	}
	return e.Value + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *FlagError) Unwrap() error { return e.Err }

// Error makes a problem the reason of an error.
func (p Problem) Error() string { return p.String() }

// openFlag reads the option Settings, or sets its file up for reading.
func (r *Reader) openFlag() (got reading, err error) {
	value := strings.TrimSpace(r.cfg.Flag)
	switch {
	case value == "":
		return got, nil
	case value[0] != '{':
		path := r.cfg.Flag
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.cfg.Dir, path)
		}
		if _, err := os.Stat(path); err != nil {
			return got, &FlagError{Value: path, Err: reason(err)}
		}
		r.flag = &watched{as: Layer{Source: permission.SourceFlag, File: filepath.Clean(path), Dir: filepath.Dir(path)}, max: MaxFlagFile}
		return got, nil
	}
	got = Layer{Source: permission.SourceFlag, Option: flagOption, Dir: r.cfg.Dir}.read([]byte(r.cfg.Flag))
	if got.layer == nil {
		return got, &FlagError{Err: got.problems[0]}
	}
	if got.broken {
		got.problems = append(got.problems, Problem{File: flagOption, Text: "cannot be used as it is; it is skipped, except for what it forbids"})
	}
	r.inline = got.layer
	return got, nil
}

// openParent reads the option ManagedSettings.
func (r *Reader) openParent() (got reading, err error) {
	if len(r.cfg.Managed) == 0 {
		return got, nil
	}
	got = Layer{Source: permission.SourceManaged, Option: managedOption, Dir: r.cfg.Dir}.read(r.cfg.Managed)
	if got.broken { // policy is whole or it is an error
		return got, &ManagedError{Err: got.problems[0]}
	}
	r.parent = got.layer
	return got, nil
}

// ManagedError is a value of Config.Managed that cannot be used.
type ManagedError struct{ Err error }

func (e *ManagedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ManagedError) Unwrap() error { return e.Err }

// Settings are those of the last look.
func (r *Reader) Settings() *Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// Refresh looks at the files again (C-19). It is meant to be called whenever
// the settings are about to matter: where nothing has changed it costs a look at
// each file's entry in its directory.
func (r *Reader) Refresh() (s *Settings, changed bool, problems []Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed, problems, notes := r.look()
	if changed {
		problems = append(problems, r.build(notes)...)
	}
	return r.now, changed, problems
}

// look looks at every file.
func (r *Reader) look() (changed bool, problems []Problem, notes []string) {
	now := r.cfg.Now()
	r.dropIns()
	for _, w := range r.all() {
		c, p, n := w.look(now)
		changed, problems, notes = changed || c, append(problems, p...), append(notes, n...)
	}
	return changed, problems, notes
}

// all are the files, from the lowest precedence to the highest.
func (r *Reader) all() []*watched {
	all := slices.Clone(r.files)
	if r.flag != nil {
		all = append(all, r.flag)
	}
	return append(all, r.managed...)
}

// dropIns adds the files of managed-settings.d that are new (C-22).
func (r *Reader) dropIns() {
	if r.cfg.System == "" {
		return
	}
	dir := filepath.Join(r.cfg.System, "managed-settings.d")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || filepath.Ext(path) != ".json" || r.watches(path) {
			continue
		}
		r.managed = append(r.managed, &watched{as: Layer{Source: permission.SourceManaged, File: path, Dir: r.cfg.System}, max: maxFile})
	}
	slices.SortFunc(r.managed[1:], func(a, b *watched) int { return strings.Compare(a.as.File, b.as.File) })
}

func (r *Reader) watches(path string) bool {
	return slices.ContainsFunc(r.managed, func(w *watched) bool { return w.as.File == path })
}

// build makes the settings of what the files say now.
func (r *Reader) build(notes []string) (problems []Problem) {
	var layers []*Layer
	add := func(l *Layer) {
		if l != nil {
			layers = append(layers, l)
		}
	}
	for _, w := range r.files {
		add(w.layer)
	}
	add(r.inline)
	if r.flag != nil {
		add(r.flag.layer)
	}
	if p := r.parent; p != nil {
		switch admin, merges := r.admin(); {
		case !admin:
			add(p)
		case merges: // only to restrict (C-23)
			add(p.only(restricts))
		default:
			notes = append(notes, fmt.Sprintf("%s does not count: there are managed settings without \"parentSettingsBehavior\":\"merge\"", managedOption))
		}
	}
	for _, w := range r.managed {
		add(w.layer)
	}
	r.now, problems = newSettings(layers, &r.trust, notes)
	return problems
}

// admin reports whether an administrator has put settings there, and whether
// they let the host add to them.
func (r *Reader) admin() (present, merges bool) {
	for _, w := range r.managed {
		if w.layer == nil {
			continue
		}
		present = true
		if v := w.layer.root.get("parentSettingsBehavior"); v != nil {
			merges = v.text() == "merge"
		}
	}
	return present, merges
}
