package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var updateReference = flag.Bool("update-reference", false, "write docs/cli.md anew")

// TestReference holds docs/cli.md to the table of flags that the program has.
func TestReference(t *testing.T) {
	const path = "../../docs/cli.md"
	want := reference()
	if *updateReference {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the flags say: go test ./cmd/turnwright -run TestReference -update-reference", path)
	}
}

func reference() string {
	var b strings.Builder
	b.WriteString(`# The command

<!-- Written by go test ./cmd/turnwright -run TestReference -update-reference; do not edit. -->

`)
	width := 0
	all := append([][2]string{{"turnwright [flags] -p PROMPT", "run one prompt and print the answer"}}, forms()...)
	for _, form := range all {
		width = max(width, len(form[0]))
	}
	for _, form := range all {
		fmt.Fprintf(&b, "    %-*s  %s\n", width, form[0], form[1])
	}
	b.WriteString(`
The prompt is one argument, standard input, or both: then the prompt comes first and the piped text after a blank line. A list flag takes everything up to the next word that begins with "-", so the prompt stands before it or after ` + "`--`" + `.

The exit code is 0 when the last result is no error, 1 when it is one or the run could not start, 130 after a second interrupt and 143 after SIGTERM. With ` + "`--output-format text`" + ` the answer is all that stands on standard output; on a terminal, steps and cost are shown on standard error meanwhile (` + "`NO_COLOR=1`" + ` without colours).

## Flags

| flag | value | meaning |
|---|---|---|
`)
	(&flags{}).set().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		value := ""
		switch f.Value.Type() {
		case "bool":
		case "stringArray":
			value = "list"
		default:
			value = f.Value.Type()
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
			value += " [" + f.DefValue + "]"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, value, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
	b.WriteString("\n## Variables\n\nFlags win over variables. `1`, `true`, `yes` and `on` switch on. In Go they can be given in `Options.Env`.\n\n| variable | meaning |\n|---|---|\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(v.names, "` `"), v.meaning)
	}
	b.WriteString("\n## Sessions\n\nStored sessions, see [sessions.md](sessions.md). SESSION is the id of a session, of the working directory or else of any other. With `--json` every command prints JSON.\n\n| command | what it does |\n|---|---|\n")
	for _, c := range sessionsCommands {
		fmt.Fprintf(&b, "| `turnwright sessions %s` | %s |\n", c.usage(), strings.ReplaceAll(c.about, "\n", " "))
	}
	b.WriteString("\n## Completion\n\n`turnwright completion` prints a script that completes flags, their values, and the sessions behind `--resume`:\n\n" + completionSetup)
	b.WriteString("\n## Flags to come\n\nEach is an error today that names the letter of [roadmap.md](roadmap.md) which brings it.\n\n| letter | flags |\n|---|---|\n")
	byLetter := map[string][]string{}
	for name, letter := range laterFlags {
		byLetter[letter] = append(byLetter[letter], "`--"+name+"`")
	}
	for _, letter := range slices.Sorted(maps.Keys(byLetter)) {
		slices.Sort(byLetter[letter])
		fmt.Fprintf(&b, "| %s | %s |\n", letter, strings.Join(byLetter[letter], " "))
	}
	fmt.Fprintf(&b, "\n## Flags of other programs\n\nFlags that belong to one vendor's service or to a terminal interface are refused by name: %s. Accepted without an effect, since they ask for nothing that is missing here: %s.\n", flagNames(hostFlags), flagNames(ignoredFlags))
	return b.String()
}

// variables are those that the program reads, in the order of docs/cli.md.
var variables = []struct {
	names   []string
	meaning string
}{
	{[]string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, "the key, or a token for `Authorization: Bearer`"},
	{[]string{"ANTHROPIC_BASE_URL"}, "another endpoint; `/v1/messages` is added"},
	{[]string{"ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_BETAS", "CLAUDE_CODE_EXTRA_BODY"}, "what requests carry besides: lines of `Name: value`, beta headers, members of a JSON object"},
	{[]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, "proxies (http, https, socks5), and hosts that are asked directly; in lower case as well"},
	{[]string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"}, "PEM files of certificates that are trusted beside the system's, and in place of the system's"},
	{[]string{"ANTHROPIC_MODEL"}, "the model when no flag names one"},
	{[]string{"ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"}, "what the short names `opus`, `sonnet` and `haiku` stand for"},
	{[]string{"CLAUDE_CODE_MAX_TURNS"}, "cap on tool turns, at least 1"},
	{[]string{"CLAUDE_CODE_MAX_OUTPUT_TOKENS"}, "output tokens of one request; lowered to what the model allows"},
	{[]string{"CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY"}, "calls that only read, side by side [10]"},
	{[]string{"CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_RETRY_WATCHDOG"}, "retries of a request [10, at most 15]; retry without end"},
	{[]string{"API_TIMEOUT_MS"}, "how long a response may take to begin [600000]"},
	{[]string{"CLAUDE_STREAM_IDLE_TIMEOUT_MS", "TURNWRIGHT_STREAM_IDLE_MS", "CLAUDE_ENABLE_STREAM_WATCHDOG"}, "how long a response may be silent [300000]: not under that, any time, and `0` for no limit"},
	{[]string{"DISABLE_PROMPT_CACHING", "ENABLE_PROMPT_CACHING_1H", "FORCE_PROMPT_CACHING_5M"}, "prompt caching: none, for an hour, for five minutes all the same"},
	{[]string{"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_PROJECT_DIR_NAME"}, "where sessions are, see [sessions.md](sessions.md)"},
	{[]string{"CLAUDE_CODE_SKIP_PROMPT_HISTORY"}, "keep nothing on disk"},
	{[]string{"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING"}, "file checkpoints on, and off whatever else says on, see [checkpoints.md](checkpoints.md)"},
	{[]string{"CLAUDE_CODE_SIMPLE"}, "as `--bare`"},
	{[]string{"IS_SANDBOX"}, "permissions may be skipped as root"},
	{[]string{"BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH"}, "limits of a command [120000, 600000, 30000 characters]"},
	{[]string{"CLAUDE_CODE_SHELL", "CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_ENV_FILE", "CLAUDE_CODE_TMPDIR", "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"}, "Bash: its shell, a wrapper, a file that is sourced first, temporary files, back to the start after each command, no commands in the background, credentials kept from commands"},
	{[]string{"CLAUDE_CODE_GLOB_HIDDEN", "CLAUDE_CODE_GLOB_NO_IGNORE", "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS", "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"}, "Glob and Read: hidden files, ignored files, time, size"},
	{[]string{"CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION", "CLAUDE_AGENT_SDK_CLIENT_APP"}, "set by clients; they go into the User-Agent"},
	{[]string{"CLAUDE_CODE_DISABLE_CLAUDE_MDS", "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"}, "instruction files: none at all; those of added directories too"},
	{[]string{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", "CLAUDE_CODE_DISABLE_PERMISSION_PROMPT_NOTIFY_HOOKS"}, "hooks: how often Stop hooks may keep a turn going, time for SessionEnd hooks, no Notification hooks about prompts"},
	{[]string{"NO_COLOR"}, "no colours on a terminal"},
}

// TestVariables holds the table of variables to the source: what is told is
// read, and what is read is told.
func TestVariables(t *testing.T) {
	source := programSource(t)
	told := map[string]bool{
		"CLAUDE_CODE_OAUTH_TOKEN":  true, // only kept from commands
		"TURNWRIGHT_PROCESS":       true, // set for commands, by which their processes are found
		"TURNWRIGHT_TOOL_CALL_KEY": true, // set for commands, see docs/services.md
		"TURNWRIGHT_TEST_HOLDER":   true, // of a test helper
		// Set for hooks.
		"CLAUDE_PROJECT_DIR": true, "CLAUDE_PLUGIN_ROOT": true, "CLAUDE_PLUGIN_DATA": true,
	}
	for _, v := range variables {
		for _, name := range v.names {
			told[name] = true
			whole := strings.Contains(source, `"`+name+`"`)
			if family, ok := strings.CutPrefix(name, "ANTHROPIC_DEFAULT_"); ok && !whole {
				whole = strings.Contains(source, `"ANTHROPIC_DEFAULT_"`) && strings.Contains(source, `"`+strings.ToLower(strings.TrimSuffix(family, "_MODEL"))+`"`)
			}
			if !whole {
				t.Errorf("%s is told of, and nothing reads it", name)
			}
		}
	}
	for _, name := range regexp.MustCompile(`"(?:ANTHROPIC|API|BASH|CLAUDE|TURNWRIGHT)_[A-Z0-9_]*[A-Z0-9]"`).FindAllString(source, -1) {
		if name = strings.Trim(name, `"`); !told[name] && !strings.HasPrefix(name, "CLAUDE_SDK_") {
			t.Errorf("%s is read, and docs/cli.md does not tell of it", name)
		}
	}
}

// programSource is the Go source of the library and the command, without tests.
func programSource(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{".git", "bench", "interop", "tools", "agenttest", "ci", "conform"}, e.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		raw, err := os.ReadFile(path)
		b.Write(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func flagNames(names []string) string {
	return "`--" + strings.Join(names, "`, `--") + "`"
}
