package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
)

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
			coproc rm x
			ls # x\⏎rm x
			cat <<E⏎\⏎E⏎rm x⏎E
			{ sh; } <<< 'rm x'
			(sh) <<< 'rm x'
			env sh <<< 'rm x'
			setsid sh <<< 'rm x'
			sudo -u me bash -s <<< 'rm x'
			sudo -s <<< 'rm x'
			env -S'sh' <<< 'rm x'
			{ env sh; } <<E⏎rm x⏎E
			while read l; do sh -c "$l"; done <<< 'rm x'
			while read l; do $l; done <<< 'rm x'
			for i in 1; do if true; then sh; fi; done <<'E'⏎rm x⏎E
			f() { sh; }; f <<< 'rm x'
			exec <<< 'rm x'; sh
			. /dev/stdin <<< 'rm x'
			cat <<'E' | sh⏎rm x⏎E
			echo 'rm x' | sh
			printf '%s\n' 'rm x' | env bash
			cat > >(sh) <<< 'rm x'
			sh <<< 'sh <<< "rm x"'
			bash -c 'sh <<< "rm x"'`},
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
			env -S'rm x'
			env -iS'rm x'
			env --split-string='rm x'
			env -S'rm -f' x
			env -S'rm\_x'
			env -S 'timeout 5' rm x
			sudo env -S'rm x'
			su -c'rm x' me
			sh -c "rm $X"
			bash -c "cd $X; rm x"
			eval "rm $X"
			eval 'sh -c "rm x"'
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
			if true; then
			<&-rm echo a.txt
			ls # x\⏎r''m a.txt
			bash -c 'ls # x\⏎ls'
			bash -c 'echo "unclosed'`},
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
			ln .env x
			bash -c 'cat < .env'
			sh -c 'cd src; cat ../.env'
			env -S'cat .env'
			{ sh; } <<< 'cat .env'
			eval 'cat < .env'
			eval 'cd src'; cat ../.env
			xargs cat <<< .env
			echo .env | xargs -n 1 cat
			xargs cat <<E⏎a.txt⏎.env⏎E`},
		{"what may reach it is asked about", []string{"P-75"}, permission.Config{Deny: []string{"Read(.env)"}, Allow: []string{"Bash"}}, ask, `
			cat *
			cat .e*
			cat $X
			cat {.env,x}
			cat src/$X
			grep -r x .
			rg x
			cp -r . $O/x
			cd $X && cat a.txt
			ls -a | xargs cat
			ls -a | xargs -n 1 cat
			ls -a | parallel cat
			find . -name '.e*' -exec cat {} +
			bash -c "cat $X"`},
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
			dd of=src/b.go
			sh -c 'echo x > src/b.go'
			bash -c 'cd src && touch b.go'
			setsid sh <<< 'echo x > src/b.go'`},
		{"edit deny rules and names that are not in the text", []string{"P-75"}, permission.Config{Deny: []string{"Edit(/src/**)"}, Mode: "bypassPermissions", BypassAvailable: true}, ask, `
			ls | xargs rm
			find . -name '*.go' -exec rm {} +`},
		{"do not keep from reading", nil, permission.Config{Deny: []string{"Edit(/src/**)"}, Allow: []string{"Bash"}}, allow, `
			cat src/b.go
			cp src/b.go x
			bash -c 'cat < src/b.go'
			ls | xargs cat
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
			rm -rf $W
			echo ../out | xargs rm -rf src
			xargs mkdir x
			xargs touch a < a.txt`},
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
		rm -rf "$DIR"/work*
		D=; rm -rf "$D"/work*
		rm -rf $DIR/w?rk
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
		rm -rf -- /
		rm -rf "$(pwd)"
		rm -rf $(pwd)/
		rm -rf "$(git rev-parse --show-toplevel)"
		rm -rf "${HOME:?}"
		rm -rf ${HOME%/}
		rm -rf "${PWD:-x}"
		rm -rf $PWD/../project
		rm -rf "$X/.."
		rm -rf "$X"/../y
		bash -c 'cd ..; rm -rf project'
		bash -c "cd ..; rm -rf project"
		sh -c "rm -rf $HOME"
		sh -c "rm -rf '$HOME'"
		sh -c 'rm -rf $HOME'
		bash -c "cd $X; rm -rf ."
		eval 'rm -rf ../project'
		eval rm -rf ../project
		eval 'cd ..'; rm -rf project
		eval "cd ..;" rm -rf project
		env -S'rm -rf ../project'
		env -S'rm -rf' ../project
		env -S 'rm -rf' ../project
		{ sh; } <<< 'rm -rf ../project'
		(cd ..; sh) <<< 'rm -rf project'
		(sh) <<E⏎rm -rf ../project⏎E
		sh <<E⏎cd ..⏎rm -rf project⏎E
		while true; do sh; done <<< 'rm -rf ../project'
		echo 'rm -rf ../project' | sh
		trap 'rm -rf ../project' EXIT
		echo ../project | xargs rm -rf
		xargs -n 1 rm -rf <<< /
		env -C .. rm -rf project
		env --chdir=.. rm -rf project
		sudo -D .. rm -rf project
		bash -c "bash -c 'cd ..; rm -rf project'"
		echo hi # \⏎rm -rf ../project
		<&-rm -rf ../project
		cat <<E⏎\⏎E⏎rm -rf ../project⏎E
		bash -c 'echo hi # \⏎rm -rf ../project'`
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
				command := strings.ReplaceAll(w.fill(strings.TrimSpace(line)), "⏎", "\n")
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
		bash -c 'cd src; rm -rf deep'
		bash -c 'rm -rf build && make'
		sh -c "make $X"
		eval "$X"
		{ sh; } <<< 'rm -rf build'
		echo "unclosed
		cd src; eval 'rm -rf deep'
		echo .. | xargs ls
		echo build | xargs rm -rf
		env A=1 rm -rf build
		rm -rf $(cat list)
		rmdir src/deep`}
	t.Run(others.name, others.run)
}
