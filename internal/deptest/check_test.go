package deptest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// graph makes packages from lines "path: import import …"; a path below the
// project is written "./path", a module's package "module!path".
func graph(lines ...string) map[string]*pkg {
	pkgs := map[string]*pkg{}
	full := func(s string) string {
		if s == "." {
			return modulePath
		}
		if rest, ok := strings.CutPrefix(s, "./"); ok {
			return modulePath + "/" + rest
		}
		return s[strings.Index(s, "!")+1:]
	}
	for _, line := range lines {
		name, imports, _ := strings.Cut(line, ":")
		p := &pkg{ImportPath: full(name)}
		if module, _, ok := strings.Cut(name, "!"); ok {
			p.Module = &struct{ Path string }{module}
		}
		for _, imp := range strings.Fields(imports) {
			p.Imports = append(p.Imports, full(imp))
			p.Deps = append(p.Deps, full(imp))
		}
		pkgs[p.ImportPath] = p
	}
	return pkgs
}

func TestRulesCatchFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		pkgs map[string]*pkg
		want []string // beginnings of the faults, in order
	}{
		"all well": {graph(
			"./message:", "./internal/history: ./message fmt", "./internal/loop: ./message ./internal/history time",
			"./internal/engine: ./internal/loop ./model", ".: ./internal/engine ./message", "./cmd/turnwright: .",
			"./model: ./message", "./internal/conform/gen: ./internal/conform/report",
		), nil},
		"message knows nobody":            {graph("./message: ./model"), []string{"message imports model: "}},
		"loop does not know engine":       {graph("./internal/loop: ./internal/engine"), []string{"internal/loop imports internal/engine: "}},
		"engine does not know the root":   {graph("./internal/engine: ."), []string{"internal/engine imports .: "}},
		"provider does not know tool":     {graph("./model/anthropic: ./tool"), []string{"model/anthropic imports tool: "}},
		"new package":                     {graph("./internal/util:"), []string{"internal/util is in no rule"}},
		"conform in what users build":     {graph("./message: ./internal/conform"), []string{"message imports internal/conform: internal/conform is a development tool"}},
		"conform even from the command":   {graph("./cmd/turnwright: ./internal/conform"), []string{"cmd/turnwright imports internal/conform: internal/conform is a development tool"}},
		"loop does I/O":                   {graph("./internal/loop: net/http os encoding/json"), []string{"internal/loop depends on net/http", "internal/loop imports encoding/json", "internal/loop imports net/http", "internal/loop imports os"}},
		"chance below the loop":           {graph("./internal/loop: math/rand/v2"), []string{"internal/loop depends on math/rand/v2", "internal/loop imports math/rand/v2"}},
		"unknown module":                  {graph("example.com/x!example.com/x/y:", ".: example.com/x/y"), []string{". depends on example.com/x, which is not in modules"}},
		"heavy module":                    {graph("go.temporal.io/sdk!go.temporal.io/sdk/client:", "./cmd/turnwright: go.temporal.io/sdk/client"), []string{"cmd/turnwright depends on go.temporal.io/sdk: too heavy"}},
		"command's module in the library": {graph("github.com/spf13/cobra!github.com/spf13/cobra:", ".: github.com/spf13/cobra"), []string{". depends on github.com/spf13/cobra, which is for cmd/... only"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.Concat(layerFaults(tc.pkgs), banFaults(tc.pkgs), moduleFaults(tc.pkgs))
			slices.Sort(got)
			if len(got) != len(tc.want) {
				t.Fatalf("faults %q, want %q", got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("fault %q, want %q", got[i], want)
				}
			}
		})
	}
}

func TestBanExcept(t *testing.T) {
	dir := t.TempDir()
	for name, src := range map[string]string{
		"access.go": "package permission\n\nimport \"os\"\n",
		"other.go":  "package permission\n\nimport \"fmt\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pkgs := graph("./permission: fmt os")
	p := pkgs[modulePath+"/permission"]
	p.Dir, p.GoFiles, p.Deps = dir, []string{"access.go", "other.go"}, nil
	if got := banFaults(pkgs); len(got) != 0 {
		t.Errorf("faults %q for the file that may", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.go"), []byte("package permission\n\nimport \"os\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := banFaults(pkgs); len(got) != 1 || !strings.HasPrefix(got[0], "permission imports os: ") {
		t.Errorf("faults %q for another file", got)
	}
}

func TestImpurities(t *testing.T) {
	src := `package loop

import clk "time"

type s struct{ at clk.Time }

func f(c chan int) clk.Duration {
	go f(nil)
	select {}
	return clk.Since(clk.Time{}) + clk.Now().Sub(clk.Time{}).Round(clk.Second)
}
`
	got := impurities(t, "x.go", []byte(src))
	want := []string{"x.go:7: channel", "x.go:8: go statement", "x.go:9: select", "x.go:10: time.Since", "x.go:10: time.Now"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]+":") {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}
