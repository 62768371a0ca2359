package shell_test

import (
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/shell"
	"pgregory.net/rapid"
)

func texts(s shell.Script) (out []string) {
	for _, p := range s.Parts {
		text := shell.Text(p.Words)
		for _, a := range p.Assigns {
			text = a.Source + " " + text
		}
		for _, r := range p.Redirects {
			text += " " + map[bool]string{true: ">", false: "<"}[r.Write] + r.Target.Source
		}
		out = append(out, strings.TrimSpace(text))
	}
	return out
}

func TestParse(t *testing.T) {
	conform.Covers(t, "P-58", "P-59", "P-60", "P-73", "P-74")
	for command, want := range map[string]string{
		"a  b\t c":             "a b c",
		"a;b&c|d|&e&&f||g\nh":  "a|b|c|d|e|f|g|h",
		"a $(b `c`) <(d) >(e)": "c|b `c`|d|e|a $(b `c`) <(d) >(e)",
		"(a; (b)); { c; }":     "a|b|c",
		"if a; then b; elif c; then d; else e; fi": "a|b|c|d|e",
		"for x in $(a); do b; done":                "a|b",
		"case $(a) in x|$(b)) c;; esac":            "a|b|c",
		`\to'uc'h "x  y"`:                          `touch "x  y"`,
		`"a b" c`:                                  `"a b" c`,
		`$'\x74\u0061' $'\x74'`:                    `ta $'\x74'`,
		"X=1 Y=$(b) a >o 2>>p <i &>q":              "b|Y=$(b) X=1 a >o >p <i >q",
		"{ a; } >o":                                ">o|a",
		"> o":                                      ">o",
		"a 2>&1 >&2 <&- >&o":                       "a >o",
		"a <<E\n$(b)\nE\nc":                        "b|a|c",
		"a <<'E'\n$(b)\nE\nc":                      "a|c",
		"a <<<$(b)":                                "b|a",
		"f() { a; }":                               "a",
		"a \\\n b":                                 "a b",
		"export X=$(a)":                            "a|export X=$(a)",
		"! time a":                                 "a",
		"[[ -n $(a) ]]":                            "a",
		"((x = $(a)))":                             "a",
		"a ${x:-$(b)} $(( $(c) ))":                 "b|c|a ${x:-$(b)} $(( $(c) ))",
		"a # b\n# c\nd":                            "a|d",
	} {
		s, err := shell.Parse(command)
		if got := strings.Join(texts(s), "|"); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", command, got, err, want)
		}
	}
	for _, command := range []string{"a 'b", "a &&", "if a", "a\r", "a\x00", "a\x1b", strings.Repeat("a", shell.MaxLength+1), "$(", "a )", "cat <<E\nx"} {
		if s, err := shell.Parse(command); err == nil {
			t.Errorf("%.20q is read as %q", command, texts(s))
		}
	}
}

// TestUnclear: texts that the parser and bash divide differently are not parsed;
// those near them are.
func TestUnclear(t *testing.T) {
	conform.Covers(t, "P-70")
	for _, command := range []string{
		"ls # x\\\na", "ls #\\\\\na", "# \\\na", "a;# \\\nb", "(# \\\nb)", "$(# \\\nb)", "a `# \\\nb`",
		"<&-a b", "0<&-a b", ">&-a b", "2>&-a b", "a 2>&1b", "<&\\\n-a b", "<&1-a b", "a >&-$b",
		"cat <<E\n\\\nE\na\nE", "cat <<E\na\\\nE\nb\nE", "cat <<E\nE\\\nx\nE", "cat <<-E\n\t\\\n\tE\na\nE", "cat <<E\n$(a\nE\n)\nE\n",
		"a $(cat <<E\nE)\nb\nE\n)", "a $(cat <<'E'\nE)\nb\nE\n)", "a \"$(cat <<'E'\nE;\nb\nE\n)\"", "a <(cat <<E\nE)\nb\nE\n)", "a `cat <<E\nb\nE\n`",
		"cat <<E \"\nE\n\"\nE", "cat <<'E F'\nE F\n", "cat <<E''F\nEF", "cat <<'E'# a\nE", "a \\", "a\nb\\", "-a=[", "a ${x:-<(b)}", "a ${x/y/>(b)}", "a $((<(b)))", "cat <<E \\\n| b\nx\nE",
	} {
		if s, err := shell.Parse(command); err == nil {
			t.Errorf("%q is read as %q", command, texts(s))
		}
	}
	for _, command := range []string{
		"ls # x\na", "a \\\n b # c", "a b#c\\\nd", "a '#' \\\n b", "a <&- 2>&1 >&- | b", "a 2>&1; b", "a <&3-; (a >&-)", "{ a; } 2>&1&& b", "a >&2",
		"export -n a=b", "declare -ra b=(c)", "a_1=b", "a+=b c", "a -b=c", "cat <<E\nE", "cat <<E\na\nEF\nE\nb", "cat <<'E'\na\\\nb\nE", "cat <<-E\n\ta\n\tE\nb", "cat <<E <<'F' && b\na\nE\nb\nF\nc", "cat <<\\E\n$(\nE",
		"git commit -m \"$(cat <<'EOF'\nfix: a (b)\n\nIt's.\nEOF\n)\"", "cat <<E | b\n$(c) $d `e`\n\nE\n", "cat > x <<'END-OF_x.1'\n\n# \\\\ \nEND-OF_x.1\n", "(cat <<E\na\nE\n)", "if a; then cat <<E\nE)\nE\nfi", "cat <<E\n\n $x\nE\ncat <<E\n${y}\nE",
	} {
		if _, err := shell.Parse(command); err != nil {
			t.Errorf("%q: %v", command, err)
		}
	}
}

func TestFed(t *testing.T) {
	conform.Covers(t, "P-61")
	for command, want := range map[string]bool{"xargs a": true, "nice xargs a": true, "xargs nice a": true, "xargs -n 1 a": true, "nice a": false, "a xargs": false, "": false} {
		var words []shell.Word
		if s, err := shell.Parse(command); err != nil {
			t.Fatal(err)
		} else if len(s.Parts) > 0 {
			words = s.Parts[0].Words
		}
		if got := shell.Fed(words); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

func TestAskAndUnsure(t *testing.T) {
	conform.Covers(t, "P-71", "P-72")
	for command, want := range map[string][2]bool{
		"a; b | c":                {false, false},
		"eval a":                  {true, false},
		"command eval a":          {true, false},
		"source a":                {true, false},
		". a":                     {true, false},
		"exec a":                  {true, false},
		"trap a EXIT":             {true, false},
		"alias a=b":               {true, false},
		"a() { b; }":              {true, false},
		"$a b":                    {true, false},
		"a$b c":                   {true, false},
		"timeout 5 $a":            {true, false},
		"nohup $a":                {true, false},
		"a | $(b)":                {true, false},
		"bash <<E\na\nE":          {true, false},
		"nice zsh <<< a":          {true, false},
		"/bin/sh <<E\na\nE":       {true, false},
		"python <<E\na\nE":        {false, false},
		"bash x":                  {false, false},
		"a $b ${c} ${d:-e} ${#f}": {false, false},
		"a ${b@P}":                {false, true},
		"a ${!b}":                 {false, true},
		"a $((1 + 2))":            {false, false},
		"a $((b))":                {false, true},
		"a ${b[c]} ":              {false, true},
		"a ${b[@]} ${b[1]}":       {false, false},
		"a *(b)":                  {false, true},
		"[[ a -eq b ]]":           {false, true},
		"[[ a == b ]]":            {false, false},
		"let a=b":                 {false, true},
		"~/a b":                   {false, false},
		"~b/a":                    {true, false},
		"a >! b":                  {false, true},
		"a[b]=1":                  {false, true},
		"a[1]=b":                  {false, false},
		"a=([b]=1)":               {false, true},
		"a=(b [1]=c)":             {false, false},
		"COLUMNS='x[$(a)]'":       {false, true},
		"COLUMNS=$a b":            {false, true},
		"COLUMNS=80 b":            {false, false},
	} {
		s, err := shell.Parse(command)
		if got := [2]bool{len(s.Ask) > 0, len(s.Unsure) > 0}; err != nil || got != want {
			t.Errorf("%q: ask %q, unsure %q, %v; want %v", command, s.Ask, s.Unsure, err, want)
		}
	}
}

func TestStripped(t *testing.T) {
	conform.Covers(t, "P-61")
	for command, want := range map[string]string{
		"timeout 5 a b": "a b", "timeout -k 1 --signal=KILL 5 a": "a", "nice a": "a", "nice -n 5 a": "a", "nice -10 a": "a",
		"nohup nice a": "a", "stdbuf -oL a": "a", "stdbuf -o L a": "a", "command a": "a", "builtin a": "a", "noglob a": "a",
		"xargs a": "a", "command -v a": "command -v a", "env a": "env a", "sudo a": "sudo a", "nocorrect a": "nocorrect a", "a": "a",
	} {
		s, err := shell.Parse(command)
		if err != nil {
			t.Fatal(err)
		}
		words, ok := shell.Stripped(s.Parts[0].Words)
		if got := shell.Text(words); got != want || !ok {
			t.Errorf("%q: %q, %v", command, got, ok)
		}
	}
	for _, command := range []string{"timeout", "timeout 5", "timeout --x 5 a", "xargs -n 1 a", "command -p a", "nice -x a", "nohup --help a", "timeout $x a b c -d $y"} {
		s, err := shell.Parse(command)
		if err != nil {
			t.Fatal(err)
		}
		if words, ok := shell.Stripped(s.Parts[0].Words); ok {
			t.Errorf("%q is stripped to %q", command, shell.Text(words))
		}
	}
}

func TestSafeVariables(t *testing.T) {
	conform.Covers(t, "P-63")
	for name, want := range map[string]bool{
		"NODE_ENV": true, "LANG": true, "LC_ALL": true, "TZ": true, "CI": true, "DEBUG": true, "TERM": true, "COLUMNS": true, "NO_COLOR": true, "FORCE_COLOR": true,
		"PATH": false, "LD_PRELOAD": false, "DYLD_X": false, "GIT_DIR": false, "NODE_OPTIONS": false, "BASH_ENV": false, "ENV": false, "PYTHONPATH": false, "X": false, "lang": false,
	} {
		if shell.SafeVariable(name) != want {
			t.Errorf("SafeVariable(%s) = %v", name, !want)
		}
	}
}

// TestWordsAgainstBash: a literal word is what bash makes of it.
func TestWordsAgainstBash(t *testing.T) {
	conform.Covers(t, "P-59")
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	rapid.Check(t, func(rt *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "b c", `\ `, `\\`, `\"`, "'", `"`, `$'`, `\n`, `\x41`, `\101`, `\u00e9`, "$", "é", "-", "{", "}", "!", "=", "~", "/"})
		word := strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(rt, "word"), "")
		s, err := shell.Parse("printf %s " + word)
		if err != nil || len(s.Parts) != 1 || len(s.Parts[0].Words) != 3 || !s.Parts[0].Words[2].Literal {
			rt.Skip()
		}
		cmd := exec.Command(bash, "--norc", "-c", "printf %s "+word)
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		out, err := cmd.Output()
		if err != nil {
			rt.Fatalf("%q: %v", word, err)
		}
		if got := s.Parts[0].Words[2].Text; got != string(out) {
			rt.Fatalf("%q is read as %q, bash makes %q of it", word, got, out)
		}
	})
}

func TestNamedFiles(t *testing.T) {
	conform.Covers(t, "P-75")
	sources := func(ws []shell.Word) string {
		var out []string
		for _, w := range ws {
			out = append(out, w.Text)
		}
		return strings.Join(out, " ")
	}
	for command, want := range map[string][2]string{
		"cat a b": {"a b", ""}, "cp a b": {"a b", "b"}, "cp -t d a": {"d a", "d a"}, "mv a b": {"a b", "a b"}, "dd if=a of=b": {"a b", "b"},
		"tee -a x": {"x", "x"}, "grep -fx y": {"y x", ""}, "grep --file=x y": {"y x", ""}, "rm -rf x": {"x f", "x f"}, "sed -i s/a/b/ x": {"s/a/b/ x", "s/a/b/ x"},
	} {
		s, err := shell.Parse(command)
		if err != nil {
			t.Fatal(err)
		}
		f, ok := shell.NamedFiles(s.Parts[0].Words)
		if got := [2]string{sources(f.Reads), sources(f.Writes)}; !ok || got != want {
			t.Errorf("%q: %q, %v; want %q", command, got, ok, want)
		}
	}
	for command, want := range map[string]string{
		"cp a b": "b/a", "cp x/a y/b d/": "d//a d//b", "mv a d": "d/a", "ln -s x/a": "./a", "install -m 1 a d": "d/1 d/a", "cp -td a": "d/a a/d",
		"cp $x d": "?", "cp a $d": "?", "cat a b": "",
	} {
		s, err := shell.Parse(command)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := shell.NamedFiles(s.Parts[0].Words)
		var got []string
		for _, in := range f.Into {
			if !in.File.Literal {
				in.File.Text = "?"
			}
			got = append(got, in.File.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q in a directory: %q, want %q", command, got, want)
		}
	}
	for command, want := range map[string]string{
		"sed 'w a' b": "a", "sed -n -e 's/x/y/w a' b": "a", "sed '/x/{w a\n}' b": "a", "sed 's/w/r/' b": "", "sed p b": "",
	} {
		s, err := shell.Parse(strings.ReplaceAll(command, `\n`, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		f, _ := shell.NamedFiles(s.Parts[0].Words)
		if got := slices.ContainsFunc(f.Writes, func(w shell.Word) bool { return w.Text == "a" }); got != (want != "") {
			t.Errorf("%q writes %q", command, sources(f.Writes))
		}
	}
	for _, name := range strings.Fields("cat head tail nl tac fold expand unexpand column sed grep sort cut diff wc cp mv tee dd install ln touch mkdir rm truncate") {
		if _, ok := shell.NamedFiles([]shell.Word{{Text: name, Literal: true}}); !ok {
			t.Errorf("%s is not known", name)
		}
	}
}

func TestReadOnlyUse(t *testing.T) {
	conform.Covers(t, "P-66", "P-69")
	for command, want := range map[string]shell.Use{
		"ls -R": {Recursive: true}, "cat a": {Content: true}, "stat a": {}, "diff a b": {Recursive: true, Follows: true, Content: true}, "tree": {Recursive: true},
		"grep x a": {Content: true}, "grep -r x a": {Recursive: true, Content: true}, "grep -d recurse x a": {Recursive: true, Content: true}, "find a": {Recursive: true},
		"git status": {Git: true}, "git diff": {Git: true, Content: true}, "git diff --stat": {Git: true}, "git log": {Git: true}, "git log -p": {Git: true, Content: true},
		"git show --stat": {Git: true, Content: true}, "git blame a": {Git: true, Content: true}, "git branch": {Git: true}, "git diff --patch --stat": {Git: true, Content: true},
		"jq . a": {Content: true}, "strings a": {Content: true},
	} {
		s, err := shell.Parse(command)
		if err != nil {
			t.Fatal(err)
		}
		use, ok := shell.ReadOnly(s.Parts[0].Words)
		use.Paths = nil
		if !ok || !reflect.DeepEqual(use, want) {
			t.Errorf("%q: %+v, %v; want %+v", command, use, ok, want)
		}
	}
	for _, command := range []string{
		"strings @a", "strings a @b", "strings *", "jq -f a", "jq -L a . b", "jq 'import \"a\" as $a; 1'", "jq 'include \"a\"; 1'", "jq env", "jq '$ENV.X'",
		"jq -- . a", "jq -n", "jq * a", "git blame -S a b", "git ls-files -X a",
	} {
		s, err := shell.Parse(command)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := shell.ReadOnly(s.Parts[0].Words); ok {
			t.Errorf("%q counts as read-only", command)
		}
	}
}

var seeds = []string{
	"ls -la src", "cat a | head -5", "git log --oneline", "grep -rn x .", "find . -name a", "sed -n 1,5p a", "sort -o a b", "echo hi > x", "date -s x",
	"ls --foo", "env ls", "x=$(rm y) ls", "cat <<E\nx\nE", "git branch -D x", "uniq a b", "tree -o x", "printf -v x y", "test -v x", "git diff --output=x",
	"{ sh; } <<< 'a b'", "env -S'a b' c", "eval \"a $b\" c", "cat <<'E' | sh\na\nE", "f() { sh; }; f <<E\n$a\nE", "a # b\\\nc", "<&-a", "a $(cat <<E\nE)\nE\n)", "jq . a", "rg --pre x y", "xxd -r a b", "file -C -m x", "hostname x", "git config a.b c", "git stash drop", "git reflog expire", "git tag x", "sed w\\ x a",
}

var expansion = regexp.MustCompile("`|\\$[A-Za-z_0-9{(]")

// FuzzParse: reading never panics, and what is read says where it is from.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		s, err := shell.Parse(command)
		if err != nil {
			if len(s.Parts) > 0 {
				t.Fatalf("parts beside an error: %v", err)
			}
			return
		}
		for _, p := range s.Parts {
			shell.Stripped(p.Words)
			shell.Inner(p.Words)
			for _, n := range shell.Scripts(p) {
				_, _ = n.Parse()
			}
			shell.Fed(p.Words)
			shell.Feeds(p.Words)
			shell.NamedFiles(p.Words)
			shell.Removed(p.Words)
			shell.Edits(p.Words)
			for _, w := range p.Words {
				if utf8.ValidString(command) && !strings.Contains(command, w.Source) {
					t.Fatalf("%q is no part of %q", w.Source, command)
				}
				if w.Literal && w.Text == w.Source && expansion.MatchString(w.Source) {
					t.Fatalf("%q counts as literal", w.Source)
				}
			}
		}
		if again := shell.Collapse(shell.Collapse(command)); again != shell.Collapse(command) {
			t.Fatalf("collapsing %q twice: %q", command, again)
		}
	})
}

// FuzzReadOnly: a command of one part that counts as read-only has no option
// that is not known, and names none of the ways to write or run something.
func FuzzReadOnly(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	harmful := []string{"-exec", "-delete", "-ok", "-fprint", "--output", "--pre", "--ext-diff", "--textconv", "--open-files-in-pager", "--in-place", "--compress-program", "--set"}
	f.Fuzz(func(t *testing.T, command string) {
		s, err := shell.Parse(command)
		if err != nil || len(s.Parts) != 1 {
			return
		}
		words := s.Parts[0].Words
		if _, ok := shell.ReadOnly(words); !ok {
			return
		}
		name := words[0].Text
		if name == "echo" || name == "printf" || name == "true" || name == "false" || name == ":" {
			return
		}
		for i, w := range words[1:] {
			if w.Text == "--" {
				return
			}
			value := strings.HasPrefix(words[i].Text, "-") // w may be the value of an option
			for _, h := range harmful {
				if strings.HasPrefix(w.Text, h) && !value {
					t.Fatalf("%q is read-only with %q", command, w.Text)
				}
			}
		}
		// The same command with an option that no program has is not read-only.
		// Where options end early, or everything is a pattern, it may be.
		if !slices.ContainsFunc(words[1:], func(w shell.Word) bool { return strings.HasPrefix(w.Text, "-") }) && !strings.HasPrefix(name, "[") && name != "test" && name != "command" {
			odd := slices.Insert(slices.Clone(words), 1, shell.Word{Text: "--no-such-option", Source: "--no-such-option", Literal: true})
			if _, ok := shell.ReadOnly(odd); ok {
				t.Fatalf("%q is read-only with an unknown option", command)
			}
		}
	})
}
