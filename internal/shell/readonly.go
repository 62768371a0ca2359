package shell

import (
	"regexp"
	"slices"
	"strings"
)

// operands says what the words of a command are that are no options.
type operands int

const (
	asText    operands = iota // text: printed, compared, looked up
	asPaths                   // files or directories that are read
	afterText                 // the first is text, such as a pattern; the others are paths
	noneAtAll
)

// spec is one line of the table of read-only commands: options that do nothing
// but read, and what the operands are (P-69). An option that is not listed
// makes the command not read-only.
type spec struct {
	anything bool   // no word of it can do harm
	short    string // letters of options without a value
	shortArg string // letters of options with a value, which is text
	long     string // "name", "name=" with a value, "name?" with a value only behind "="
	operands operands
	max      int  // most operands; 0: any number
	digits   bool // an option such as -20
	glob     bool // no option of the command writes or runs anything, so a glob may stand for its operands
	// textBy lists options that take the place of the text operand.
	textBy string
	check  func(args []Word) bool // a further condition on all words behind the name
}

var readOnly = map[string]spec{
	"echo":   {anything: true},
	"printf": {anything: true, check: printsText},
	"pwd":    {operands: noneAtAll, short: "LP"},
	"true":   {anything: true},
	"false":  {anything: true},
	":":      {anything: true},
	"sleep":  {operands: asText},
	"which":  {operands: asText, short: "as"},
	"type":   {operands: asText, short: "atpPf"},
	"whoami": {operands: noneAtAll}, "arch": {operands: noneAtAll}, "nproc": {operands: noneAtAll, long: "all"},
	"uname":    {operands: noneAtAll, short: "asnrvmpio"},
	"uptime":   {operands: noneAtAll, short: "ps"},
	"free":     {operands: noneAtAll, short: "bkmghtw"},
	"hostname": {operands: noneAtAll, short: "fsiIdA"},
	"date":     {operands: asText, short: "uR", shortArg: "d", long: "utc date= iso-8601? rfc-3339= rfc-email", check: onlyFormat},
	"seq":      {operands: asText, short: "w", shortArg: "sf"},
	"basename": {operands: asText, short: "az", shortArg: "s"},
	"dirname":  {operands: asText, short: "z"},
	"tr":       {operands: asText, short: "cCdst"},
	"cal":      {operands: asText, short: "13ymj"},

	"ls":       {operands: asPaths, glob: true, short: "aAbBcCdfFgGhHiklmnNopqQrRsStTuUvxXZ1", shortArg: "Iw", long: "all almost-all color? classify? directory human-readable inode recursive reverse size sort= time= time-style= full-time group-directories-first hide= ignore= no-group numeric-uid-gid si"},
	"cat":      {operands: asPaths, glob: true, short: "AbeEnstTuv", long: "number number-nonblank show-all show-ends show-tabs show-nonprinting squeeze-blank"},
	"head":     {operands: asPaths, glob: true, digits: true, short: "qvz", shortArg: "nc", long: "lines= bytes= quiet silent verbose"},
	"tail":     {operands: asPaths, glob: true, digits: true, short: "qvzfFr", shortArg: "ncs", long: "lines= bytes= quiet silent verbose follow? retry pid= sleep-interval="},
	"nl":       {operands: asPaths, glob: true, short: "p", shortArg: "bdfhilnsvw"},
	"tac":      {operands: asPaths, glob: true, short: "br", shortArg: "s"},
	"rev":      {operands: asPaths, glob: true},
	"wc":       {operands: asPaths, glob: true, short: "clmwL", long: "bytes chars lines words max-line-length total="},
	"stat":     {operands: asPaths, glob: true, short: "Lftx", shortArg: "c", long: "dereference file-system format= printf= terse"},
	"du":       {operands: asPaths, glob: true, short: "abchHkmsSx0", shortArg: "d", long: "all apparent-size bytes total human-readable summarize max-depth= exclude= threshold= time? si one-file-system"},
	"df":       {operands: asPaths, glob: true, short: "ahHiklmTP", shortArg: "tx", long: "all human-readable inodes local print-type total type="},
	"file":     {operands: asPaths, short: "bhiLkNrv0", long: "brief mime mime-type mime-encoding dereference no-dereference"},
	"readlink": {operands: asPaths, glob: true, short: "femnqsvz"},
	"realpath": {operands: asPaths, glob: true, short: "emLPqsz", long: "relative-to= relative-base="},
	"cut":      {operands: asPaths, glob: true, short: "nsz", shortArg: "bcdf", long: "bytes= characters= delimiter= fields= complement only-delimited output-delimiter="},
	"sort":     {operands: asPaths, short: "bdfgiMhnRrVcCmsuz", shortArg: "kt", long: "reverse numeric-sort human-numeric-sort version-sort unique stable key= field-separator= check? ignore-case"},
	"uniq":     {operands: asPaths, max: 1, short: "cdDiuz", shortArg: "fsw", long: "count repeated unique ignore-case"},
	"comm":     {operands: asPaths, glob: true, short: "123z"},
	"cmp":      {operands: asPaths, glob: true, short: "bls", shortArg: "in"},
	"diff":     {operands: asPaths, glob: true, digits: true, short: "abBcdeEHilnNpqstTuvwyZ", shortArg: "CUWIxF", long: "brief unified? context? side-by-side color? exclude= ignore-all-space ignore-space-change ignore-blank-lines ignore-case width= suppress-common-lines report-identical-files new-file text strip-trailing-cr label="},
	"join":     {operands: asPaths, glob: true, short: "iz", shortArg: "12aejotv"},
	"paste":    {operands: asPaths, glob: true, short: "sz", shortArg: "d"},
	"column":   {operands: asPaths, glob: true, short: "tx", shortArg: "scN"},
	"fold":     {operands: asPaths, glob: true, short: "bs", shortArg: "w"},
	"expand":   {operands: asPaths, glob: true, short: "i", shortArg: "t"},
	"unexpand": {operands: asPaths, glob: true, short: "a", shortArg: "t"},
	"strings":  {operands: asPaths, short: "afow", shortArg: "nte", check: noLists},
	"od":       {operands: asPaths, glob: true, short: "abcdfilosvx", shortArg: "AjNtw"},
	"hexdump":  {operands: asPaths, glob: true, short: "bcCdovx", shortArg: "ns"},
	"xxd":      {operands: asPaths, max: 1, short: "abipuE", shortArg: "cglos"},
	"md5sum":   {operands: asPaths, glob: true, short: "btz"}, "sha1sum": {operands: asPaths, glob: true, short: "btz"},
	"sha256sum": {operands: asPaths, glob: true, short: "btz"}, "sha512sum": {operands: asPaths, glob: true, short: "btz"},
	"cksum": {operands: asPaths, glob: true}, "b2sum": {operands: asPaths, glob: true, short: "btz"},
	"tree": {operands: asPaths, short: "adfipsughDFQNqrtvcxACSUJX", shortArg: "LPI", long: "dirsfirst noreport du si gitignore prune filelimit= matchdirs ignore-case"},

	"grep":  {operands: afterText, glob: true, digits: true, textBy: "e", short: grepShort, shortArg: grepArg, long: grepLong},
	"egrep": {operands: afterText, glob: true, digits: true, textBy: "e", short: grepShort, shortArg: grepArg, long: grepLong},
	"fgrep": {operands: afterText, glob: true, digits: true, textBy: "e", short: grepShort, shortArg: grepArg, long: grepLong},
	"rg":    {operands: afterText, textBy: "e", short: "abcFhHiIlnNopqsSuUvVwxP0", shortArg: "ABCEeMgmtTrj", long: "after-context= before-context= context= color= count count-matches files-with-matches files-without-match fixed-strings glob= iglob= hidden ignore-case smart-case case-sensitive invert-match json line-number no-line-number max-count= max-depth= multiline multiline-dotall no-ignore no-ignore-vcs no-heading heading no-filename only-matching pcre2 regexp= replace= sort= sortr= stats text trim type= type-not= vimgrep word-regexp column max-columns= no-messages null"},
	"jq":    {operands: afterText, glob: true, short: "cnrsSeMCaj", long: "compact-output null-input raw-output slurp sort-keys exit-status monochrome-output color-output ascii-output join-output tab", check: plainJq},

	"find": {operands: asPaths, check: findReads},
	"sed":  {operands: afterText, textBy: "e", short: "nErsuz", shortArg: "e", long: "quiet silent regexp-extended expression= posix separate", check: sedScripts},
	"test": {anything: true, check: testReads}, "[": {anything: true, check: testReads},
}

const (
	grepShort = "abcEFGhHiIlLnoPqrsTUvwxyzZ"
	grepArg   = "ABCedmD"
	grepLong  = "after-context= before-context= context= color? colour? count basic-regexp extended-regexp fixed-strings perl-regexp files-with-matches files-without-match ignore-case no-ignore-case invert-match word-regexp line-regexp line-number line-buffered max-count= only-matching no-filename with-filename no-messages quiet silent recursive regexp= include= exclude= exclude-dir= text byte-offset null binary-files= initial-tab label="
)

// versions are programs that only tell their version when asked for it alone.
// cargo and rustc are not among them: rustup runs what rust-toolchain.toml names.
var versions = map[string][]string{
	"go": {"version"}, "node": {"--version", "-v"}, "npm": {"--version", "-v"}, "python": {"--version", "-V"}, "python3": {"--version", "-V"},
	"ruby": {"--version", "-v"}, "java": {"-version", "--version"},
	"gcc": {"--version"}, "clang": {"--version"}, "make": {"--version"}, "bash": {"--version"}, "docker": {"--version", "-v"},
}

// Use is what a read-only command reads.
type Use struct {
	Paths     []Word // its files and directories
	Recursive bool   // directories are read with all that is in them
	Follows   bool   // links in those directories are followed
	Content   bool   // shows what files hold, not only their names
	Git       bool   // reads the repository of the directory that it runs in
}

// ReadOnly reports whether a command, wrappers taken off, does nothing but read
// (P-66 to P-69), and what it reads. cd is not among them.
func ReadOnly(words []Word) (Use, bool) {
	if len(words) == 0 || !words[0].Literal {
		return Use{}, false
	}
	name, args := words[0].Text, words[1:]
	if len(args) == 1 && args[0].Literal && slices.Contains(versions[name], args[0].Text) {
		return Use{}, true
	}
	switch name {
	case "git":
		return gitReads(args)
	case "command":
		return Use{}, len(args) == 2 && (args[0].Text == "-v" || args[0].Text == "-V")
	}
	s, ok := readOnly[name]
	if !ok || s.check != nil && !s.check(args) {
		return Use{}, false
	}
	if name == "find" {
		return Use{Paths: findRoots(args), Recursive: true}, true
	}
	if s.anything {
		if name == "test" || name == "[" {
			return Use{Paths: testPaths(args)}, true
		}
		return Use{}, true
	}
	ops, text, _, ok := s.split(args)
	if !ok || s.max > 0 && len(ops) > s.max {
		return Use{}, false
	}
	use := Use{Recursive: readsTrees(name, dashed(args)), Content: !slices.Contains(tellNames, name), Follows: name == "diff"}
	switch s.operands {
	case noneAtAll:
		return use, len(ops) == 0
	case asText:
		return use, true
	case afterText:
		if !text {
			if len(ops) == 0 {
				return Use{}, false
			}
			ops = ops[1:]
		}
	}
	if len(ops) == 0 && (use.Recursive || name == "ls" || name == "du") {
		ops = []Word{{Text: ".", Source: ".", Literal: true}}
	}
	use.Paths = ops
	return use, true
}

// dashed are the words that are options, or look like one.
func dashed(args []Word) (opts []string) {
	for _, w := range args {
		if w.Literal && strings.HasPrefix(w.Text, "-") {
			opts = append(opts, w.Text)
		}
	}
	return opts
}

// tellNames are commands that show names and properties of files only.
var tellNames = []string{"ls", "tree", "stat", "du", "df", "readlink", "realpath"}

// readsTrees reports whether a command reads what is in the directories that
// it is given.
func readsTrees(name string, opts []string) bool {
	switch name {
	case "rg", "tree", "diff", "tar", "zip", "rsync", "mv":
		return true
	case "sort", "jq", "tac", "xxd", "touch", "truncate", "shuf": // -r is something else
		return false
	}
	grep := strings.HasSuffix(name, "grep")
	return slices.ContainsFunc(opts, func(o string) bool {
		return recursive(o) || grep && (strings.HasPrefix(o, "--d") || len(o) > 1 && o[1] != '-' && strings.Contains(o, "d"))
	})
}

// recursive reports whether an option makes a command go down into directories,
// written out or cut short.
func recursive(opt string) bool {
	if strings.HasPrefix(opt, "--") {
		return len(opt) > 2 && (strings.HasPrefix("--recursive", opt) || strings.HasPrefix("--dereference-recursive", opt) || strings.HasPrefix("--archive", opt))
	}
	return strings.ContainsAny(opt, "rR")
}

// split takes the options off. text says that an option gave the text operand;
// ok is false for an option that is not in the table, or a word that may become
// one.
func (s *spec) split(args []Word) (ops []Word, text bool, opts []string, ok bool) {
	if !slices.ContainsFunc(args, func(w Word) bool {
		return strings.HasPrefix(w.Source, "-") || strings.HasPrefix(w.Text, "-") || !w.Literal && !s.glob
	}) {
		return slices.Clip(args), false, nil, true
	}
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.Literal {
			if strings.HasPrefix(w.Source, "-") || !s.glob {
				return nil, false, nil, false // what it expands to may be an option
			}
			ops = append(ops, w)
			continue
		}
		if w.Text == "--" {
			return append(ops, args[i+1:]...), text, opts, true
		}
		if len(w.Text) < 2 || w.Text[0] != '-' {
			ops = append(ops, w)
			continue
		}
		opts = append(opts, w.Text)
		if s.digits && strings.Trim(w.Text[1:], "0123456789") == "" {
			continue
		}
		var next, known bool
		if strings.HasPrefix(w.Text, "--") {
			next, known = s.longOption(w.Text[2:])
			if name, _, _ := strings.Cut(w.Text[2:], "="); s.textBy != "" && (name == "regexp" || name == "expression") {
				text = true
			}
		} else {
			opts[len(opts)-1], next, known = s.letters(w.Text, &text)
		}
		if !known {
			return nil, false, nil, false
		}
		if next {
			if i++; i >= len(args) || !args[i].Literal {
				return nil, false, nil, false
			}
		}
	}
	return ops, text, opts, true
}

// letters checks a word of one-letter options. seen are those before a value.
func (s *spec) letters(word string, text *bool) (seen string, next, known bool) {
	for j := 1; j < len(word); j++ {
		switch c := word[j]; {
		case strings.IndexByte(s.shortArg, c) >= 0:
			if strings.IndexByte(s.textBy, c) >= 0 {
				*text = true
			}
			return word[:j], j == len(word)-1, true
		case strings.IndexByte(s.short, c) < 0:
			return "", false, false
		}
	}
	return word, false, true
}

func (s *spec) longOption(opt string) (next, known bool) {
	name, _, attached := strings.Cut(opt, "=")
	for long := s.long; long != "" && name != ""; {
		var l string
		l, long, _ = strings.Cut(long, " ")
		kind, ok := strings.CutPrefix(l, name)
		switch {
		case !ok:
		case kind == "":
			return false, !attached
		case kind == "?":
			return false, true
		case kind == "=":
			return !attached, true
		}
	}
	return false, false
}

// plainFormat is a format of printf without numbers, which zsh evaluates.
var plainFormat = regexp.MustCompile(`^(?:[^%]|%[-0-9.]*[sbq%])*$`)

func printsText(args []Word) bool {
	return len(args) > 0 && args[0].Literal && !strings.HasPrefix(args[0].Text, "-") && plainFormat.MatchString(args[0].Text)
}

// noLists refuses "@file", from which programs of binutils take more options.
func noLists(args []Word) bool {
	return !slices.ContainsFunc(args, func(w Word) bool { return strings.HasPrefix(w.Text, "@") })
}

// What a filter of jq may hold: nothing that reads modules or the environment.
var (
	jqPlain = regexp.MustCompile(`^[^*?{}]*$`)
	jqOther = regexp.MustCompile(`\b(?:import|include|modulemeta|get_search_list|env|ENV|input_filename)\b|\$__prog`)
)

func plainJq(args []Word) bool {
	for _, w := range args {
		switch {
		case w.Text == "--":
			return false
		case strings.HasPrefix(w.Text, "-"):
			continue
		case w.Literal:
			return !jqOther.MatchString(w.Text)
		}
		return w.Glob && jqPlain.MatchString(w.Flat) && !jqOther.MatchString(w.Flat)
	}
	return false
}

// onlyFormat lets date print and not set the clock.
func onlyFormat(args []Word) bool {
	for i, w := range args {
		if !w.Literal {
			return false
		}
		if !strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "+") &&
			(i == 0 || args[i-1].Text != "-d" && args[i-1].Text != "--date" && args[i-1].Text != "--rfc-3339") {
			return false
		}
	}
	return true
}
