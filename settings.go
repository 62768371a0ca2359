package turnwright

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/internal/names"
	"github.com/turnwright/turnwright/internal/project/settings"
	"github.com/turnwright/turnwright/permission"
)

// The names of Options.SettingSources (C-9).
const (
	SourceUser    = "user"    // settings.json in the configuration home
	SourceProject = "project" // .claude/settings.json in the working directory
	SourceLocal   = "local"   // .claude/settings.local.json there
)

var settingSources = map[string]permission.Source{
	SourceUser: permission.SourceUser, SourceProject: permission.SourceProject, SourceLocal: permission.SourceLocal,
}

// openSettings reads the settings of a session that starts in dir. getenv is
// the environment without what settings say of it: where they are found is not
// for them to change.
func (o *Options) openSettings(dir string, getenv func(string) string) (*settings.Reader, []settings.Problem, error) {
	c := settings.Config{Dir: dir, System: names.SystemDir(), Flag: o.Settings, Managed: o.ManagedSettings}
	if o.SettingSources != nil {
		c.Sources = []permission.Source{}
	}
	for _, name := range o.SettingSources {
		source, ok := settingSources[name]
		if !ok {
			return nil, nil, &OptionError{Option: "SettingSources", Value: strconv.Quote(name), Reason: "must be one of user, project, local"}
		}
		c.Sources = append(c.Sources, source)
	}
	if home, err := configHome(getenv); err == nil {
		c.Home = home
		place := c.Home // P-103
		if getenv("CLAUDE_CONFIG_DIR") == "" {
			place = filepath.Dir(c.Home)
		}
		c.Global = filepath.Join(place, names.Dir+".json")
	}
	r, problems, err := settings.Open(c)
	var flag *settings.FlagError
	var managed *settings.ManagedError
	switch {
	case errors.As(err, &flag):
		bad := &OptionError{Option: "Settings", Reason: flag.Err.Error()}
		if flag.Value != "" {
			bad.Value, bad.Err = strconv.Quote(flag.Value), flag.Err
		}
		return nil, nil, bad
	case errors.As(err, &managed):
		return nil, nil, &OptionError{Option: "ManagedSettings", Reason: managed.Err.Error()}
	}
	return r, problems, err
}

// live is what a session takes from settings, as it is now.
type live struct {
	reader    *settings.Reader
	launched  func(string) string         // the environment without what settings say of it
	debug     func(category, text string) // nil: there is no debug log
	modeNamed bool                        // an option or a file names the mode to start in (P-6)
	base      permission.Config           // the rules of options
	unsure    bool                        // what a source says of old sessions could not be read

	// rehook takes the hooks of changed settings (H-9) and returns what there is to
	// tell; nil before the session runs. It must not ask for rules.
	rehook func() (news []string)

	mu     sync.Mutex
	seen   *settings.Settings // that policy was made of, or should have been
	policy *permission.Policy // of the last settings that one could be made of
	told   []string           // what there was to tell of it
}

// buildSettings reads the settings and makes the environment of the session.
func (o *Options) buildSettings(cfg *engine.Config, launched func(string) string) (*live, error) {
	reader, problems, err := o.openSettings(cfg.Dir, launched)
	if err != nil {
		return nil, err
	}
	unsure := false
	for _, p := range problems {
		cfg.Warn(p.String())
		unsure = unsure || p.Key == "" || p.Key == "cleanupPeriodDays" // of a whole file, too
	}
	cfg.Getenv, cfg.Environ = o.variables(reader.Settings)
	return &live{reader: reader, launched: launched, unsure: unsure}, nil
}

// rules are the permission rules now, and what there is to tell of a change
// since the last call (C-19). Rules that cannot be made leave the last ones in
// force.
func (l *live) rules() (p *permission.Policy, news []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, _, problems := l.reader.Refresh()
	for _, problem := range problems {
		news = append(news, problem.String())
	}
	if s == l.seen {
		return l.policy, news
	}
	l.seen = s
	l.log(s)
	policy, warnings, err := l.makePolicy(s)
	if err != nil {
		return l.policy, append(news, fmt.Sprintf("The changed permissions of settings cannot be used, the last ones stay in force: %v", err))
	}
	for _, w := range warnings {
		if !slices.Contains(l.told, w) {
			news = append(news, w)
		}
	}
	l.policy, l.told = policy, warnings
	if l.rehook != nil {
		news = append(news, l.rehook()...)
	}
	return policy, news
}

// current are the rules of the last look.
func (l *live) current() *permission.Policy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.policy
}

// makePolicy adds the rules of settings to those of options.
func (l *live) makePolicy(s *settings.Settings) (p *permission.Policy, warnings []string, err error) {
	c := l.base
	c.Rules = slices.Concat(c.Rules, s.Rules())
	if s.ManagedRulesOnly() { // P-139; what options deny only adds (P-140)
		c.Allow = nil
	}
	if s.NoBypass() != "" { // P-24
		c.BypassAvailable = false
		if c.Mode == permission.ModeBypass {
			c.Mode = permission.ModeDefault
		}
	}
	dirs, warnings := settingDirs(s, c.Dirs[0], c.Home)
	c.Dirs = slices.Concat(c.Dirs, dirs)
	p, more, err := permission.NewPolicy(c)
	return p, append(warnings, more...), err
}

// admitted are the updates that may be suggested and made. Where only managed
// rules count there is no rule to remember (P-139).
func (l *live) admitted(all []permission.Update) []permission.Update {
	if !l.reader.Settings().ManagedRulesOnly() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(u permission.Update) bool { return len(u.Rules) > 0 })
}

// noAuto says why the mode auto cannot be chosen (P-4, P-26).
func (l *live) noAuto() string {
	if by := l.reader.Settings().NoAuto(); by != "" {
		return "is disabled by " + by + " (disableAutoMode)"
	}
	return "no classifier is available"
}

// log writes to the debug log which keys have no effect.
func (l *live) log(s *settings.Settings) {
	if l.debug == nil {
		return
	}
	for _, note := range s.Notes {
		l.debug("settings", note)
	}
}

// variables is the environment of a session: what it inherits, over it the key
// env of settings files, over that Options.Env, and on top that of managed
// settings (C-36, C-37, O-4, O-72). It is read anew each time (C-19).
func (o *Options) variables(now func() *settings.Settings) (getenv func(string) string, environ func() []string) {
	getenv = func(k string) string {
		env, managed := now().Env()
		for _, from := range []map[string]string{managed, o.Env, env} {
			if v, ok := from[k]; ok {
				return v
			}
		}
		if o.ReplaceEnv {
			return ""
		}
		return os.Getenv(k)
	}
	environ = func() (list []string) {
		env, managed := now().Env()
		over := map[string]string{}
		maps.Copy(over, env)
		maps.Copy(over, o.Env)
		maps.Copy(over, managed)
		if !o.ReplaceEnv {
			for _, kv := range os.Environ() {
				k, _, _ := strings.Cut(kv, "=")
				if _, replaced := over[k]; !replaced {
					list = append(list, kv)
				}
			}
		}
		for k, v := range over {
			_, mine := o.Env[k]
			_, policy := managed[k]
			if v == "" && (policy || !mine) { // of a settings file: the variable is taken away
				continue
			}
			list = append(list, k+"="+v)
		}
		return list
	}
	return getenv, environ
}

// startMode is the permission mode to start in and whether something names it
// (P-2, P-3). getenv is the environment without settings.
func (o *Options) startMode(s *settings.Settings, getenv func(string) string, warn func(string)) (m permission.Mode, named bool, err error) {
	noBypass, noAuto := s.NoBypass(), s.NoAuto()
	if o.AllowDangerouslySkipPermissions && noBypass != "" && o.PermissionMode != ModeBypassPermissions {
		warn(fmt.Sprintf("AllowDangerouslySkipPermissions has no effect: %s disables the mode bypassPermissions.", noBypass))
	}
	if o.PermissionMode == ModeBypassPermissions && noBypass != "" {
		return "", true, bypassDisabled(noBypass)
	}
	if o.PermissionMode != "" {
		m, err = o.mode(getenv)
		if m == permission.ModeAuto && noAuto != "" { // P-26
			warn(fmt.Sprintf("The mode auto is disabled by %s (disableAutoMode); the session starts in default.", noAuto))
			m = permission.ModeDefault
		}
		return m, true, err
	}
	v := s.DefaultMode()
	if v == nil {
		return permission.ModeDefault, false, nil
	}
	m, err = permission.ParseMode(v.Text()) // the reader has left out what is no mode
	if err != nil {
		return permission.ModeDefault, false, nil
	}
	switch {
	case m == permission.ModeBypass && noBypass != "":
		warn(fmt.Sprintf("%s: permissions.defaultMode: bypassPermissions is disabled by %s; the session starts in default.", v.File, noBypass))
		return permission.ModeDefault, true, nil
	case m == permission.ModeBypass && !o.AllowDangerouslySkipPermissions: // P-20
		return "", true, &OptionError{Option: "AllowDangerouslySkipPermissions", Reason: fmt.Sprintf("must be set: %s starts the session in bypassPermissions (permissions.defaultMode)", v.File)}
	case m == permission.ModeAuto && noAuto != "":
		warn(fmt.Sprintf("The mode auto is disabled by %s (disableAutoMode); the session starts in default.", noAuto))
		return permission.ModeDefault, true, nil
	}
	return m, true, o.bypass(m, getenv)
}

// bypassDisabled is the refusal of the mode that a file disables (P-24).
func bypassDisabled(file string) error {
	return &OptionError{Option: "PermissionMode", Value: string(ModeBypassPermissions), Reason: "is disabled by " + file + " (permissions.disableBypassPermissionsMode)"}
}

// settingDirs are the additional working directories of settings that exist. One
// that does not is told and left out: a file must not end a run (C-17).
func settingDirs(s *settings.Settings, cwd, home string) (dirs, warnings []string) {
	for _, d := range s.Directories() {
		dir := d.Resolve(cwd, home)
		err := permission.CheckDir(dir)
		if d.Path == "" {
			err = errors.New("is empty")
		}
		if err != nil {
			at := d.Where
			at.Text = fmt.Sprintf("%q %v; the entry is skipped", d.Path, err)
			warnings = append(warnings, at.String())
			continue
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, warnings
}

// SettingLayer is one source of settings.
type SettingLayer struct {
	// Source is userSettings, projectSettings, localSettings, flagSettings (the
	// option Settings) or policySettings (managed).
	Source string
	File   string          // absolute, or the name of an option
	JSON   json.RawMessage // what of it can be used
}

// ResolvedSettings are the settings that a session with the same options would
// start with.
type ResolvedSettings struct {
	Merged json.RawMessage   // one object, with keys that this version does not know
	Keys   map[string]string // the highest source of each top-level key
	Layers []SettingLayer    // from the lowest precedence to the highest
	// Problems are what cannot be used, one line each with file, line and key.
	Problems []string
}

// ResolveSettings reads settings as NewSession does, without starting a session
// (C-25). The error is that of an option.
func ResolveSettings(o Options) (*ResolvedSettings, error) {
	getenv, err := o.environ()
	if err != nil {
		return nil, err
	}
	dir, err := o.workingDir()
	if err != nil {
		return nil, err
	}
	reader, problems, err := o.openSettings(dir, getenv)
	if err != nil {
		return nil, err
	}
	s := reader.Settings()
	r := &ResolvedSettings{Merged: s.JSON(), Keys: map[string]string{}}
	for key, source := range s.Keys() {
		r.Keys[key] = string(source)
	}
	for _, l := range s.Layers {
		r.Layers = append(r.Layers, SettingLayer{Source: string(l.Source), File: l.Name(), JSON: l.JSON()})
	}
	for _, p := range problems {
		r.Problems = append(r.Problems, p.String())
	}
	return r, nil
}
