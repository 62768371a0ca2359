package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/internal/readfile"
	"github.com/turnwright/turnwright/permission"
)

// flags is the parsed command line.
type flags struct {
	prompt       []string
	print        bool
	output       string
	input        string
	replay       bool
	promptTool   *string // nil: not given
	verbose      bool
	partial      bool
	hookEvents   bool
	version      bool
	help         bool
	maxTurns     *string // nil: not given
	maxBudget    *string
	model        string
	allowed      []string
	disallowed   []string
	tools        []string
	toolsSet     bool
	mode         string
	addDirs      []string
	skip         bool
	allowSkip    bool
	system       string
	systemSet    bool
	systemFile   string
	appendSystem string
	appendFile   string
	sessionID    string
	resume       *string // nil: not given
	resumeAt     *string
	dropsTurn    *string
	cont         bool
	name         string
	fork         bool
	noPersist    bool
	rewind       *string // nil: not given
	debug        *string // nil: not given
	debugFile    string
	bare         bool
	noDynamic    bool
	background   bool
	ignored      bool // flags that ask for nothing that is missing here
	settings     string
	sources      *string // nil: not given
}

func (f *flags) set() *pflag.FlagSet {
	fs := pflag.NewFlagSet("turnwright", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(discard{})
	fs.BoolVarP(&f.print, "print", "p", false, "run without a terminal and print the result")
	fs.StringVar(&f.output, "output-format", "text", "text, json or stream-json")
	fs.StringVar(&f.input, "input-format", "text", "text, or stream-json: user messages and control requests on stdin, one a line")
	fs.BoolVar(&f.replay, "replay-user-messages", false, "with stream-json both ways: write user messages back when they are taken up")
	fs.BoolVar(&f.verbose, "verbose", false, "needed with --output-format stream-json")
	fs.BoolVar(&f.hookEvents, "include-hook-events", false, "add the runs of hooks to stream-json")
	fs.BoolVar(&f.partial, "include-partial-messages", false, "add the model's streaming events to stream-json")
	fs.StringVar(&f.model, "model", "", "model alias or id (default: $ANTHROPIC_MODEL, else the newest sonnet)")
	f.limits(fs)
	fs.StringArrayVar(&f.allowed, "allowedTools", nil, "rules of tools that may run without asking, such as \"Read,Edit,Bash(npm run *)\"")
	fs.StringArrayVar(&f.disallowed, "disallowedTools", nil, "rules of tools that may not run")
	fs.StringArrayVar(&f.tools, "tools", nil, "built-in tools to offer: names, \"default\" for all, \"\" for none")
	fs.StringVar(&f.mode, "permission-mode", "", "default, acceptEdits, plan, dontAsk, bypassPermissions")
	fs.StringArrayVar(&f.addDirs, "add-dir", nil, "further working directories")
	fs.BoolVar(&f.skip, "dangerously-skip-permissions", false, "run every tool call without asking")
	fs.BoolVar(&f.allowSkip, "allow-dangerously-skip-permissions", false, "let bypassPermissions be chosen later")
	fs.Var(given{&f.promptTool, "string"}, "permission-prompt-tool", "stdio: ask the client of --input-format stream-json for approval")
	fs.StringVar(&f.system, "system-prompt", "", "replace the system prompt; \"\" means none")
	fs.StringVar(&f.systemFile, "system-prompt-file", "", "replace the system prompt by this file")
	fs.StringVar(&f.appendSystem, "append-system-prompt", "", "add to the system prompt")
	fs.StringVar(&f.appendFile, "append-system-prompt-file", "", "add this file to the system prompt")
	fs.BoolVar(&f.noDynamic, "exclude-dynamic-system-prompt-sections", false, "tell the facts about this machine in the first user message instead of the system prompt")
	fs.StringVar(&f.sessionID, "session-id", "", "id of the new session or of the fork, a UUID")
	fs.VarP(given{&f.resume, "string"}, "resume", "r", "go on with the session that has this id or title")
	fs.Lookup("resume").NoOptDefVal = noValue
	fs.Var(given{&f.resumeAt, "uuid"}, "resume-session-at", "with --resume or --continue: go on from this message, without what follows it")
	fs.Var(given{&f.dropsTurn, "uuid"}, "resume-drops-turn", "with --resume-session-at: refuse if more than the turn of this prompt would be dropped")
	fs.BoolVarP(&f.cont, "continue", "c", false, "go on with the directory's newest session")
	fs.StringVarP(&f.name, "name", "n", "", "title of the session, by which it can be resumed")
	fs.BoolVar(&f.fork, "fork-session", false, "with --resume or --continue: a new session with a copy of the history")
	fs.BoolVar(&f.noPersist, "no-session-persistence", false, "keep nothing on disk")
	fs.Var(given{&f.rewind, "uuid"}, "rewind-files", "with --resume and no prompt: put files back into their state at this user message, and exit")
	fs.StringVar(&f.settings, "settings", "", "settings above those of files: JSON, or the path of a file")
	fs.Var(given{&f.sources, "string"}, "setting-sources", "settings and instruction files to read, of user,project,local; \"\" for none (default: all)")
	fs.BoolVar(&f.bare, "bare", false, "leave out everything that this machine would add; tools: Bash, Read, Edit, Write")
	fs.Var(given{&f.debug, "string"}, "debug", "write a debug log; --debug=a,b or --debug=!a limits it to categories")
	fs.Lookup("debug").NoOptDefVal = noFilter
	fs.StringVar(&f.debugFile, "debug-file", "", "write the debug log to this file")
	fs.BoolVarP(&f.version, "version", "v", false, "print the version")
	fs.BoolVarP(&f.help, "help", "h", false, "print this help")
	f.hidden(fs)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name { // both spellings of the list flags (K-27)
		case "allowed-tools":
			name = "allowedTools"
		case "disallowed-tools":
			name = "disallowedTools"
		}
		return pflag.NormalizedName(name)
	})
	return fs
}

// hidden adds flags that are known only to say what becomes of them: --bg,
// whose conflict with --print is told first (K-106), and those that are
// accepted without an effect (K-105).
func (f *flags) hidden(fs *pflag.FlagSet) {
	fs.BoolVar(&f.background, "bg", false, "")
	fs.BoolVar(&f.background, "background", false, "")
	for _, name := range ignoredFlags {
		fs.BoolVar(&f.ignored, name, false, "accepted without an effect: nothing of the kind is there")
	}
	for _, name := range append([]string{"bg", "background"}, ignoredFlags...) {
		fs.Lookup(name).Hidden = true
	}
}

// ignoredFlags are accepted without an effect: they ask for nothing that this
// program lacks (K-105).
var ignoredFlags = []string{"ax-screen-reader", "no-chrome"}

// hostFlags are flags of the contract that belong to one vendor's service or
// to a terminal interface. They are refused by name (K-105, O-3).
var hostFlags = []string{
	"advisor", "background", "bg", "channels", "chrome", "cloud", "dangerously-load-development-channels", "enable-auto-mode",
	"environment", "exec", "from-pr", "ide", "plugin-url", "rc", "ref", "remote", "remote-control",
	"remote-control-session-name-prefix", "teammate-mode", "teleport", "tmux", "worktree",
}

// limits adds the flags of the two limits. Their values are checked later, as
// text, so that an empty value is told from none.
func (f *flags) limits(fs *pflag.FlagSet) {
	fs.Var(given{&f.maxTurns, "number"}, "max-turns", "cap on tool turns; 0: no tools, just an answer")
	fs.Var(given{&f.maxBudget, "number"}, "max-budget-usd", "stop when the estimated cost reaches this many dollars")
}

// noValue stands for the value of a flag that was given without one.
const noValue = "\x00"

// noFilter is the same for --debug, which takes a value only behind "=".
const noFilter = "\x00\x00"

// given is the value of a flag that may be left out.
type given struct {
	to  **string
	typ string // of the value, for the help
}

func (g given) Set(s string) error { *g.to = &s; return nil }
func (g given) Type() string       { return g.typ }
func (g given) String() string {
	if g.to == nil || *g.to == nil {
		return ""
	}
	return **g.to
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// parse reads the command line. Every error names the flag and the value (K-30).
func parse(args []string) (*flags, error) {
	f := &flags{}
	fs := f.set()
	if f.version, f.help = asksAbout(fs, args); f.version || f.help {
		return f, nil
	}
	if err := fs.Parse(joinLists(fs, args)); err != nil {
		return nil, explain(err)
	}
	if f.background {
		return nil, f.noBackground()
	}
	if err := f.checkGiven(fs); err != nil {
		return nil, err
	}
	f.prompt = fs.Args()
	f.toolsSet, f.systemSet = fs.Changed("tools"), fs.Changed("system-prompt")
	switch f.output {
	case "text", "json":
	case "stream-json":
		if !f.verbose {
			return nil, errors.New("--output-format stream-json with --print needs --verbose")
		}
	default:
		return nil, fmt.Errorf("--output-format %q: must be one of text, json, stream-json", f.output)
	}
	switch {
	case f.resume != nil && (*f.resume == noValue || *f.resume == ""):
		return nil, errors.New("--resume needs the id or the title of a session: there is no terminal to pick one on")
	case f.sessionID != "" && (f.resume != nil || f.cont) && !f.fork:
		return nil, errors.New("--session-id cannot be used with --resume or --continue, except with --fork-session")
	}
	if err := f.checkResumeAt(); err != nil {
		return nil, err
	}
	if err := f.checkInput(); err != nil {
		return nil, err
	}
	if err := f.checkRewind(); err != nil {
		return nil, err
	}
	if f.partial && f.output != "stream-json" {
		return nil, errors.New("--include-partial-messages needs --output-format stream-json")
	}
	if f.hookEvents && f.output != "stream-json" {
		return nil, errors.New("--include-hook-events needs --output-format stream-json")
	}
	if f.systemSet && f.systemFile != "" {
		return nil, errors.New("--system-prompt and --system-prompt-file exclude each other")
	}
	if len(f.prompt) > 1 {
		return nil, fmt.Errorf("unexpected argument %q: the prompt is one argument (put it in quotes)", f.prompt[1])
	}
	return f, nil
}

// neverBlank are flags whose value cannot be empty, with what it must be. What is
// empty there comes from a variable that is not set, and is no wish for nothing.
var neverBlank = map[string]string{
	"session-id": "a UUID", "model": "an alias or the id of a model", "name": "a title", "debug-file": "the path of a file",
	"system-prompt-file": "the path of a file", "append-system-prompt-file": "the path of a file", "add-dir": "the path of a directory",
	"settings": "JSON or the path of a file", "permission-mode": "one of default, acceptEdits, plan, dontAsk, bypassPermissions",
}

// checkGiven finds values that are blank (K-30).
func (f *flags) checkGiven(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(given *pflag.Flag) {
		must := neverBlank[given.Name]
		values := []string{given.Value.String()}
		if given.Name == "add-dir" {
			values = f.addDirs
		}
		for _, value := range values {
			if must != "" && strings.TrimSpace(value) == "" && err == nil {
				err = fmt.Errorf("--%s %q: must be %s, not empty", given.Name, value, must)
			}
		}
	})
	return err
}

// checkResumeAt refuses empty values: they are no "not given" (K-55, K-483).
func (f *flags) checkResumeAt() error {
	switch {
	case f.resumeAt != nil && *f.resumeAt == "":
		return errors.New("--resume-session-at needs the uuid of a message")
	case f.resumeAt != nil && f.resume == nil && !f.cont:
		return errors.New("--resume-session-at needs --resume or --continue")
	case f.dropsTurn != nil && *f.dropsTurn == "":
		return errors.New("--resume-drops-turn needs the uuid of a prompt")
	case f.dropsTurn != nil && f.resumeAt == nil:
		return errors.New("--resume-drops-turn needs --resume-session-at")
	}
	return nil
}

// noBackground says why there is no background session (K-105, K-106).
func (f *flags) noBackground() error {
	if f.print {
		return errors.New("--bg and --print exclude each other: a background session has nobody to print its result to")
	}
	return notHere("bg")
}

// checkInput checks what goes with the input format (K-46, K-171, K-172).
func (f *flags) checkInput() error {
	streaming := f.input == "stream-json"
	switch {
	case !streaming && f.input != "text":
		return fmt.Errorf("--input-format %q: must be one of text, stream-json", f.input)
	case streaming && f.output != "stream-json":
		return errors.New("--input-format stream-json needs --output-format stream-json")
	case streaming && len(f.prompt) > 0:
		return fmt.Errorf("unexpected argument %q: with --input-format stream-json prompts come through stdin", f.prompt[0])
	case f.replay && !streaming:
		return errors.New("--replay-user-messages needs --input-format stream-json and --output-format stream-json")
	case f.promptTool == nil:
	case *f.promptTool != "stdio":
		return fmt.Errorf("--permission-prompt-tool %q: only stdio is supported yet (issue F of docs/roadmap.md brings MCP tools)", *f.promptTool)
	case !streaming:
		return errors.New("--permission-prompt-tool stdio needs --input-format stream-json")
	}
	return nil
}

// checkRewind checks what goes with --rewind-files (K-58).
func (f *flags) checkRewind() error {
	switch {
	case f.rewind == nil:
		return nil
	case *f.rewind == "":
		return errors.New("--rewind-files needs the uuid of a user message")
	case f.resume == nil:
		return errors.New("--rewind-files needs --resume: checkpoints belong to their session")
	case f.fork:
		return errors.New("--rewind-files and --fork-session exclude each other: a fork has no checkpoints")
	case len(f.prompt) > 0:
		return errors.New("--rewind-files takes no prompt: it puts files back and runs nothing")
	case f.input == "stream-json":
		return errors.New("--rewind-files and --input-format stream-json exclude each other: send the control request rewind_files")
	}
	return nil
}

// asksAbout reports whether the version or the help is asked for, by a flag of
// its own and not by the value of another one. That wins over everything else,
// over faults too (K-33).
func asksAbout(fs *pflag.FlagSet, args []string) (version, help bool) {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		switch args[i] {
		case "--version", "-v":
			return true, false
		case "--help", "-h":
			return false, true
		}
		name, long := strings.CutPrefix(args[i], "--")
		if known := fs.Lookup(name); long && known != nil && known.NoOptDefVal == "" {
			i++ // its value
		}
	}
	return false, false
}

// joinLists gives each word behind a list flag, up to the next one that starts
// with "-", a flag of its own (K-24, K-26).
func joinLists(fs *pflag.FlagSet, args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		out = append(out, args[i])
		if args[i] == "--" {
			return append(out, args[i+1:]...)
		}
		name, long := strings.CutPrefix(args[i], "--")
		if args[i] == "-r" {
			name, long = "resume", true
		}
		known := fs.Lookup(name)
		if long && known != nil && known.NoOptDefVal == noValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++ // an optional value (K-22)
			out[len(out)-1] = "--" + name + "=" + args[i]
			continue
		}
		if !long || known == nil || known.NoOptDefVal != "" || i+1 == len(args) {
			continue
		}
		i++
		out = append(out, args[i]) // the value, whatever it looks like (K-21)
		for known.Value.Type() == "stringArray" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			out = append(out, "--"+name+"="+args[i])
		}
	}
	return out
}

// flagOf names the flags of the options that they set.
var flagOf = map[string]string{
	"MaxTurns": "--max-turns", "MaxBudgetUSD": "--max-budget-usd", "Model": "--model", "SessionID": "--session-id",
	"PermissionMode": "--permission-mode", "AllowedTools": "--allowedTools", "DisallowedTools": "--disallowedTools",
	"AddDirs":           "--add-dir",
	"SystemPrompt.File": "--system-prompt-file",
	"Resume":            "--resume",
	"ResumeDropsTurn":   "--resume-drops-turn",
	"Settings":          "--settings",
	"SettingSources":    "--setting-sources",
	"DebugFile":         "--debug-file",
}

// named turns the error of an option into one that names its flag (K-30), or the
// variable that it comes from.
func named(err error) error {
	var bad *turnwright.OptionError
	if !errors.As(err, &bad) || bad.Letter != "" {
		return inFlagsError(err)
	}
	name := flagOf[bad.Option]
	if name == "" && strings.ToUpper(bad.Option) == bad.Option {
		name = bad.Option // a variable
	}
	switch {
	case name == "":
		return inFlagsError(err)
	case bad.Value == "" && strings.HasPrefix(bad.Reason, bad.Option+":"): // with the place in its value
		return errors.New(name + strings.TrimPrefix(bad.Reason, bad.Option))
	case bad.Value == "":
		return fmt.Errorf("%s: %s", name, inFlags(bad.Reason))
	}
	return fmt.Errorf("%s %s: %s", name, bad.Value, inFlags(bad.Reason))
}

func inFlagsError(err error) error {
	if text := inFlags(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// inFlags says in terms of the command line what the library says in terms of Go.
func inFlags(text string) string {
	if rest, ok := strings.CutPrefix(text, "Settings:"); ok {
		return "--settings:" + rest
	}
	if rest, ok := strings.CutPrefix(text, "Resume: "); ok {
		return "--resume: " + rest
	}
	return goWords.Replace(text)
}

var goWords = strings.NewReplacer(
	"ForkSession changes nothing without Resume or Continue.", "--fork-session changes nothing without --resume or --continue.",
	"; Model \"", "; --model \"",
	"; add one with Catalog.With", "; choose another model, or leave --max-budget-usd out",
	"is disabled by Settings (", "is disabled by --settings (",
	"needs AllowDangerouslySkipPermissions", "needs --allow-dangerously-skip-permissions",
)

// explain says which flag was wrong, and for flags of features to come which
// letter of docs/roadmap.md brings them (O-3).
func explain(err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			if name == "w" {
				return notHere("worktree")
			}
			return fmt.Errorf("unknown flag: -%s", name)
		}
		if letter, ok := laterFlags[name]; ok {
			return fmt.Errorf("--%s is not supported yet (issue %s of docs/roadmap.md brings it)", name, letter)
		}
		if slices.Contains(hostFlags, name) {
			return notHere(name)
		}
		return fmt.Errorf("unknown flag: --%s", name)
	}
	return err
}

// notHere refuses a flag that is known and not supported.
func notHere(name string) error { return fmt.Errorf("--%s is not supported by this build", name) }

// laterFlags are flags of the contract whose feature is not built yet.
var laterFlags = map[string]string{
	"mcp-config": "F", "strict-mcp-config": "F",
	"session-mirror": "G", "fallback-model": "H", "effort": "H", "thinking": "H", "max-thinking-tokens": "H",
	"thinking-display": "H", "json-schema": "H", "task-budget": "H", "autocompact": "H", "betas": "H",
	"agents": "I", "agent": "I", "forward-subagent-text": "I",
	"append-subagent-system-prompt": "I", "plugin-dir": "J", "disable-slash-commands": "J", "safe-mode": "J",
	"prompt-suggestions": "J", "init": "D", "init-only": "D", "maintenance": "D",
}

// options turns flags into options.
func (f *flags) options() (turnwright.Options, error) {
	o := turnwright.Options{
		Model: f.model, SessionID: f.sessionID, NoSessionPersistence: f.noPersist,
		IncludePartialMessages: f.partial, IncludeHookEvents: f.hookEvents, PermissionMode: turnwright.PermissionMode(f.mode),
		AllowedTools: rules(f.allowed), DisallowedTools: rules(f.disallowed),
		AddDirs:                         f.addDirs,
		AllowDangerouslySkipPermissions: f.skip || f.allowSkip || f.mode == string(turnwright.ModeBypassPermissions),
	}
	o.Bare, o.DebugFile = f.bare, f.debugFile
	o.Settings = f.settings
	if f.sources != nil {
		if o.SettingSources = sourceList(*f.sources); slices.Contains(o.SettingSources, "") {
			return o, fmt.Errorf("--setting-sources %q: must be names of user, project, local, with a comma between them, or empty for none", *f.sources)
		}
	}
	if f.debug != nil {
		o.Debug = true
		if *f.debug != noFilter {
			o.DebugFilter = *f.debug
		}
	}
	o.Continue, o.ContinueAdded, o.ForkSession, o.Title = f.cont, f.cont, f.fork, f.name
	for _, v := range []struct{ from, to *string }{
		{f.resume, &o.Resume}, {f.resumeAt, &o.ResumeSessionAt}, {f.dropsTurn, &o.ResumeDropsTurn},
	} {
		if v.from != nil {
			*v.to = *v.from
		}
	}
	if f.skip {
		o.PermissionMode = turnwright.ModeBypassPermissions
	}
	if f.toolsSet {
		o.Tools = rules(f.tools)
		if len(o.Tools) == 1 && o.Tools[0] == "default" {
			o.Tools = nil
		} else if o.Tools == nil {
			o.Tools = []string{}
		}
	}
	if f.maxTurns != nil {
		n, err := strconv.Atoi(*f.maxTurns)
		if err != nil || n < 0 {
			return o, fmt.Errorf("--max-turns %q: must be a whole number of at least 0", *f.maxTurns)
		}
		o.MaxTurns = &n
	}
	if f.maxBudget != nil {
		x, err := strconv.ParseFloat(*f.maxBudget, 64)
		if err != nil || !(x > 0) || math.IsInf(x, 0) || strings.ContainsAny(*f.maxBudget, "xX_") { // as Python writes it (K-29)
			return o, fmt.Errorf("--max-budget-usd %q: must be a positive number of dollars", *f.maxBudget)
		}
		o.MaxBudgetUSD = &x
	}
	p := &turnwright.SystemPrompt{
		Coding: !f.systemSet && f.systemFile == "", File: f.systemFile, Append: f.appendSystem, ExcludeDynamic: f.noDynamic,
	}
	if f.systemSet {
		p.Text = &f.system
	}
	if f.appendFile != "" {
		raw, err := readfile.Whole(context.Background(), f.appendFile, maxPiped)
		if err != nil {
			return o, fmt.Errorf("--append-system-prompt-file %q: %w", f.appendFile, err)
		}
		if p.Append != "" {
			p.Append += "\n\n"
		}
		p.Append += string(raw)
	}
	o.SystemPrompt = p
	return o, f.allowBySettings(&o)
}

// allowBySettings makes the mode bypassPermissions available where settings
// start in it: on the command line their word is enough (P-23, K-83).
func (f *flags) allowBySettings(o *turnwright.Options) error {
	if o.PermissionMode != "" || o.AllowDangerouslySkipPermissions {
		return nil
	}
	set, err := turnwright.ResolveSettings(*o)
	if err != nil {
		return named(err)
	}
	var v struct {
		Permissions struct{ DefaultMode turnwright.PermissionMode }
	}
	if err := json.Unmarshal(set.Merged, &v); err != nil {
		return nil // the session tells
	}
	o.AllowDangerouslySkipPermissions = v.Permissions.DefaultMode == turnwright.ModeBypassPermissions
	return nil
}

// sourceList splits the value of --setting-sources (K-91).
func sourceList(value string) []string {
	if value == "" {
		return []string{}
	}
	list := strings.Split(value, ",")
	for i, name := range list {
		list[i] = strings.TrimSpace(name)
	}
	return list
}

// rules splits rule lists (K-24, K-25).
func rules(lists []string) []string {
	var out []string
	for _, l := range lists {
		out = append(out, permission.SplitRules(l)...)
	}
	return out
}

func usage() string {
	f := &flags{}
	var b strings.Builder
	b.WriteString("Usage: turnwright [flags] -p PROMPT\n       turnwright [flags] --input-format stream-json --output-format stream-json --verbose\n")
	for _, form := range forms() {
		b.WriteString("       " + form[0] + "\n")
	}
	b.WriteString("\nFlags:\n")
	b.WriteString(flagUsages(f.set()))
	return b.String()
}

// flagUsages are the lines of --help for flags, without the marks of values that
// may be left out: those of ours are no text.
func flagUsages(fs *pflag.FlagSet) string {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.NoOptDefVal == noValue || f.NoOptDefVal == noFilter {
			f.NoOptDefVal = ""
		}
	})
	return fs.FlagUsages()
}
