package shell

import (
	"slices"
	"strings"
)

// Options of git's read-only subcommands. Those that write (--output), run
// programs (--ext-diff, --textconv, -O, --show-signature) or use the network are not here.
const (
	gitDiffLong = "stat? shortstat numstat dirstat? summary name-only name-status patch no-patch raw unified= color? no-color color-words? word-diff? word-diff-regex= minimal patience histogram diff-algorithm= ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines ignore-cr-at-eol find-renames? find-copies? no-renames diff-filter= cached staged merge-base exit-code quiet check relative? no-prefix text function-context full-index binary abbrev? submodule? ignore-submodules? no-ext-diff no-textconv inter-hunk-context= pickaxe-regex pickaxe-all reverse"
	gitLogLong  = gitDiffLong + " oneline graph decorate? no-decorate pretty? format= abbrev-commit no-abbrev-commit all branches? tags? remotes? author= committer= grep= invert-grep all-match since= after= until= before= max-count= skip= merges no-merges first-parent follow reverse date= relative-date topo-order date-order author-date-order left-right cherry-pick cherry cherry-mark no-walk? full-history simplify-by-decoration source parents children boundary ancestry-path? extended-regexp fixed-strings perl-regexp regexp-ignore-case notes? no-notes walk-reflogs cc m clear-decorations mailmap no-mailmap"
)

// gitSpec is spec for a subcommand. Its operands are revisions and paths.
type gitSpec struct {
	spec
	none bool // no operands: they would create something
	list string
}

var gitRead = map[string]gitSpec{
	"status":        {spec: spec{short: "sbvuz", long: "short branch porcelain? long verbose untracked-files? ignored? show-stash column? no-column ahead-behind no-ahead-behind renames no-renames ignore-submodules?"}},
	"diff":          {spec: spec{digits: true, short: "abBcCDMpRruswWz", shortArg: "GSUl", long: gitDiffLong}},
	"log":           {spec: spec{digits: true, short: "abcCgiEFPMmpRrstuwWz", shortArg: "GSULn", long: gitLogLong}},
	"show":          {spec: spec{digits: true, short: "abcCMmpRrstuwWz", shortArg: "GSUn", long: gitLogLong}},
	"shortlog":      {spec: spec{short: "nsec", long: "numbered summary email all since= until= no-merges format= group="}},
	"reflog":        {spec: spec{digits: true, shortArg: "n", long: gitLogLong}, list: "show"},
	"blame":         {spec: spec{short: "beflnpstwcCM", shortArg: "L", long: "date= porcelain line-porcelain incremental show-name show-number show-email root abbrev= ignore-rev="}},
	"annotate":      {spec: spec{short: "l", shortArg: "L"}},
	"rev-parse":     {spec: spec{short: "q", long: "abbrev-ref? short? verify quiet show-toplevel show-prefix show-cdup git-dir git-common-dir absolute-git-dir is-inside-work-tree is-inside-git-dir is-bare-repository symbolic symbolic-full-name all branches? tags? show-superproject-working-tree"}},
	"rev-list":      {spec: spec{digits: true, shortArg: "n", long: gitLogLong + " count objects"}},
	"ls-files":      {spec: spec{short: "cdmostuvzk", shortArg: "x", long: "cached deleted modified others ignored stage unmerged exclude-standard full-name error-unmatch exclude= directory eol"}},
	"ls-tree":       {spec: spec{short: "drtlz", long: "name-only name-status full-name full-tree abbrev? long"}},
	"cat-file":      {spec: spec{short: "tsep"}},
	"describe":      {spec: spec{long: "all tags always dirty? long abbrev? exact-match match= exclude= contains first-parent candidates="}},
	"merge-base":    {spec: spec{short: "a", long: "all octopus is-ancestor fork-point independent"}},
	"name-rev":      {spec: spec{long: "name-only tags refs= always"}},
	"show-ref":      {spec: spec{short: "dhqs", long: "heads tags hash? verify quiet dereference abbrev?"}},
	"for-each-ref":  {spec: spec{long: "count= format= sort= contains? merged? no-merged? points-at="}},
	"grep":          {spec: spec{digits: true, short: "acEFGhHiIlLnopPqvwWz", shortArg: "ABCem", long: "cached untracked no-index ignore-case word-regexp line-number files-with-matches name-only count extended-regexp fixed-strings perl-regexp heading break show-function function-context and or not all-match max-depth= quiet column only-matching color? text"}},
	"diff-tree":     {spec: spec{short: "rtpsmcz", shortArg: "U", long: gitDiffLong + " no-commit-id root stdin"}},
	"check-ignore":  {spec: spec{short: "qvzn", long: "quiet verbose non-matching no-index"}},
	"count-objects": {spec: spec{short: "vH"}, none: true},
	"branch":        {spec: spec{short: "arvq", long: "all remotes verbose show-current sort= format= color? no-color contains? merged? no-merged? points-at= column? ignore-case abbrev?"}, none: true, list: "--list --contains --no-contains --merged --no-merged"},
	"tag":           {spec: spec{short: "", shortArg: "n", long: "sort= format= color? column? contains? merged? no-merged? points-at= ignore-case"}, none: true, list: "--list -l --contains --merged --no-merged"},
	"remote":        {spec: spec{short: "v", long: "verbose"}, none: true, list: "get-url"},
	"stash":         {spec: spec{digits: true, short: "pu", long: gitLogLong}, none: true, list: "list show"},
	"worktree":      {spec: spec{short: "vz", long: "porcelain verbose"}, none: true, list: "list"},
	"config":        {spec: spec{short: "lz", long: "list get get-all get-regexp show-origin show-scope name-only local global system null type= bool int path"}, none: true, list: "--get --get-all --get-regexp get list"},
	"version":       {none: true},
}

// gitReads reports whether a git command only reads. Options before the
// subcommand that choose another repository or change its settings are not
// among those it knows (P-67).
func gitReads(args []Word) (Use, bool) {
	for len(args) > 0 && args[0].Literal && slices.Contains([]string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"}, args[0].Text) {
		args = args[1:]
	}
	if slices.ContainsFunc(args, func(w Word) bool { return !w.Literal }) || len(args) == 0 {
		return Use{}, false // P-68
	}
	if slices.ContainsFunc(args, func(w Word) bool { return strings.Contains(w.Text, "%G") }) {
		return Use{}, false // it runs gpg to check signatures, which makes files
	}
	if args[0].Text == "--version" && len(args) == 1 {
		return Use{}, true
	}
	g, ok := gitRead[args[0].Text]
	if !ok {
		return Use{}, false
	}
	sub, args := args[0].Text, args[1:]
	list := strings.Fields(g.list)
	listing := slices.ContainsFunc(args, func(w Word) bool {
		name, _, _ := strings.Cut(w.Text, "=")
		return strings.HasPrefix(name, "-") && slices.Contains(list, name)
	})
	if len(args) > 0 && !strings.HasPrefix(args[0].Text, "-") && slices.Contains(list, args[0].Text) {
		listing, args = true, args[1:]
	} else if sub == "stash" || sub == "worktree" || sub == "reflog" && len(args) > 0 && !strings.HasPrefix(args[0].Text, "-") {
		return Use{}, false // another action
	}
	if listing { // options that only say "list"
		args = slices.DeleteFunc(slices.Clone(args), func(w Word) bool { return slices.Contains([]string{"--list", "-l"}, w.Text) && sub != "config" })
	}
	ops, _, _, ok := g.split(args)
	if !ok {
		if !listing || sub != "branch" && sub != "tag" {
			return Use{}, false
		}
		// --contains and its like take an operand of their own.
		args = slices.DeleteFunc(slices.Clone(args), func(w Word) bool { return slices.Contains(list, w.Text) })
		if ops, _, _, ok = g.split(args); !ok {
			return Use{}, false
		}
	}
	if g.none && len(ops) > 0 && !listing {
		return Use{}, false
	}
	if sub == "config" && (!listing && !slices.ContainsFunc(args, func(w Word) bool { return w.Text == "--list" || w.Text == "-l" }) || len(ops) > 1) {
		return Use{}, false // "config name value" sets it
	}
	// Any operand may be a path, or a path behind a revision: HEAD:file.
	use := Use{Git: true, Content: showsContent(sub, args)}
	for _, w := range ops {
		use.Paths = append(use.Paths, w)
		if _, path, ok := strings.Cut(w.Text, ":"); ok && path != "" {
			use.Paths = append(use.Paths, Word{Text: path, Source: path, Literal: true})
		}
	}
	return use, true
}

// The options with which git's commands show no more than names and messages.
const (
	gitNames   = "stat? shortstat numstat dirstat? summary name-only name-status raw cached staged merge-base exit-code quiet diff-filter= find-renames? find-copies? no-renames color? no-color no-commit-id root"
	gitHistory = gitNames + " oneline graph decorate? no-decorate pretty? format= abbrev? abbrev-commit no-abbrev-commit all branches? tags? remotes? author= committer= grep= invert-grep all-match since= after= until= before= max-count= skip= merges no-merges first-parent follow reverse date= relative-date topo-order date-order author-date-order left-right no-patch source parents children boundary regexp-ignore-case"
)

// showsContent reports whether a subcommand may show what files hold.
func showsContent(sub string, args []Word) bool {
	names := spec{short: "", long: gitNames}
	switch sub {
	case "log", "reflog":
		names = spec{digits: true, short: "i", shortArg: "n", long: gitHistory}
	case "diff":
	case "status":
		return slices.ContainsFunc(args, func(w Word) bool {
			return strings.HasPrefix(w.Text, "--v") || !strings.HasPrefix(w.Text, "--") && strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "v")
		})
	case "show", "blame", "annotate", "grep", "cat-file", "stash", "diff-tree":
		return true
	default:
		return false
	}
	_, _, opts, ok := names.split(args)
	if !ok {
		return true
	}
	return sub == "diff" && !slices.ContainsFunc(opts, func(o string) bool {
		name, _, _ := strings.Cut(o, "=")
		return slices.Contains(strings.Fields("--stat --shortstat --numstat --dirstat --name-only --name-status --raw --summary --quiet"), name)
	})
}
