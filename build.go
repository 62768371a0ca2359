package turnwright

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/budget"
	"github.com/turnwright/turnwright/internal/builtin"
	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/internal/envvar"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/internal/permfile"
	"github.com/turnwright/turnwright/internal/project/settings"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/model/anthropic"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
	"github.com/turnwright/turnwright/tool"
)

// CompatVersion is the version of the clients' contract that is kept: what init
// and --version tell them (W-5, M-16).
const CompatVersion = "2.1.0"

// Version is the version of this module.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Path == modulePath {
		return info.Main.Version
	}
	return "(devel)"
}

// defaultModel is the product's default: the catalog's newest of this alias.
const defaultModel = "sonnet"

const modulePath = "github.com/turnwright/turnwright"

// build turns options into the configuration of an engine session. Every
// fault of an option is found here, before anything runs.
func (o *Options) build(ctx context.Context) (cfg engine.Config, set *live, err error) {
	if err := o.notBuilt(); err != nil {
		return cfg, nil, err
	}
	if err := o.checkSimple(); err != nil {
		return cfg, nil, err
	}
	launched, err := o.environ()
	if err != nil {
		return cfg, nil, err
	}
	warn, wait := o.warn()
	told := &warnings{tell: warn}
	cfg.Warn, cfg.WaitWarn = told.warn, wait
	if cfg.Dir, err = o.workingDir(); err != nil {
		return cfg, nil, err
	}
	if set, err = o.buildSettings(&cfg, launched); err != nil {
		return cfg, nil, err
	}
	getenv := cfg.Getenv
	if cfg.Loop, err = o.loopConfig(getenv); err != nil {
		return cfg, nil, err
	}
	if cfg.System, cfg.Prelude, err = o.systemBlocks(ctx, cfg.Dir, time.Now()); err != nil {
		return cfg, nil, err
	}
	if err = o.buildModel(&cfg, getenv, set.reader.Settings()); err != nil {
		return cfg, nil, err
	}
	if err = o.buildTools(&cfg, getenv, set); err != nil {
		return cfg, nil, err
	}
	if cfg.Hooks, err = o.hookSet(o.Hooks, set, cfg.Warn); err != nil {
		return cfg, nil, err
	}
	cfg.HookEvents = o.IncludeHookEvents
	cfg.HookClient = sync.OnceValues(func() (*http.Client, error) {
		c, err := anthropic.FromEnv(getenv)
		if err != nil {
			return nil, err
		}
		return c.Network()
	})
	if err = o.buildStore(&cfg, getenv); err != nil {
		return cfg, nil, err
	}
	if err = o.buildCheckpoints(&cfg, getenv, set.reader.Settings()); err != nil {
		return cfg, nil, err
	}
	if r := cfg.Resume; r != nil && !set.modeNamed {
		cfg.Mode = storedMode(r.Transcript.Entries)
	}
	if err = o.chooseModel(&cfg, getenv, set.reader.Settings()); err != nil {
		return cfg, nil, err
	}
	cfg.HookModel = o.hookModel(cfg)
	cfg.Version, cfg.Title = Version(), displayTitle(o.Title)
	dir := cfg.Dir
	cfg.GitBranch = func() string { return gitBranch(dir) }
	cfg.Partial = o.IncludePartialMessages
	cfg.Strict = o.Durability == Strict
	cfg.Sync = engine.SyncPolicy(o.Sync)
	cfg.QueueBytes = o.QueueBytes
	if err = o.buildDebug(&cfg, told, getenv); err != nil {
		return cfg, nil, err
	}
	set.debug = cfg.Debug
	set.log(set.reader.Settings())
	cfg.Ledger = budget.New(o.MaxBudgetUSD, budget.Observed)
	o.buildInstructions(&cfg, getenv, set)
	return cfg, set, nil
}

// hookSet are the hooks of the session with these callbacks: those of settings
// as they are now, of HookFiles and the callbacks. warn is told what of settings
// cannot be used; nil: it was told already.
func (o *Options) hookSet(callbacks hook.Table, set *live, warn func(string)) (*hook.Set, error) {
	s := set.reader.Settings()
	limits := hook.HTTPLimits{URLs: s.Get("allowedHttpHookUrls").Texts(), EnvVars: s.Get("httpHookAllowedEnvVars").Texts()}
	var files []hook.File
	add := func(f hook.File, problems []*hook.Problem) {
		f, more := f.Limit(limits)
		files = append(files, f)
		for _, p := range append(problems, more...) {
			if warn != nil {
				warn("Settings: " + p.Error())
			}
		}
	}
	for _, h := range s.Hooks(o.bare(set.launched)) {
		add(hook.Parse(hook.Source(h.Source), h.File, h.JSON))
	}
	for _, f := range o.HookFiles {
		add(f, nil)
	}
	hooks, err := hook.NewSet(hook.Config{Files: files, Callbacks: callbacks})
	if err != nil {
		return nil, &OptionError{Option: "Hooks", Reason: err.Error(), Err: err}
	}
	return hooks, nil
}

// buildDebug opens the debug log, to which warnings go as well.
func (o *Options) buildDebug(cfg *engine.Config, told *warnings, getenv func(string) string) error {
	home := ""
	if o.Debug && o.DebugFile == "" || o.DebugFilter != "" {
		var err error
		if home, err = configHome(getenv); err != nil {
			return &OptionError{Option: "Debug", Reason: err.Error(), Err: err}
		}
	}
	d, err := o.openDebug(home, cfg.Loop.SessionID)
	told.logTo(d)
	if err != nil || d == nil {
		return err
	}
	cfg.Debug, cfg.DebugClose = d.log, d.Close
	return nil
}

// warn returns a sink for diagnostics. The callback runs on a goroutine of its
// own, in order, so that it may call the session's methods, and a panic in it
// changes nothing (O-84). wait gives it a moment to have had the last line.
func (o *Options) warn() (warn func(string), wait func()) {
	if o.Stderr == nil {
		return func(string) {}, func() {}
	}
	var mu sync.Mutex
	var lines []string
	var idle chan struct{} // closed when no callback runs; nil: none does
	call := func(line string) {
		defer func() { _ = recover() }()
		o.Stderr(line)
	}
	warn = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
		if idle != nil {
			return
		}
		idle = make(chan struct{})
		go func() {
			for {
				mu.Lock()
				if len(lines) == 0 {
					close(idle)
					idle = nil
					mu.Unlock()
					return
				}
				line := lines[0]
				lines = lines[1:]
				mu.Unlock()
				call(line)
			}
		}()
	}
	wait = func() {
		mu.Lock()
		running := idle
		mu.Unlock()
		if running == nil {
			return
		}
		timer := time.NewTimer(stderrGrace)
		defer timer.Stop()
		select {
		case <-running:
		case <-timer.C: // the callback itself may be closing the session
		}
	}
	return warn, wait
}

// stderrGrace is how long closing a session waits for the Stderr callback.
const stderrGrace = time.Second

func (o *Options) loopConfig(getenv func(string) string) (cfg loop.Config, err error) {
	if cfg.MaxTurns, err = o.limits(getenv); err != nil {
		return cfg, err
	}
	cfg.MaxBudgetUSD, cfg.Steer, cfg.Replay = o.MaxBudgetUSD, o.Steer, o.ReplayUserMessages
	if cfg.Width, err = envCount(getenv, "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY"); err != nil {
		return cfg, err
	}
	if cfg.StopBlockCap, err = stopBlockCap(getenv); err != nil {
		return cfg, err
	}
	cfg.SessionID = strings.ToLower(o.SessionID)
	if cfg.SessionID == "" {
		cfg.SessionID = engine.NewID()
	} else if !uuidForm.MatchString(o.SessionID) {
		return cfg, &OptionError{Option: "SessionID", Value: strconv.Quote(o.SessionID), Reason: "is not a UUID"}
	}
	return cfg, nil
}

// stopBlockCap reads how often in a row Stop hooks may keep a turn going; 0 in
// the variable is no cap (L-216, K-242).
func stopBlockCap(getenv func(string) string) (int, error) {
	const name = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
	v := getenv(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	switch {
	case err != nil || n < 0:
		return 0, &OptionError{Option: name, Value: strconv.Quote(v), Reason: "must be a whole number of at least 0, where 0 is no cap"}
	case n == 0:
		return -1, nil
	}
	return n, nil
}

// envCount reads a positive whole number from a variable; 0: not set.
func envCount(getenv func(string) string, name string) (int, error) {
	v := getenv(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 0, &OptionError{Option: name, Value: strconv.Quote(v), Reason: "must be a whole number of at least 1"}
	}
	return n, nil
}

func (o *Options) buildModel(cfg *engine.Config, getenv func(string) string, set *settings.Settings) (err error) {
	if err := checkBetas(o.Betas); err != nil {
		return err
	}
	cfg.Catalog = o.Catalog
	if cfg.Catalog == nil {
		cfg.Catalog = model.DefaultCatalog()
	}
	keySource := "none"
	cfg.Model = o.ModelClient
	if cfg.Model == nil {
		c, err := anthropic.FromEnv(getenv)
		if err != nil {
			return &OptionError{Option: "Env", Reason: err.Error(), Err: err}
		}
		c.Betas = append(slices.Clone(o.Betas), c.Betas...)
		client, err := anthropic.New(c)
		if err != nil {
			return &OptionError{Option: "Env", Reason: err.Error(), Err: err}
		}
		cfg.Model, keySource = client, c.KeySource()
	} else {
		cfg.Betas = o.Betas
	}
	cfg.Init = o.initFacts(cfg, keySource, set.Get("outputStyle").Text())
	if cfg.MaxTokens, err = envCount(getenv, "CLAUDE_CODE_MAX_OUTPUT_TOKENS"); err != nil {
		return err
	}
	switch {
	case envvar.On(getenv("DISABLE_PROMPT_CACHING")):
		cfg.Cache = engine.CacheOff
	case envvar.On(getenv("ENABLE_PROMPT_CACHING_1H")) && !envvar.On(getenv("FORCE_PROMPT_CACHING_5M")):
		cfg.Cache = engine.Cache1h
	}
	cfg.Call, err = callOptions(getenv)
	return err
}

// chooseModel says which model is asked first: that of managed settings, of the
// options, of the variable, of the session that goes on, of settings, or the
// default (C-4, O-4, L-113, S-40).
func (o *Options) chooseModel(cfg *engine.Config, getenv func(string) string, s *settings.Settings) (err error) {
	named := s.Get("model")
	name := o.Model
	switch {
	case named != nil && named.Source == permission.SourceManaged:
		if name != "" && name != named.Text() {
			cfg.Warn(fmt.Sprintf("The model is %s by %s; Model %q is not used.", named.Text(), named.File, name))
		}
		name = named.Text()
	case name == "":
		name = cmp.Or(getenv("ANTHROPIC_MODEL"), o.resumedModel(cfg), named.Text())
	}
	if name == "" || name == "default" {
		name = defaultModel
	}
	cfg.ModelName, err = o.resolveModel(cfg, name)
	return err
}

// hookModel finds the model for the questions of hooks. One that names none gets
// a small model: the one that ANTHROPIC_DEFAULT_HAIKU_MODEL names, or the
// catalog's. Another provider's may have no such model; there it is the one that
// the session began with.
func (o *Options) hookModel(cfg engine.Config) func(name string) (string, error) {
	return func(name string) (string, error) {
		switch {
		case name == "" && o.ModelClient != nil && cfg.Getenv("ANTHROPIC_DEFAULT_HAIKU_MODEL") == "":
			return cfg.ModelName, nil
		case name == "":
			name = "haiku"
		}
		name, _, err := o.priced(&cfg, name)
		return name, err
	}
}

// resumedModel is the model that a session goes on with (S-40); "": none.
func (*Options) resumedModel(cfg *engine.Config) string {
	if cfg.Resume == nil {
		return ""
	}
	name := cfg.Resume.Transcript.Model
	if info, ok := cfg.Catalog.Lookup(name); ok && info.Retired {
		cfg.Warn(fmt.Sprintf("The session's model %q is retired: it goes on with the default.", name))
		return ""
	}
	return name
}

// resolveModel resolves an alias. A model without a price is an error under a
// budget and a warning otherwise (L-224).
func (o *Options) resolveModel(cfg *engine.Config, name string) (string, error) {
	name, priced, err := o.priced(cfg, name)
	if err == nil && !priced {
		cfg.Warn(fmt.Sprintf("The model %q has no price in the catalog: its cost counts as 0.", name))
	}
	return name, err
}

// priced resolves an alias and says whether the model has a price, without which
// no budget can be kept.
func (o *Options) priced(cfg *engine.Config, name string) (resolved string, priced bool, err error) {
	switch alias := strings.ToLower(strings.TrimSpace(name)); alias {
	case "opus", "sonnet", "haiku": // what the user wants them to stand for (K-223)
		if v := strings.TrimSpace(cfg.Getenv("ANTHROPIC_DEFAULT_" + strings.ToUpper(alias) + "_MODEL")); v != "" {
			name = v
		}
	}
	name = cfg.Catalog.Resolve(name)
	info, ok := cfg.Catalog.Lookup(name)
	if !ok || info.Price == nil {
		if o.MaxBudgetUSD != nil {
			return "", false, &OptionError{Option: "MaxBudgetUSD", Value: fmt.Sprint(*o.MaxBudgetUSD), Reason: fmt.Sprintf("the model %q has no price in the catalog, so the budget could not be kept; add one with Catalog.With", name)}
		}
		return name, false, nil
	}
	return name, true, nil
}

// callOptions reads retries and timeouts from the environment (O-103).
func callOptions(getenv func(string) string) (o model.CallOptions, err error) {
	if v := getenv("CLAUDE_CODE_MAX_RETRIES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return o, &OptionError{Option: "CLAUDE_CODE_MAX_RETRIES", Value: strconv.Quote(v), Reason: "must be a whole number of at least 0"}
		}
		o.MaxRetries = new(min(n, 15))
	}
	ms, set, err := envMillis(getenv, "API_TIMEOUT_MS", 2147483647)
	if err != nil {
		return o, err
	}
	if set && ms > 0 {
		o.Timeout = time.Duration(ms) * time.Millisecond
	}
	if ms, set, err = envMillis(getenv, "CLAUDE_STREAM_IDLE_TIMEOUT_MS", maxMillis); err != nil {
		return o, err
	}
	if set {
		o.Idle = max(time.Duration(ms)*time.Millisecond, 5*time.Minute)
	}
	if ms, set, err = envMillis(getenv, "TURNWRIGHT_STREAM_IDLE_MS", maxMillis); err != nil {
		return o, err
	}
	if set && ms > 0 {
		o.Idle = time.Duration(ms) * time.Millisecond
	}
	switch strings.ToLower(getenv("CLAUDE_ENABLE_STREAM_WATCHDOG")) {
	case "0", "false", "no", "off":
		o.Idle = -1
	}
	o.Persistent = envvar.On(getenv("CLAUDE_CODE_RETRY_WATCHDOG"))
	return o, nil
}

// bashGrace is the time between asking a command to end and killing it: an
// interrupt must be done within a second.
const bashGrace = 500 * time.Millisecond

// builtins are the built-in tools of this version, for one session.
func builtins(getenv func(string) string) []tool.Tool {
	bash := builtin.NewBash(builtin.BashOptions{
		Grace: bashGrace, NoBackground: envvar.On(getenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")),
	})
	return []tool.Tool{
		bash, builtin.NewEdit(), builtin.NewGlob(), builtin.NewGrep(), builtin.NewNotebookEdit(), builtin.NewRead(),
		builtin.NewTaskOutput(bash), builtin.NewTaskStop(bash), builtin.NewWrite(),
	}
}

// checkBash finds variables of Bash that cannot be used.
func checkBash(getenv func(string) string) error {
	err := builtin.CheckEnv(getenv)
	var bad *builtin.VarError
	if errors.As(err, &bad) {
		return &OptionError{Option: bad.Name, Value: strconv.Quote(bad.Value), Reason: bad.Reason, Err: err}
	}
	return err
}

func (o *Options) buildTools(cfg *engine.Config, getenv func(string) string, set *live) error {
	mode, named, err := o.startMode(set.reader.Settings(), set.launched, cfg.Warn)
	if err != nil {
		return err
	}
	set.modeNamed = named
	if err := checkBash(getenv); err != nil {
		return err
	}
	if cfg.Dirs, err = o.addDirs(cfg.Dir); err != nil {
		return err
	}
	cfg.RelaxedEdits = o.ReadBeforeEdit == ReadRelaxed
	tools, err := o.tools(cfg.Warn, getenv)
	if err != nil {
		return err
	}
	if cfg.Tools, err = tool.NewRegistry(tools...); err != nil {
		return &OptionError{Option: "CustomTools", Reason: err.Error(), Err: err}
	}
	home, _ := configHome(getenv) // without one the user's file is missing
	files := permfile.At(home, cfg.Dir)
	warn, launched := cfg.Warn, set.launched
	cfg.Keep = func(u permission.Update) error {
		err := files.Keep(u)
		if to, _ := u.Target(); err == nil && to == permission.SourceLocal {
			// Where excludes are found is not for settings to say.
			if err := files.Exclude(launched); err != nil {
				warn("Git may take .claude/settings.local.json along: " + err.Error())
			}
		}
		return err
	}
	base := permission.Config{
		Mode: mode, Dirs: append([]string{cfg.Dir}, cfg.Dirs...), Home: homeDir(set.launched),
		BypassAvailable: o.AllowDangerouslySkipPermissions, Tools: cfg.Tools.Names(), Inputs: inputsOf(tools),
	}
	if err := o.checkRules(base); err != nil {
		return err
	}
	base.Allow, base.Deny = o.AllowedTools, o.DisallowedTools
	if files.User != "" { // what "/path" means in rules that answers add to the user's settings (P-80)
		base.Rules = []permission.RuleSet{{Source: permission.SourceUser, Dir: filepath.Dir(files.User)}}
	}
	set.base = base
	set.seen = set.reader.Settings()
	policy, warnings, err := set.makePolicy(set.seen)
	if err != nil {
		return &OptionError{Option: "AllowedTools, DisallowedTools or PermissionMode", Reason: err.Error(), Err: err}
	}
	for _, w := range warnings {
		cfg.Warn(w)
	}
	set.policy, set.told = policy, warnings
	cfg.Rules, cfg.Mode = set.rules, policy.Mode
	if ask := o.CanUseTool; ask != nil {
		cfg.Ask = func(ctx context.Context, r engine.AskRequest) (engine.AskAnswer, error) {
			a, err := ask(ctx, PermissionRequest(r))
			return engine.AskAnswer(a), err
		}
	}
	cfg.AskTogether, cfg.Admit = o.ParallelCanUseTool, set.admitted
	cfg.CheckMode = func(m permission.Mode) error { return o.bypass(m, set.launched) }
	if o.CanUseTool != nil && shadowed(policy) {
		cfg.Warn("CLAUDE_SDK_CAN_USE_TOOL_SHADOWED: CanUseTool is set, but the permission mode or an allowed tool without specifier approves calls before it is asked.")
	}
	return nil
}

// checkRules finds the rules of options that cannot be used, one by one, so that
// the error names the option and the rule.
func (o *Options) checkRules(base permission.Config) error {
	for _, text := range o.AllowedTools {
		c := base
		c.Allow = []string{text}
		if err := checkRule("AllowedTools", text, c); err != nil {
			return err
		}
	}
	for _, text := range o.DisallowedTools {
		c := base
		c.Deny = []string{text}
		if err := checkRule("DisallowedTools", text, c); err != nil {
			return err
		}
	}
	return nil
}

// tools are the tools of the session. A name in Options.Tools that no built-in
// tool has is told, since it may be a slip.
func (o *Options) tools(warn func(string), getenv func(string) string) (tools []tool.Tool, err error) {
	var known []string
	wanted := o.Tools
	if wanted == nil && o.bare(getenv) {
		wanted = []string{"Bash", "Read", "Edit", "Write"} // T-13
	}
	for _, t := range builtins(getenv) {
		name := t.Spec().Name
		known = append(known, name)
		if wanted == nil || slices.Contains(wanted, name) {
			tools = append(tools, t)
		}
	}
	for _, name := range o.Tools {
		if !slices.Contains(known, name) {
			warn(fmt.Sprintf("There is no built-in tool %q; the built-in tools are %s.", name, strings.Join(known, ", ")))
		}
	}
	for i, t := range o.CustomTools {
		if t == nil {
			return nil, &OptionError{Option: "CustomTools", Value: fmt.Sprintf("entry %d", i), Reason: "is nil"}
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// inputsOf are the names of the inputs of tools, for rules about them (P-46).
func inputsOf(tools []tool.Tool) map[string][]string {
	inputs := map[string][]string{}
	for _, t := range tools {
		spec := t.Spec()
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(spec.InputSchema, &schema) == nil {
			inputs[spec.Name] = slices.Sorted(maps.Keys(schema.Properties))
		}
	}
	return inputs
}

// checkRule says which option a rule is from that cannot be used.
func checkRule(option, text string, c permission.Config) error {
	_, _, err := permission.NewPolicy(c)
	var bad *permission.RuleError
	if errors.As(err, &bad) {
		return &OptionError{Option: option, Value: strconv.Quote(text), Reason: bad.Err.Error(), Err: err}
	}
	return nil
}

// shadowed reports whether the callback will not see calls that its author may
// expect it to see (O-57). Rules of settings do not count (P-130).
func shadowed(p *permission.Policy) bool {
	return p.Mode == permission.ModeBypass || slices.ContainsFunc(p.Allow, func(r permission.Rule) bool {
		return r.Source == permission.SourceOption && r.Bare()
	})
}

func (o *Options) buildStore(cfg *engine.Config, getenv func(string) string) error {
	store := o.Store
	if store == nil {
		st, err := file.New(file.Config{Getenv: getenv, Warn: cfg.Warn})
		if err != nil {
			return fmt.Errorf("session store: %w", err)
		}
		store = st
	}
	keep := !o.NoSessionPersistence && !envvar.On(getenv("CLAUDE_CODE_SKIP_PROMPT_HISTORY"))
	if keep {
		cfg.Store = store
		if err := o.freeID(cfg); err != nil {
			return err
		}
	}
	return o.buildResume(context.Background(), cfg, store)
}

// freeID refuses a chosen id that has a transcript already (S-6). A disk that
// cannot tell is no reason not to start (S-24).
func (o *Options) freeID(cfg *engine.Config) error {
	if o.SessionID == "" || (o.Resume != "" || o.Continue) && !o.ForkSession {
		return nil
	}
	j, err := cfg.Store.Open(context.Background(), cfg.Loop.SessionID, session.OpenOptions{Dir: cfg.Dir, Create: true})
	var locked *session.LockedError
	switch {
	case err == nil:
		return j.Close()
	case errors.Is(err, session.ErrExists), errors.As(err, &locked):
		return &OptionError{Option: "SessionID", Value: strconv.Quote(o.SessionID), Reason: err.Error(), Err: err}
	}
	return nil
}

// initFacts are the parts of the init message that stay the same (M-16).
func (o *Options) initFacts(cfg *engine.Config, keySource, style string) func() message.Init {
	if style == "" {
		style = "default"
	}
	return func() message.Init {
		return message.Init{
			APIKeySource: keySource, Version: CompatVersion, CWD: cfg.Dir, OutputStyle: style,
			Betas: o.Betas, Capabilities: []string{"interrupt_receipt_v1", "interrupt_cancel_queued_v1"},
		}
	}
}
