package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/model"
)

// shells are those that have a completion script.
var shells = []string{"bash", "zsh", "fish"}

// runCompletion prints the completion script of a shell. The script asks this
// program for words, so it knows the flags that the program has.
func runCompletion(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		fmt.Fprintf(stdout, "Usage: turnwright completion %s\n\nPrints the completion script of the shell. To use it:\n\n%s", strings.Join(shells, "|"), completionSetup)
		return 0
	}
	if len(args) != 1 || !slices.Contains(shells, args[0]) {
		fmt.Fprintf(stderr, "Error: completion takes the name of a shell, got %q: must be one of %s\n", strings.Join(args, " "), strings.Join(shells, ", "))
		return 1
	}
	root, err := completer(), error(nil)
	switch args[0] {
	case "bash":
		if _, err = io.WriteString(stdout, bashWords); err == nil {
			err = root.GenBashCompletionV2(stdout, true)
		}
	case "zsh":
		err = root.GenZshCompletion(stdout)
	case "fish":
		err = root.GenFishCompletion(stdout, true)
	}
	if err != nil {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	return 0
}

// completionSetup tells how the scripts get into the shells.
const completionSetup = `    source <(turnwright completion bash)    in ~/.bashrc
    source <(turnwright completion zsh)     in ~/.zshrc, after compinit
    turnwright completion fish > ~/.config/fish/completions/turnwright.fish
`

// bashWords is what the script needs of the package bash-completion, for
// systems without it: the words of the line, with those put together again that
// bash takes apart at "=" and ":".
const bashWords = `declare -F _get_comp_words_by_ref > /dev/null || _get_comp_words_by_ref()
{
    local rest=${COMP_LINE:0:COMP_POINT} i word begun
    words=()
    for i in "${!COMP_WORDS[@]}"; do
        word=${COMP_WORDS[i]} begun=${rest#"${rest%%[![:space:]]*}"}
        if ((i == 0)) || [[ $begun != "$rest" || -z $word ]]; then
            words+=("$word")
        else
            words[${#words[@]}-1]+=$word
        fi
        rest=${begun#"$word"}
        if ((i == COMP_CWORD)); then
            cword=$((${#words[@]} - 1)) cur=${words[${#words[@]}-1]}
            prev=${words[${#words[@]}-2]}
        fi
    done
}
`

// runComplete answers a completion script: words that may stand next.
func runComplete(args []string, stdout, stderr io.Writer) int {
	root := completer()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.Execute(); err != nil {
		return 1
	}
	return 0
}

// completer describes the command to the library that makes completions. It is
// used for nothing else: the command line itself has rules of its own (K-20 to
// K-35).
func completer() *cobra.Command {
	root := completed("turnwright", "", (&flags{}).set())
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	for _, c := range subcommands() {
		child := completed(c.name, c.about, c.flags)
		for _, sub := range c.sub {
			grandchild := completed(sub.name, sub.about, sub.flags)
			if strings.HasPrefix(sub.args, "SESSION") {
				grandchild.ValidArgsFunction = completeFirstSession
			}
			child.AddCommand(grandchild)
		}
		if c.name == "completion" {
			child.ValidArgsFunction = cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp)
		}
		root.AddCommand(child)
	}
	return root
}

// completed is a command with these flags, and with what their values may be.
func completed(name, about string, fs *pflag.FlagSet) *cobra.Command {
	c := &cobra.Command{
		Use: name, Short: about, Args: cobra.ArbitraryArgs, Run: func(*cobra.Command, []string) {},
		ValidArgsFunction: cobra.NoFileCompletions, // a prompt is no file
	}
	c.Flags().SortFlags = false
	if fs == nil {
		return c
	}
	c.Flags().AddFlagSet(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.NoOptDefVal == noValue {
			f.NoOptDefVal = "" // the next word is its value (K-22)
		}
		if f.Value.Type() == "bool" {
			return
		}
		if err := c.RegisterFlagCompletionFunc(f.Name, valuesOf(f.Name)); err != nil {
			panic(err) // a flag that is there and has none yet
		}
	})
	return c
}

// valuesOf says what the values of a flag may be.
func valuesOf(name string) cobra.CompletionFunc {
	one := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	switch name {
	case "output-format":
		return one("text", "json", "stream-json")
	case "input-format":
		return one("text", "stream-json")
	case "permission-mode":
		return one("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
	case "permission-prompt-tool":
		return one("stdio")
	case "debug":
		return one("api", "tool", "stream", "warning")
	case "tools":
		return one("default")
	case "model":
		return one(modelNames()...)
	case "resume":
		return completeSessions
	case "add-dir":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case "system-prompt-file", "append-system-prompt-file", "debug-file":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	}
	return cobra.NoFileCompletions
}

// modelNames are the short names and ids of the models that are served.
func modelNames() (names []string) {
	for _, info := range model.DefaultCatalog().All() {
		if !info.Retired {
			names = append(append(names, info.Aliases...), info.ID)
		}
	}
	return names
}

// completeFirstSession offers them for the first argument.
func completeFirstSession(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeSessions(cmd, args, word)
}

// completeSessions offers the sessions of the directory, each with its summary.
func completeSessions(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ids []string
	for s, err := range (turnwright.Sessions{Dir: dir}).List(context.Background(), turnwright.Page{}) {
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ids = append(ids, cobra.CompletionWithDesc(s.SessionID, oneLine(s.Summary, 60)))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
