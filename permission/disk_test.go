package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
)

// put makes files in the project: "name" an empty file, "name/" a directory,
// "name>target" a link, "name=text" a file with a text.
func (w world) put(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		name, to, link := strings.Cut(w.fill(name), ">")
		name, text, _ := strings.Cut(name, "=")
		path := filepath.Join(w.project, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		err := os.MkdirAll(dir, 0o755)
		switch {
		case err != nil || strings.HasSuffix(name, "/"):
		case link:
			err = os.Symlink(to, path)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommandsOnDisk: decisions that depend on what the files are.
func TestCommandsOnDisk(t *testing.T) {
	type c = permission.Config
	accept := c{Mode: "acceptEdits"}
	bypass := func(deny ...string) c {
		return c{Mode: "bypassPermissions", BypassAvailable: true, Deny: deny}
	}
	for _, test := range []struct {
		name     string
		ids      []string
		files    string // separated by blanks
		config   c
		want     permission.Behavior
		commands string
	}{
		{"git in a bare repository", []string{"P-9", "P-66"}, "HEAD config objects/ refs/", c{}, ask, `
			git status
			git log
			git diff
			ls && git status`},
		{"whose settings are elsewhere", []string{"P-9"}, "HEAD commondir=x", accept, ask, `git status`},
		{"git of a directory that .git points to", []string{"P-9"}, "g/HEAD sub/.git=gitdir:../g", accept, ask, `cd sub; git status`},
		{"a line that makes a bare repository", []string{"P-9"}, "x", accept, ask, `
			mkdir objects refs && cp x HEAD && git status
			mv x HEAD; mkdir objects; git status
			git log & touch head
			git status; touch commondir`},
		{"one that lacks its objects", []string{"P-9"}, "HEAD config refs/ x/objects/", accept, ask, `
			mkdir objects && git status
			cp -r x/. . && git status`},
		{"git beside other edits", []string{"P-8", "P-66"}, "HEAD.md objects/", accept, allow, `
			git status
			touch x && git status
			mv a.txt b.txt; git diff`},

		{"cp and mv onto a link in a directory", []string{"P-8", "P-87", "P-98"}, "d/a.txt>$O/o.txt d/deep>$O", accept, ask, `
			cp a.txt d
			cp a.txt d/
			cp -r a.txt src d
			cp a.txt src/b.go d
			mv a.txt d/.
			cp -r src/deep d
			cp d/a.txt x
			sed -i s/a/b/ d/a.txt`},
		{"a tree onto links", []string{"P-98"}, "tpl/d/f d/f>$O/o.txt", accept, ask, `
			cp -r tpl/. .
			cp -rT tpl .
			cp -a tpl/d .
			cp -r d d2`},
		{"a link that moves", []string{"P-98"}, "src/up>.. deep/er/up>../..", accept, ask, `
			mv src/up up && cp a.txt up/pwn
			cp -a src/up up; touch up/pwn
			cp -d src/up up; touch up/pwn
			cp --recursive src/up up; touch up/pwn
			mv deep/er er && touch er/up/pwn
			touch er/up/pwn & mv deep/er er
			for i in 1 2; do touch x/pwn; mv deep x; done
			rm src/up && mkdir src/up && touch src/up/x
			rm -r deep && touch x`},
		{"or is made by a command that is allowed", []string{"P-98"}, "d/", c{Mode: "acceptEdits", Allow: []string{"Bash(ln *)", "Bash(mv *)", "Bash(make *)"}}, ask, `
			ln -s .. up && touch up/pwn
			touch up/pwn & ln -s .. up
			touch up/pwn &1make x
			touch up/pwn | make x
			make links && touch up/pwn
			mv link l2 && touch l2/pwn`},
		{"which does not matter before it", []string{"P-8"}, "d/", c{Mode: "acceptEdits", Allow: []string{"Bash(make *)"}}, allow, `
			mkdir -p build && make x
			touch d/a; make x`},
		{"a moved link alone", []string{"P-8"}, "src/up>..", accept, ask, `mv src/up up`},
		{"a moved link inside", []string{"P-8"}, "src/there>b.go", accept, allow, `
			mv src/there src/here
			cp -r src src2
			rm -r src`},
		{"protected names in a tree", []string{"P-9", "P-107"}, "tpl/.claude/settings.json tpl/.git/hooks/pre-commit c/git/config d/", accept, ask, `
			cp -r tpl/. .
			cp -rT tpl .
			cp -r tpl x
			cp -a tpl d
			mv tpl x
			mv tpl d
			mv c .config
			mv c/git .config
			cp -r c .config
			cp -r c/. .config
			mkdir -p e/git && touch e/git/config && mv e .config
			mkdir -p src/git && mv src .config
			rm a.txt && mkdir -p a.txt/git && mv a.txt .config
			mv src x && mv c src && cp -r x d`},
		{"copies and moves inside", []string{"P-8"}, "d/ lib/x", accept, allow, `
			cp a.txt b.txt
			cp a.txt src/b.go d
			cp -r src d
			cp -r src/. d
			mv a.txt d/ && touch d/b
			mv src d
			mv a.txt b.txt && mv src/b.go src/c.go
			mkdir -p x/y && cp a.txt x/y/
			cp -r lib src && rm -rf d`},

		{"edit deny rules and the directory of a copy", []string{"P-29", "P-75"}, "locked/ d/Makefile Makefile l2>locked", bypass("Edit(/locked/**)", "Edit(/Makefile)"), deny, `
			cp a.txt locked
			cp a.txt locked/
			cp a.txt src/b.go locked
			install -m 644 a.txt locked
			ln -f a.txt locked
			ln -sf $W/a.txt locked
			mv a.txt locked
			mv src/b.go l2
			cp -t locked a.txt
			cp -tlocked a.txt
			cp --target-directory=locked a.txt
			sh -c 'cp a.txt locked'
			cp d/Makefile .
			cp d/Makefile $W
			mv d/Makefile .
			cd src && cp ../d/Makefile ..
			sed -n 'w Makefile' a.txt
			sed -n '/x/w Makefile' a.txt
			sed 's/a/b/w Makefile' a.txt
			sed -e p -e 'w locked/x' a.txt`},
		{"where it is not sure", []string{"P-75"}, "locked/", bypass("Edit(/locked/**)"), ask, `
			cp $X locked
			cp src/* locked
			cp -r src/. locked`},
		{"copies that it does not cover", []string{"P-75"}, "locked/ Makefile", bypass("Edit(/locked/**)", "Edit(/Makefile)"), allow, `
			cp Makefile Makefile.bak
			cp Makefile src
			cp locked/x src
			sed -n 's/w/x/p' a.txt`},

		{"read deny rules and other commands", []string{"P-29", "P-75"}, "empty sub/ l>.env", bypass("Read(.env)"), deny, `
			fold .env
			expand .env
			unexpand -a .env
			column -t .env
			b2sum .env
			fold l
			sed 'r .env' a.txt
			sed R.env a.txt
			git diff empty .env
			git grep x .env
			git show HEAD:.env
			git show :.env
			git cat-file -p HEAD:src/.env
			git blame .env`},
		{"in bypassPermissions, trees", []string{"P-75"}, "top/secret/x sub/", bypass("Read(.env)"), ask, `
			diff -N . sub
			diff . sub
			grep -d recurse = .
			grep -drecurse = .
			grep --directories=recurse = .
			grep --recurs = .
			cp --archive top copy
			cp --arch top copy
			cat /proc/self/cwd/.env
			cat /proc/thread-self/cwd/.env
			cat /proc/1/cwd/.env
			cat /dev/fd/3/.env
			cat < /proc/self/cwd/.env`},
		{"silently approved ones", []string{"P-66", "P-75"}, "top/secret/x empty sub/ p>/proc/self/cwd", c{Deny: []string{"Read(.env)"}}, ask, `
			git diff
			git diff --stat -p
			git diff --cached
			git diff -U9 --stat
			git log -p
			git log -S x
			git log -L1,2:a.txt
			git show
			git show --stat HEAD
			git grep --no-index -h = .
			git grep =
			git blame a.txt
			git blame -S .env a.txt
			git stash show
			git status -v
			git reflog -p
			diff src sub
			cat p/a.txt
			cat p/..
			grep -r x .`},
		{"links in trees that are followed", []string{"P-75", "P-87"}, "secret/x t/l>../secret/x", bypass("Read(/secret/**)"), ask, `
			diff t src
			grep -R x t
			grep -rR x t
			cp -rL t x
			cp -r --dereference t x
			rsync -aL t x
			tar -chf x t
			cat t/*`},
		{"links that the line makes", []string{"P-75", "P-87"}, "secret/x d/", bypass("Read(/secret/**)", "Edit(/locked/**)"), ask, `
			ln -s secret l && cat l/x
			ln -s ../secret d/l; cp d/l/x x
			ln -sfn locked l && touch l/x
			ln --symbolic locked l && echo x > l/x
			ln -s secret l; fold l/x
			ln $X l; cat l`},
		{"and nothing goes through", []string{"P-75"}, "secret/x", bypass("Read(/secret/**)"), allow, `
			ln -s a.txt b
			ln -s a.txt b && echo done
			ln a.txt b && cat b`},
		{"and those that are not", []string{"P-75"}, "secret/x t/l>../secret/x", bypass("Read(/secret/**)"), allow, `
			grep -r x t
			diff src a.txt
			cp -r src x`},
		{"what shows no content", []string{"P-66"}, "empty sub/", c{Deny: []string{"Read(.env)"}}, allow, `
			git status
			git status --short
			git log --oneline -5
			git log --stat
			git diff --stat
			git diff --name-only HEAD~1
			git branch -a
			git ls-files
			ls -R
			find . -name '*.go'
			cat a.txt
			diff a.txt empty
			grep x a.txt`},
		{"a tree that the rule is not about", []string{"P-75"}, "sub/", c{Deny: []string{"Read(/secret/**)"}}, allow, `
			grep -r x src
			diff src sub`},

		{"outside reads", []string{"P-66", "P-76", "P-97"}, "opts ldir>$O lnk>$O/o.txt t/l>$O/o.txt t/x/y t/x/z>$O/o.txt", c{}, ask, `
			jq -n 'import "secret" as $s {search:"../out"}; $s'
			jq 'include "x"; .' a.txt
			jq -L../out . a.txt
			jq --from-file $O/o.txt a.txt
			jq -f a.txt
			jq env a.txt
			jq -n '$ENV.HOME'
			jq -- 'import "x" as $x; 1'
			strings @opts
			strings a.txt @opts
			strings *
			git diff a.txt ldir/o.txt
			git diff HEAD -- ldir/o.txt
			git grep --no-index x ldir
			cat ln?
			cat l*
			cat */o.txt
			cat */./x/z
			cat l*/o.txt
			head */*
			head {t,src}/l
			cat t/{x,l}
			cat t/[a-z]
			wc -l **/l
			diff t src
			diff t/x ldir`},
		{"reads inside", []string{"P-66"}, "t/x/y t/l>../a.txt", c{}, allow, `
			jq . a.txt
			jq -r '.a[] | select(.b == "x") | .c' a.txt
			jq .[] a.txt
			strings a.txt
			cat *.txt
			cat t/*
			wc -l src/**/*.go
			diff t src
			git diff HEAD~1 -- src
			git show HEAD:a.txt
			git log origin/main..HEAD`},

		{"edits that a bare rule forbids", []string{"P-29", "P-75"}, "d/", c{Mode: "acceptEdits", Deny: []string{"Edit", "Write"}}, ask, `
			sed -i s/a/b/ a.txt
			cp a.txt b.txt
			rm a.txt
			mkdir x
			touch x`},
		{"a bare rule of Write", []string{"P-75"}, "d/", c{Mode: "acceptEdits", Deny: []string{"Write"}}, ask, `
			cp a.txt b.txt
			touch x`},
		{"a bare rule of Read", []string{"P-29", "P-75"}, "d/", bypass("Read"), ask, `
			cat a.txt
			grep x a.txt
			cp a.txt b.txt
			sort < a.txt
			sh -c 'cat a.txt'
			fold a.txt
			git show`},
		{"a bare rule of Edit", []string{"P-29", "P-75"}, "d/", bypass("Edit"), ask, `
			sed -i s/a/b/ a.txt
			rm a.txt
			echo x > a.txt`},
		{"removals that are others in each process", []string{"P-110", "P-111"}, "p>/proc/self/cwd", bypass(), ask, `
			rm -rf /proc/self/cwd/
			rm -rf /proc/self/cwd/src
			rm -rf p/src`},
		{"commands without files", []string{"P-17"}, "d/", bypass("Read", "Edit", "Write"), allow, `
			make
			ls
			go test ./... 2>&1 | tail -5 2>/dev/null
			git status
			echo x`},
	} {
		t.Run(test.name, func(t *testing.T) {
			conform.Covers(t, test.ids...)
			w := newWorld(t)
			w.put(t, strings.Fields(test.files)...)
			p := w.policy(t, test.config)
			for _, line := range strings.Split(strings.TrimSpace(test.commands), "\n") {
				command := w.fill(strings.TrimSpace(line))
				if d := p.Decide(bash(command)); d.Behavior != test.want {
					t.Errorf("%q: got %s (%s), want %s", command, d.Behavior, d.Reason, test.want)
				}
			}
		})
	}
}
