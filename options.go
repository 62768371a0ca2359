package turnwright

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/session"
)

// Options configure a run. The zero value gives the documented defaults
// (O-1). Pointers and nil slices tell "unset" from "zero" where both mean
// something (O-2). An invalid value, a forbidden combination, or an option
// whose feature is not built yet is an *OptionError before the first model
// request (O-3).
//
// The ids are those of docs/contract/options.md.
type Options struct {
	// SystemPrompt replaces the default prompt; nil: a minimal tool-calling
	// prompt (O-10 to O-14).
	SystemPrompt *SystemPrompt

	// MaxTurns caps the tool turns of each user turn; nil:
	// $CLAUDE_CODE_MAX_TURNS, else no cap; 0: no tools, just an answer (O-22).
	MaxTurns *int
	// MaxBudgetUSD ends the run when the estimated cost of the whole session
	// reaches it, in US dollars; nil: no limit (O-23). The response that crosses
	// it is still paid for. It needs a model whose price is in Catalog.
	MaxBudgetUSD *float64
	// Model is an alias or an id; "": $ANTHROPIC_MODEL, else the catalog's
	// default (O-25).
	Model string
	// Betas are beta headers for the API (O-31).
	Betas []string

	// Tools limits the built-in tools to those named: nil is all of them, an
	// empty list none; a name that does not exist is ignored with a warning
	// (O-33). It does not touch CustomTools.
	Tools []string
	// CustomTools are tools of your own, see NewTool. Like every tool they
	// need approval to run: name them in AllowedTools.
	CustomTools []Tool
	// AllowedTools are rules that approve calls without asking (O-34, O-36): the
	// name of a tool, or with a specifier "Bash(npm run *)" for commands,
	// "Read(docs/**)" and "Edit(/src/**)" for files. Specifiers of other tools
	// are an *OptionError.
	AllowedTools []string
	// DisallowedTools are rules that deny calls in every mode; a tool that is
	// named here without a specifier is not offered to the model (O-35). A rule
	// with one, such as "Read(**/.env)" or "Bash(rm *)", denies the calls that it
	// covers.
	DisallowedTools []string
	// PermissionMode is ModeDefault when "" (O-37), and when "auto", which needs
	// a classifier that does not exist (P-4).
	PermissionMode PermissionMode
	// AllowDangerouslySkipPermissions must be set with ModeBypassPermissions, at
	// the start or later (O-38). As root or under sudo the mode is refused all
	// the same, unless IS_SANDBOX is 1 (O-46).
	AllowDangerouslySkipPermissions bool
	// CanUseTool decides on calls that nothing else decided; nil: they are
	// denied (O-40, O-51). It may wait as long as it needs; its context ends
	// with the user turn. An error or a panic denies the call with its text. It
	// is asked about one call at a time; what an answer changes may decide the
	// calls that wait.
	CanUseTool func(context.Context, PermissionRequest) (PermissionAnswer, error)
	// ParallelCanUseTool lets CanUseTool be called for several calls at once, from
	// several goroutines (P-121).
	ParallelCanUseTool bool
	// Hooks are callbacks at moments of the run: before and after tool calls, at
	// prompts, when the session starts, stops and ends (O-42). They see every
	// call and may deny it, change its input and add to what the model is told;
	// see package hook and docs/hooks.md.
	Hooks hook.Table
	// HookFiles are hooks that run commands or ask servers and models, as
	// hook.Parse reads them from the "hooks" of a settings file. They run beside
	// Hooks.
	HookFiles []hook.File
	// IncludeHookEvents shows each run of a hook on the stream (O-93, M-84).
	IncludeHookEvents bool

	// ReadBeforeEdit says which files must have been read before they may be
	// edited or overwritten; "" is ReadStrict (T-64).
	ReadBeforeEdit ReadBeforeEdit

	// SessionID is the id of the new session, a UUID that no session in Store
	// has; "": a random one (O-61).
	SessionID string
	// Resume goes on with the session that has this id, or the title that a
	// person gave it (O-59). The session is looked for in the directory's
	// project, in the other worktrees of its repository, and by id in all
	// projects. It keeps its id, and limits and cost start from zero (S-34 to
	// S-38, S-43). With none found NewSession returns a *NoConversationError.
	Resume string
	// Continue goes on with the session of the directory that has the latest
	// message; without one a new session begins (O-58, S-51 to S-55). Resume
	// wins over it.
	Continue bool
	// ContinueAdded lets Continue find sessions of other directories as well that
	// this one was added to (AddDirs), as the command does (S-54).
	ContinueAdded bool
	// ForkSession makes a new session with the history of the one that Resume
	// or Continue finds, and leaves that unchanged (O-60, S-56). Its id is
	// SessionID, or a random one.
	ForkSession bool
	// ResumeSessionAt is the uuid of a message, of the user or the assistant, that
	// the session goes on from as if what follows it had not been said (O-62). It
	// needs Resume or Continue. What is cut off stays in the session's file; with
	// ForkSession it is not copied (S-62, S-64). Calls of the message that have
	// no result then are told that their outcome is unknown (K-472). An unknown
	// uuid is a *NoMessageError.
	ResumeSessionAt string
	// ResumeDropsTurn is the uuid of a prompt and guards ResumeSessionAt: unless
	// this prompt's turn is all that is cut off, NewSession returns a
	// *DropsTurnError and changes nothing (O-63).
	ResumeDropsTurn string
	// Title is the display title of the session, at most 200 characters, by
	// which it can be resumed; a title that it has already wins (O-17, S-47).
	// Control characters in it become blanks (S-82).
	Title string
	// NoSessionPersistence keeps nothing, neither on disk nor in Store (O-64).
	NoSessionPersistence bool
	// Store is where sessions are kept; nil: files in the configuration home
	// (S-9, S-10).
	Store session.Store
	// Durability says what happens when the session cannot be saved.
	Durability Durability
	// Sync says when the session is forced to disk.
	Sync SyncPolicy
	// EnableFileCheckpointing keeps the state of each file before Write, Edit or
	// NotebookEdit change it, so that RewindFiles can put it back (O-65).
	// CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1 does the same. It stays off
	// where CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING=1 or a setting
	// fileCheckpointingEnabled: false says so (S-121). The states are in
	// file-history/<session id> in the configuration home; with
	// NoSessionPersistence in memory, and gone with the session.
	EnableFileCheckpointing bool
	// ReplayUserMessages emits input messages back (O-66).
	ReplayUserMessages bool

	// CWD is the working directory; "": the current one (O-70).
	CWD string
	// AddDirs are further working directories, relative to CWD or absolute:
	// their files may be read without asking like those in CWD. Each must exist
	// (O-71, P-96, P-100).
	AddDirs []string
	// MemoryFiles are the names of instruction files, the first one found in a
	// directory wins; nil: CLAUDE.md (C-51).
	MemoryFiles []string
	// Env is merged over the inherited environment and what settings say of it,
	// for the variables that this package reads and for the commands that tools
	// run (O-72). Managed settings stand above it.
	Env map[string]string
	// ReplaceEnv makes Env the whole environment (O-72).
	ReplaceEnv bool
	// SettingSources are the settings and instruction files that are read:
	// SourceUser, SourceProject, SourceLocal. Nil is all three, an empty list none;
	// those of the machine's administrator are read in any case (O-73, C-9, C-10).
	SettingSources []string
	// Settings are settings above those files and below managed ones: JSON when
	// it begins with "{", else the path of a file of at most 2 MiB, relative to
	// CWD or absolute (O-74).
	Settings string
	// ManagedSettings are settings that count as policy, above all options. Where
	// an administrator has put managed settings there, they count only if those
	// say "parentSettingsBehavior":"merge", and only to forbid (O-75, C-23).
	ManagedSettings json.RawMessage
	// Stderr gets diagnostic lines (O-84); nil: they are dropped.
	Stderr func(line string)

	// Debug writes a log of what the session does to debug/<session id>.txt in
	// the configuration home; DebugFile names another file and switches it on
	// as well (O-85). It holds prompts, tool inputs and results. DebugFilter
	// limits it to categories ("api,tool") or leaves some out ("!stream"): api,
	// tool, stream, instructions, settings, warning.
	Debug       bool
	DebugFile   string
	DebugFilter string

	// Bare leaves out everything that a machine adds to a run: hooks, skills,
	// commands, agents, plugins, MCP servers and memory files that are found
	// and not given, and of the built-in tools all but Bash, Read, Edit and
	// Write, unless Tools names others (O-90, T-12, T-13). CLAUDE_CODE_SIMPLE=1
	// does the same.
	Bare bool

	// IncludePartialMessages adds the model's streaming events (O-92).
	IncludePartialMessages bool
	// Steer hands messages that are sent during a turn to the model together
	// with the results of the running calls, instead of queueing them (L-188).
	Steer bool

	// ModelClient replaces the Anthropic client; nil: one made from the
	// environment (O-107).
	ModelClient model.Model
	// Catalog replaces the table of models and prices; nil: the built-in one (L-224).
	Catalog *model.Catalog
	// QueueBytes bounds the messages that wait for the reader; 0: 8 MiB. When
	// they are more, the run waits before its next model call or tool start.
	QueueBytes int
	// MaxBufferSize bounds one message that is sent to the session, in bytes of
	// its content as JSON; 0: no bound but the API's own, 32 MB a request. A
	// larger one is an *InputSizeError; each message is measured by itself
	// (O-86). The official clients bound what they read from their process by
	// 1 MiB; here there is no such line.
	MaxBufferSize int

	// The options below are not built yet. Setting one is an *OptionError that
	// names the letter of docs/roadmap.md which brings it.

	TaskBudget               *int               `later:"H"`     // O-24
	FallbackModels           []string           `later:"H"`     // O-26
	Effort                   string             `later:"H"`     // O-27
	Thinking                 json.RawMessage    `later:"H"`     // O-28
	MaxThinkingTokens        *int               `later:"H"`     // O-29
	OutputSchema             json.RawMessage    `later:"H"`     // O-30
	AutoCompactWindow        int64              `later:"H"`     // O-32
	PermissionPromptToolName string             `later:"F"`     // O-41
	ToolAliases              map[string]string  `later:"F"`     // O-43
	QuestionPreviewFormat    string             `later:"J"`     // O-44
	Sandbox                  json.RawMessage    `later:"later"` // O-45
	SessionMirror            any                `later:"G"`     // O-67
	SessionMirrorFlush       string             `later:"G"`     // O-68
	LoadTimeout              time.Duration      `later:"G"`     // O-69
	MCPServers               map[string]any     `later:"F"`     // O-76
	StrictMCPConfig          bool               `later:"F"`     // O-77
	Agents                   map[string]any     `later:"I"`     // O-78
	Agent                    string             `later:"I"`     // O-79
	Skills                   []string           `later:"J"`     // O-80
	Plugins                  []string           `later:"J"`     // O-81
	OnElicitation            any                `later:"F"`     // O-82
	User                     string             `later:"G"`     // O-83
	ExtraArgs                map[string]*string `later:"G"`     // O-87
	ForwardSubagentText      bool               `later:"I"`     // O-94
	AgentProgressSummaries   bool               `later:"I"`     // O-95
	PromptSuggestions        bool               `later:"J"`     // O-96
}

// SystemPrompt says what the system prompt is made of. Text, File and Coding
// exclude each other; with none of them the prompt is the minimal one.
type SystemPrompt struct {
	Text   *string // the whole prompt; "" means none (O-10)
	File   string  // the whole prompt, read at the start from this file or pipe of at most 10 MiB (O-13)
	Coding bool    // the full coding prompt with its facts about the machine (O-11)
	Append string  // added after the prompt (O-11)
	// ExcludeDynamic tells the facts about the machine (directory, git, system,
	// date) before the first user message and not in the coding prompt, which is
	// then the same on every machine, so that all share one prompt cache. Without
	// Coding it changes nothing (O-12).
	ExcludeDynamic bool
}

// ReadBeforeEdit says when a file must have been read before it is changed.
type ReadBeforeEdit string

const (
	// ReadStrict wants every existing file to have been read first.
	ReadStrict ReadBeforeEdit = "strict"
	// ReadRelaxed wants it only where reading the file would need approval, or
	// where the tool Read is not offered.
	ReadRelaxed ReadBeforeEdit = "relaxed"
)

// Durability says what a failing journal means (README decision 51 of the
// contract).
type Durability int

const (
	// Relaxed warns once and goes on (S-24).
	Relaxed Durability = iota
	// Strict ends the user turn with an error result, and starts no tool that
	// is not repeatable without its line on disk.
	Strict
)

// SyncPolicy says when the journal is forced to disk. What was written always
// survives the process; what was synced survives the machine.
type SyncPolicy int

const (
	// SyncTurn syncs before a call that is not repeatable and at the end of a
	// user turn.
	SyncTurn SyncPolicy = iota
	// SyncAlways syncs every write.
	SyncAlways
	// SyncNever leaves it to the operating system.
	SyncNever
)

// Input is one user message of a session.
type Input struct {
	// UUID names the message; "": a random one. It comes back as
	// user_message_uuid of the result (M-39).
	UUID string
	// Text is the prompt. With Blocks it stands before them. A file that it names
	// as "@path" comes along where Read may read it without a question.
	Text string
	// Blocks are content blocks, such as images (L-200).
	Blocks []Block
	// NoQuery stores the message without starting a turn; it goes to the model
	// with the next one that does (L-191).
	NoQuery bool
	// Steer overrides Options.Steer for this message.
	Steer *bool
	// Synthetic says that no person wrote it (M-43).
	Synthetic bool
	// Human says that a person wrote it: the result of its user turn has the
	// origin "human", in place of none (W-46, M-66).
	Human bool
}

// Inputs is a source of user messages for QueryInputs.
type Inputs = iter.Seq2[Input, error]
