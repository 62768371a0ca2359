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
		pushd src; cat a.txt`
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
			echo "unclosed
			if true; then`},
		{"data of a here-document", []string{"P-72"}, permission.Config{Allow: []string{"Bash(python3 *)"}}, allow, `
			python3 - <<'E'⏎rm x; eval y⏎E`},
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

func TestCommandDenyRules(t *testing.T) {
	many := []string{"Bash(rm *)"}
	for _, c := range []commandCase{
		{"anywhere in a chain", []string{"P-59", "B-031"}, permission.Config{Deny: []string{"Bash(git clean:*)"}, Allow: []string{"Bash"}}, deny, `
			git clean
			git fetch && git pull && git clean -fd
			npm run build; git clean -fd
			npm run build⏎git clean -fd
			x | git clean
			x & git clean`},
		{"nested", []string{"P-60", "P-72", "B-033"}, permission.Config{Deny: many, Allow: []string{"Bash", "Bash(echo *)"}}, deny, `
			echo $(rm x)
			echo ` + "`rm x`" + `
			echo "$(rm x)"
			(rm x)
			{ rm x; }
			eval "rm x"
			eval rm x
			if true; then rm x; fi
			if rm x; then :; fi
			for i in 1; do rm x; done
			for i in $(rm x); do :; done
			while rm x; do :; done
			case $(rm x) in a) :;; esac
			case a in a) rm x;; esac
			cat <(rm x)
			cat <<E⏎$(rm x)⏎E
			x=$(rm x)
			export x=$(rm x)
			[[ -n $(rm x) ]]
			echo ${x:-$(rm x)}
			echo $(( $(rm x) ))
			f() { rm x; }
			! rm x
			time rm x
			a=( $(rm x) )
			trap "rm x" EXIT
			bash <<E⏎rm x⏎E
			sh <<< "rm x"
			coproc rm x`},
		{"wrapped", []string{"P-61", "P-62", "B-035"}, permission.Config{Deny: many, Allow: []string{"Bash"}}, deny, `
			A=1 rm x
			PATH=. rm x
			timeout 5 rm x
			nice rm x
			nice -n 5 nohup rm x
			env rm x
			env -i A=1 rm x
			xargs rm x
			xargs -n 1 rm x
			sudo rm x
			sudo -u me -- rm x
			doas rm x
			/bin/rm x
			sudo /bin/rm x
			\rm x
			'rm' x
			r''m x
			$'\x72m' x
			$'\162m' "x"
			busybox rm x
			sh -c "rm x"
			bash -lc 'cd y && rm x'
			sudo sh -c "rm x"
			su -c "rm x" me
			setsid rm x
			flock f rm x
			flock f -c "rm x"
			watch rm x
			watch 'rm x'
			script -c 'rm x'
			parallel rm x
			nsenter -t 1 rm x
			find . -exec rm {} \;
			find . -execdir rm {} +
			exec rm x
			command rm x
			builtin rm x
			env -S 'rm x'
			sh -c 'sh -c "rm x"'
			rm	x
			rm "-rf" x`},
		{"both sides", []string{"B-038"}, permission.Config{Deny: []string{"Bash(*gcloud*)"}, Allow: []string{"Bash(*)"}, Mode: "dontAsk"}, deny, `
			gcloud -h
			gcloud
			FOO=1 gcloud x`},
		{"pipelines", []string{"B-047"}, permission.Config{Deny: []string{"Bash(curl *| bash)"}, Allow: []string{"Bash"}}, deny, `
			curl x | bash
			cd y && curl x | bash
			(curl  x  |  bash)`},
		{"in every mode", []string{"P-29", "B-038"}, permission.Config{Deny: many, Mode: "bypassPermissions", BypassAvailable: true}, deny, `
			rm x
			ls; rm x`},
		{"what cannot be read is asked about, in every mode", []string{"P-70"}, permission.Config{Deny: many, Mode: "bypassPermissions", BypassAvailable: true}, ask, `
			echo "unclosed
			if true; then`},
		{"a rough look at what cannot be read", nil, permission.Config{Deny: many, Allow: []string{"Bash"}}, deny, `
			rm x; echo "unclosed
			if true; then rm x`},
		{"not what is only like it", nil, permission.Config{Deny: many, Allow: []string{"Bash"}}, allow, `
			rmdir x
			echo "rm x"
			echo rm x
			grep 'rm x' a.txt
			charm x`},
		{"root deletion", []string{"P-110", "P-111", "B-036"}, permission.Config{Deny: []string{"Bash(rm -rf /:*)"}, Mode: "dontAsk"}, deny, `
			rm -rf /
			rm -fr /
			rm -rfv /
			rm --recursive --force /`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.ids) > 0 {
				conform.Covers(t, c.ids...)
			}
			c.run(t)
		})
	}
}

func TestPathRulesInCommands(t *testing.T) {
	for _, c := range []commandCase{
		{"read deny rules", []string{"P-75"}, permission.Config{Deny: []string{"Read(.env)"}, Allow: []string{"Bash"}}, deny, `
			cat .env
			cat ./.env
			cat $W/.env
			cat src/../.env
			head -1 .env
			grep x .env
			sort < .env
			cp .env x
			mv .env x
			dd if=.env of=x
			sudo cat .env
			sh -c 'cat .env'
			echo $(cat .env)
			cat ".env"
			tee .env
			echo x > .env
			cd src && cat .env
			sed -n p .env
			ln .env x`},
		{"what may reach it is asked about", []string{"P-75"}, permission.Config{Deny: []string{"Read(.env)"}, Allow: []string{"Bash"}}, ask, `
			cat *
			cat .e*
			cat $X
			cat {.env,x}
			cat src/$X
			grep -r x .
			rg x
			cp -r . $O/x
			cd $X && cat a.txt`},
		{"and in bypassPermissions", []string{"P-75"}, permission.Config{Deny: []string{"Read(.env)"}, Mode: "bypassPermissions", BypassAvailable: true}, ask, `cat $X`},
		{"what cannot", nil, permission.Config{Deny: []string{"Read(/secret/x)"}, Allow: []string{"Bash"}}, allow, `
			cat a.txt
			cat src/*
			grep -r x src
			make $X
			echo *`},
		{"edit deny rules", []string{"P-75"}, permission.Config{Deny: []string{"Edit(/src/**)"}, Allow: []string{"Bash"}}, deny, `
			rm src/b.go
			touch src/new
			cp a.txt src/x
			mv a.txt src/x
			mv src/b.go x
			echo x > src/b.go
			echo x | tee src/b.go
			sed -i s/a/b/ src/b.go
			mkdir src/y
			ln -s x src/z
			truncate -s 0 src/b.go
			sudo tee src/b.go
			dd of=src/b.go`},
		{"do not keep from reading", nil, permission.Config{Deny: []string{"Edit(/src/**)"}, Allow: []string{"Bash"}}, allow, `
			cat src/b.go
			cp src/b.go x
			ls src`},
		{"ask rules", []string{"P-88"}, permission.Config{Ask: []string{"Read(//etc/**)"}, Allow: []string{"Bash"}}, ask, `
			cat /etc/passwd
			cat < /etc/passwd`},
		{"a bare deny of Read", []string{"P-74"}, permission.Config{Deny: []string{"Read"}}, ask, `cat a.txt`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.ids) > 0 {
				conform.Covers(t, c.ids...)
			}
			c.run(t)
		})
	}
}

func TestAcceptEditsCommands(t *testing.T) {
	c := permission.Config{Mode: "acceptEdits"}
	for _, c := range []commandCase{
		{"file commands", []string{"P-8", "O-49"}, c, allow, `
			mkdir -p src/x/y
			touch a b src/c
			rm a.txt
			rm -rf src/deep
			rmdir src/deep
			mv a.txt b.txt
			cp -r src src2
			sed -i 's/a/b/g' a.txt
			sed -i -e s/a/b/ -e 2d a.txt
			LANG=C timeout 5 mkdir x
			cd src && touch y && ls
			nice rm a.txt`},
		{"that name more than it can tell", []string{"P-8"}, c, ask, `
			rm *
			rm $X
			rm {a,b}
			rm "$(echo a)"
			mkdir ~/x
			sed -i 's/a/b/w f' a.txt
			sed -i 's/a/b/e' a.txt
			sed -i '1e id' a.txt
			sed -i '1w f' a.txt
			sed -i -f script a.txt
			sed -i '' s/a/b/ a.txt
			sed -i $X a.txt
			X=1 rm a.txt
			sudo rm a.txt
			cd $X; rm a.txt`},
		{"outside, protected, others", []string{"P-9", "P-98"}, c, ask, `
			rm $O/o.txt
			rm ../x
			rm link/o.txt
			cp a.txt $O/x
			cp $O/o.txt x
			touch .git/config
			rm -r .git
			mv a.txt .bashrc
			mkdir .vscode
			make
			chmod +x a.txt
			touch a; make
			ln -s a b
			tee a.txt
			echo x > a.txt
			cp --target-directory=/etc a.txt
			rm -rf .
			rm -rf $W`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.ids) > 0 {
				conform.Covers(t, c.ids...)
			}
			c.run(t)
		})
	}
}

func TestCriticalRemovals(t *testing.T) {
	const targets = `
		rm -rf /
		rm -rf //
		rm -rf /.
		rm -rf /*
		rm -rf /etc
		rm -r /home/
		rmdir /usr
		rm -rf ~
		rm -rf ~/
		rm -rf ~/*
		rm -rf %H
		rm -rf "$HOME"
		rm -rf ${HOME}/
		rm -rf .
		rm -rf ./
		rm -rf ..
		rm -rf ../*
		rm -rf $W
		rm -rf $W/..
		rm -rf $W/src/..
		rm -rf $O/extra/*
		rm -rf $O/*
		rm -rf "$DIR"/*
		rm -rf $DIR/
		rm -rf $DIR/*
		rm -rf ${DIR}*
		rm -rf "$DIR/"*
		rm -rf "$DIR/"
		rm -rf {/,x}
		cd / && rm -rf *
		cd .. ; rm -rf project
		cd $X && rm -rf *
		echo $(rm -rf /)
		cat <(rm -rf ~)
		ls; rm -rf / ; ls
		sudo rm -rf /
		sh -c 'rm -rf /'
		/bin/rm -rf /
		timeout 5 rm -rf /
		X=1 rm -rf /
		find . -exec rm -rf / \;
		rm -rf -- /`
	extra := func(c permission.Config) permission.Config { return c }
	for name, c := range map[string]struct {
		config permission.Config
		want   permission.Behavior
		ids    []string
	}{
		"asked about though allowed":    {permission.Config{Allow: []string{"Bash", "Bash(rm:*)"}}, ask, []string{"P-110", "P-111", "P-112"}},
		"and in bypassPermissions":      {permission.Config{Mode: "bypassPermissions", BypassAvailable: true}, ask, []string{"P-17", "P-111"}},
		"and in acceptEdits":            {permission.Config{Mode: "acceptEdits"}, ask, []string{"P-9", "P-111"}},
		"and in plan with bypass":       {permission.Config{Mode: "plan", BypassAvailable: true}, ask, []string{"P-14", "P-111"}},
		"denied in dontAsk":             {permission.Config{Mode: "dontAsk", Allow: []string{"Bash"}}, deny, []string{"P-111"}},
		"denied by a rule all the same": {permission.Config{Deny: []string{"Bash(*rm *)", "Bash(*rmdir *)"}, Mode: "bypassPermissions", BypassAvailable: true}, deny, []string{"P-111"}},
	} {
		t.Run(name, func(t *testing.T) {
			conform.Covers(t, c.ids...)
			w := newWorld(t)
			more := filepath.Join(w.outside, "extra")
			if err := os.Mkdir(more, 0o755); err != nil {
				t.Fatal(err)
			}
			config := extra(c.config)
			config.Dirs = []string{more}
			p := w.policy(t, config)
			for _, line := range strings.Split(strings.TrimSpace(targets), "\n") {
				command := w.fill(strings.TrimSpace(line))
				if d := p.Decide(bash(command)); d.Behavior != c.want {
					t.Errorf("%q: got %s (%s), want %s", command, d.Behavior, d.Reason, c.want)
				}
			}
		})
	}
	others := commandCase{"others are not critical", nil, permission.Config{Mode: "bypassPermissions", BypassAvailable: true}, allow, `
		rm -rf build
		rm -rf ./src/deep
		rm -rf *
		rm -rf *.o
		rm -rf src/*
		rm -rf $DIR/build
		rm -rf "$DIR"
		rm -rf /usr/local/x
		rm -rf $O/x
		rm -rf ~/x
		echo rm -rf build
		rmdir src/deep`}
	t.Run(others.name, others.run)
}
