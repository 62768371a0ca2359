package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
)

// world is a project with files in and around it. $W is the project, $O a
// directory outside, %H the home directory.
type world struct{ root, project, outside, home string }

func newWorld(t testing.TB) world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Deeper, so that no parent of the project is a child of the root.
	w := world{root, filepath.Join(root, "a", "project"), filepath.Join(root, "outside"), filepath.Join(root, "home", "me")}
	for _, d := range []string{filepath.Join(w.project, "src", "deep"), filepath.Join(w.project, ".git"), w.outside, w.home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"a.txt", "src/b.go", ".env"} {
		if err := os.WriteFile(filepath.Join(w.project, f), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.outside, "o.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.outside, filepath.Join(w.project, "link")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	return w
}

func (w world) fill(s string) string {
	return strings.NewReplacer("$W", w.project, "$O", w.outside, "%H", w.home).Replace(s)
}

func (w world) policy(t testing.TB, c permission.Config) *permission.Policy {
	t.Helper()
	for _, list := range []*[]string{&c.Allow, &c.Ask, &c.Deny} {
		filled := make([]string, len(*list))
		for i, r := range *list {
			filled[i] = w.fill(r)
		}
		*list = filled
	}
	c.Dirs = append([]string{w.project}, c.Dirs...)
	c.Home = w.home
	return newPolicy(t, c)
}

func bash(command string) permission.Request {
	return permission.Request{Tool: "Bash", Accesses: []permission.Access{{Kind: permission.Exec, Target: command, Written: command}}}
}

// commandCase is commands, one a line, that a policy decides alike.
type commandCase struct {
	name     string
	ids      []string
	config   permission.Config
	want     permission.Behavior
	commands string
}

func (c commandCase) run(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	p := w.policy(t, c.config)
	for _, line := range strings.Split(strings.TrimSpace(c.commands), "\n") {
		command := strings.ReplaceAll(w.fill(strings.TrimSpace(line)), "⏎", "\n")
		if d := p.Decide(bash(command)); d.Behavior != c.want {
			t.Errorf("%q: got %s (%s), want %s", command, d.Behavior, d.Reason, c.want)
		}
	}
}

const (
	allow = permission.Allow
	ask   = permission.Ask
	deny  = permission.Deny
)

// The commands that need no approval in default mode, and those near them that do.
const (
	harmless = `
		ls
		ls -la src
		ls -la *.txt
		cat src/{b,c}.go src/[bc].go
		cat a.txt
		cat $W/a.txt
		cat "a.txt" 'src/b.go'
		\cat a.txt
		'ca't a.txt
		$'\x63at' a.txt
		head -20 a.txt
		head -n 5 a.txt | tail -n 1
		grep -rn "func main" src
		grep -e x -e y a.txt
		rg -n x src
		find . -name '*.go' -type f
		find . \( -name a -o -name b \) -print
		wc -l src/*.go
		echo "$HOME and $(pwd)"
		echo hi; echo there && true || false
		echo ---
		printf '%s\n' x
		pwd
		which go
		du -sh .
		stat a.txt
		diff a.txt src/b.go
		git status
		git --no-pager log --oneline -5
		git diff --stat HEAD~1 -- src
		git branch -a
		git show HEAD:a.txt
		git config --get user.name
		git stash list
		cd src
		cd src && ls
		cd $W/src && cat b.go ../a.txt | head -3 2>/dev/null
		ls 2>&1 | grep x
		cat < a.txt
		sed -n '1,5p' a.txt
		sed 's/a/b/g' a.txt
		LANG=C LC_ALL=C sort a.txt
		timeout 5 cat a.txt
		time ls
		nice -n 10 grep x a.txt
		if test -f a.txt; then echo yes; else echo no; fi
		for i in 1 2 3; do echo $i; done
		(cd src; ls)
		{ ls; pwd; }
		cat <<'E'⏎some $(text)⏎E
		command -v git
		go version
		[ -d src ] && echo yes
		# just a comment⏎ls`
	notHarmless = `
		make
		rm a.txt
		ls; make
		ls && rm a.txt
		ls | xargs rm
		ls | tee out
		ls > out
		echo x > /dev/tcp/host/80
		ls >> out
		cat $W/../../outside/o.txt
		cat /etc/passwd
		cat ../x
		cat link/o.txt
		cat src/../link/../o.txt
		cat ~/x
		cat ~other/x
		cat $X
		cat "$X"
		cat {a.txt,/etc/passwd}
		cat src/{../../x,b}
		cat "../.."/*
		cat link/*
		ls .*
		cat .?/x
		cat src/.{.,x}/../y
		cat src/{.,a}{.,b}/x
		cat =ls
		cat < /etc/passwd
		ls /
		cd ..
		cd / && ls
		cd $X && ls src
		cd src; git status
		(cd src && git log)
		git -C src status
		git --git-dir=x status
		git -c core.pager=x log
		GIT_DIR=x git status
		git push
		git commit -m x
		git branch new
		git branch -D x
		git tag v1
		git stash
		git config user.name x
		git diff --output=f
		git diff --ext-diff
		git grep -O x
		git log *
		find . -delete
		find . -exec cat {} ;
		find . -fprint out
		find . -name *.go
		find $X
		sort -o a.txt a.txt
		sort --output=x a.txt
		sort *
		sed -i s/a/b/ a.txt
		sed -n 'w out' a.txt
		sed 's/a/b/w out' a.txt
		sed 's/a/id/e' a.txt
		sed 1e a.txt
		sed -f script a.txt
		sed s/a/b/ *.txt
		echo x | tee a.txt
		PATH=. ls
		LD_PRELOAD=./x.so ls
		X=1 ls
		env
		printenv
		awk 1 a.txt
		python3 -c 1
		sh -c ls
		bash -c 'cat a.txt'
		eval ls
		source a.txt
		. ./a.txt
		exec ls
		trap ls EXIT
		ls() { rm a.txt; }; ls
		alias ls=rm⏎ls
		$X
		$(echo ls)
		"$X" a
		l{s,x}
		echo $(make)
		echo "$(make)"
		echo ` + "`make`" + `
		cat <(make)
		ls *(e:'make':)
		echo $((a[$X]))
		echo ${x@P}
		[[ $x -eq 1 ]]
		rg --pre=x y
		grep -R x .
		date 01010101
		hostname x
		file -m x a.txt
		file -f x
		uniq a.txt out
		xxd a.txt out
		tree -o out
		watch ls
		sudo ls
		env ls
		ls &&
		echo "unclosed
		cat <<E⏎text
		cat <<'E'⏎text⏎E⏎make
		printf -v x y
		timeout --foo 5 ls
		nohup $X
		cat a.txt ⏎make
		ls &make
		while ls; do make; done
		case x in x) make;; esac
		ls | while read x; do make $x; done
		coproc make
		time make
		! make
		cat a.txt >&out
		cat a.txt &>out
		ls >| out
		command make
		cd src && cat ../../x
		while true; do cd ..; cat x; done
		pushd src; cat a.txt
		for PATH in .; do ls; done
		for path in .; do ls; done
		for HOME in /etc; do cat ~/passwd; done
		for ((PATH=1; x; )); do ls; done
		select PATH in .; do ls; done
		: ${CDPATH:=/etc}; cd src
		{PATH}>/dev/null; ls
		ls {PATH}>/dev/null
		ls # x\⏎touch x
		ls # \⏎bash -c 'echo any > x'
		<&-find echo . -maxdepth 0 -exec touch x \;
		0<&-touch x
		>&-touch x
		<&-cat echo $O/o.txt
		cat <<E⏎\⏎E⏎touch x⏎E
		echo $(cat <<E⏎E)⏎touch x⏎E⏎)
		echo $(cat <<'E'⏎E)⏎touch x⏎E⏎)
		LC_A='x[$(touch x)]'; LC_B[LC_A]=1
		LC_A='x[$(touch x)]'; LC_B=([LC_A]=1)
		LC_A='x[$(touch x)]'; LC_B+=([LC_A]=1)
		LC_A='x[$(touch x)]'; [[ -n ${LC_B[LC_A]} ]]
		LC_A='x[$(touch x)]'; [[ LC_A -eq 1 ]]
		LC_A='$(touch x)'; LC_B=${LC_A@P}
		LC_A='x[$(touch x)]'; ((LC_A))
		LC_A='x[$(touch x)]'; let LC_A
		LC_A='x[$(touch x)]'; ((LC_A)) < a.txt
		LC_A='x[$(touch x)]'; ls && LC_B[LC_A]=1
		LC_A='x[$(touch x)]'; case ${LC_B[LC_A]} in x) ;; esac
		LC_A='x[$(touch x)]'; LC_B=${LC_C:LC_A}
		LC_A='x[$(touch x)]'; LC_B=$((LC_A))
		((LC_A)) < a.txt
		COLUMNS='x[$(touch x)]' ls
		echo ${x:-<(touch x)}
		echo . -maxdepth 0 -exec touch x '{}' + | xargs find
		echo ../out -delete | xargs find
		echo ../out/secret | xargs cat
		echo a.txt -o x | xargs sort
		xargs cat <<< .env
		timeout 5 xargs git log
		xargs nice ls`
)

func TestReadOnlyCommands(t *testing.T) {
	for _, c := range []commandCase{
		{"in default mode", []string{"P-7", "P-66", "P-67", "P-74"}, permission.Config{}, allow, harmless},
		{"in dontAsk", []string{"P-15", "P-66"}, permission.Config{Mode: "dontAsk"}, allow, harmless},
		{"in plan mode", []string{"P-10", "P-66"}, permission.Config{Mode: "plan"}, allow, harmless},
		{"others ask", []string{"P-7", "P-60", "P-67", "P-68", "P-69", "P-70", "P-76", "B-053"}, permission.Config{}, ask, notHarmless},
		{"others are denied in dontAsk", []string{"P-15"}, permission.Config{Mode: "dontAsk"}, deny, notHarmless},
		{"others ask in plan mode, even when allowed", []string{"P-10", "P-11"}, permission.Config{Mode: "plan", Allow: []string{"Bash", "Edit", "Read"}}, ask, `
			make
			ls > out
			echo x > a.txt
			rm a.txt
			git commit -m x`},
		{"deny rules hold", []string{"P-66", "B-037"}, permission.Config{Deny: []string{"Bash(ls:*)", "Bash(cat:*)", "Bash(cd:*)"}}, deny, `
			ls src
			ls /var/log/
			cat /etc/os-release
			cd /tmp
			ls
			echo $(cat a.txt)
			pwd; cd src`},
		{"ask rules hold", []string{"P-30", "P-66"}, permission.Config{Ask: []string{"Bash(git *)"}, Allow: []string{"Bash"}}, ask, `
			git status
			ls; git log`},
		{"bypassPermissions", []string{"P-17"}, permission.Config{Mode: "bypassPermissions", BypassAvailable: true}, allow, `
			make
			ls > /etc/x
			eval x
			ls &&`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.ids) > 0 {
				conform.Covers(t, c.ids...)
			}
			c.run(t)
		})
	}
}

func TestCommandRules(t *testing.T) {
	for _, c := range []commandCase{
		{"exact", []string{"P-54", "P-58"}, permission.Config{Allow: []string{"Bash(npm run build)", "Bash(make a  b)"}}, allow, `
			npm run build
			npm  run	build
			make a b
			cd src && npm run build
			npm run build 2>&1 | tail -5
			LANG=C npm run build
			timeout 10 npm run build
			n'p'm run build`},
		{"exact is exact", []string{"P-54", "P-62"}, permission.Config{Allow: []string{"Bash(npm run build)"}}, ask, `
			npm run build --x
			npm run builds
			npm run
			"npm run" build
			npm "run build"
			npm run build; make
			npm run build && make
			npm run build & make
			npm run build⏎make
			npm run build $(make)
			FOO=1 npm run build
			PATH=. npm run build
			env npm run build
			sudo npm run build
			./npm run build
			npm run build > /etc/x
			npm run build > $X
			npm run build > ~/x
			npm run build > *
			npm run build < /etc/shadow`},
		{"prefix", []string{"P-55", "P-56", "P-57"}, permission.Config{Allow: []string{"Bash(npm test:*)", "Bash(gox *)", "Bash(mk*)", "Bash(pip * install)"}}, allow, `
			npm test
			npm test -- --watch
			npm test && gox x
			gox
			gox build ./...
			mk
			mkx y
			pip a b install
			xargs gox
			npm test > out.log`},
		{"prefix ends at a word", []string{"P-56", "P-57", "P-63"}, permission.Config{Allow: []string{"Bash(npm test:*)", "Bash(gox *)"}}, ask, `
			npm tests
			goxx
			npm test; rm x
			npm test $(rm x)
			npm test | sh
			npm test <(rm x)
			LD_PRELOAD=x npm test
			NODE_OPTIONS=x npm test
			xargs -n 1 gox
			npm test > /etc/cron.d/x
			npm test > .git/hooks/pre-commit
			npm test >> $W/link/x`},
		{"a colon elsewhere is literal", []string{"P-57", "P-48"}, permission.Config{Allow: []string{"Bash(npm run a:b)", "Bash(git log:x *)"}}, allow, `
			npm run a:b
			git log:x y`},
		{"a chain is not its first command", []string{"P-59", "B-032"}, permission.Config{Allow: []string{"Bash(cd:*)"}}, ask, `
			cd /tmp && python3 x.py
			cd /tmp; python3 x.py
			cd /tmp | python3`},
		{"environment runners", []string{"P-64"}, permission.Config{Allow: []string{"Bash(npx:*)", "Bash(docker exec *)"}}, allow, `
			npx anything x
			docker exec box rm -rf /x`},
		{"never by a prefix", []string{"P-65"}, permission.Config{Allow: []string{"Bash(watch:*)", "Bash(setsid *)", "Bash(find *)", "Bash(flock:*)", "Bash(ionice:*)"}}, ask, `
			watch ls
			setsid x
			find . -exec rm {} +
			find . -name *.go -delete
			find . -delete
			flock f rm x
			ionice -c 3 x`},
		{"by an exact rule", []string{"P-65"}, permission.Config{Allow: []string{"Bash(watch ls)", "Bash(find . -delete)"}}, allow, `
			watch ls
			find . -delete`},
		{"always asked about", []string{"P-70", "P-71", "P-72"}, permission.Config{Allow: []string{"Bash", "Bash(eval *)", "Bash(source *)", "Edit"}}, ask, `
			eval ls
			source a.txt
			. ./a.txt
			exec ls
			trap ls EXIT
			f() { ls; }; f
			$X y
			$(echo ls) y
			timeout 5 $X
			bash <<E⏎ls⏎E
			sh <<< ls
			timeout 5 bash <<E⏎ls⏎E
			env sh <<< 'touch x'
			env sh <<E⏎touch x⏎E
			{ sh; } <<< 'touch x'
			{ sh; } <<E⏎touch x⏎E
			(cd src; bash) <<E⏎touch x⏎E
			setsid sh <<< ls
			while sh; do :; done <<< ls
			cat <<'E' | sh⏎ls⏎E
			bash -c 'eval ls'
			bash -c "eval $X"
			bash -c '. ./a.txt'
			bash -c '$X y'
			sudo bash -c 'exec ls'
			env -S'bash -c "eval ls"'
			bash -c 'echo "unclosed'
			bash -c 'ls # \⏎ls'
			echo "unclosed
			if true; then`},
		{"data of a here-document", []string{"P-72"}, permission.Config{Allow: []string{"Bash(python3 *)"}}, allow, `
			python3 - <<'E'⏎rm x; eval y⏎E`},
		{"a here-document in a substitution", []string{"P-60"}, permission.Config{Allow: []string{"Bash(git commit:*)"}}, allow, `
			git commit -m "$(cat <<'EOF'⏎fix: it's (a) thing⏎EOF⏎)"`},
		{"xargs is no way around the rule for find", []string{"P-65"}, permission.Config{Allow: []string{"Bash(find *)", "Bash(xargs find *)"}}, ask, `
			echo -delete | xargs find .`},
		{"after a here-document", []string{"B-050"}, permission.Config{Allow: []string{"Bash(cat *)"}, Deny: []string{"Bash(rm *)"}}, deny, `
			cat <<'E'⏎x⏎E⏎rm x
			cat <<-E⏎x⏎	E⏎rm x
			cat <<<x⏎rm x`},
		{"a star in a stored rule", []string{"B-042"}, permission.Config{Allow: []string{`Bash(grep -n "on.*x" a.html)`}}, ask, `
			grep -n "on" /etc/shadow
			grep -n "on.*x" a.html; id
			grep -n "on.*x" a.html | sh`},
		{"the command of that rule", []string{"B-042"}, permission.Config{Allow: []string{`Bash(grep -n "on.*x" a.html)`}}, allow, `grep -n "on.*x" a.html`},
		{"variables in an allowed command", []string{"B-043"}, permission.Config{Mode: "dontAsk", Allow: []string{"Bash(curl *)"}}, allow, `
			curl $API_URL
			curl $HOME/x
			curl "${API_URL:-x}"`},
		{"bare rules cover the rest", []string{"P-59", "P-73"}, permission.Config{Allow: []string{"Bash"}}, allow, `
			make; rm x && FOO=1 python3 x.py
			echo x > a.txt
			> new.txt
			{ make; } > log
			for f in *; do echo $((f+1)); done
			bash -c 'make; make install'
			cat > x.sh <<'E'⏎make⏎E
			cat > x.sh <<'E' && bash x.sh⏎make⏎E
			sudo tee x <<< y
			find . -name '* (1)' -exec touch {} +
			ssh host 'make; ls'
			echo y | sh x.sh
			sh -c "$X"`},
		{"but no file outside and no protected one", []string{"P-73", "P-108"}, permission.Config{Allow: []string{"Bash"}}, ask, `
			echo x > /etc/x
			echo x > $O/x
			echo x > link/x
			echo x > .git/config
			cd .. && echo x > y
			cd $X && echo x > y
			make > $OUT
			make 2> ~/err
			{ make; } > /etc/x`},
		{"Edit rules approve targets", []string{"P-73"}, permission.Config{Allow: []string{"Bash(make:*)", "Edit(/$O/**)"}}, allow, `
			make > $O/x
			make 2>> $O/sub/y`},
		{"read rules approve paths", []string{"P-74"}, permission.Config{Allow: []string{"Read(/$O/**)"}}, allow, `
			cat $O/o.txt
			cat < $O/o.txt
			grep x $O/o.txt a.txt`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.ids) > 0 {
				conform.Covers(t, c.ids...)
			}
			c.run(t)
		})
	}
}
