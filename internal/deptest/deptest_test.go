package deptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/turnwright/turnwright"

// systems are checked one by one, for a file of one system may import what the
// others do not.
var systems = []string{"linux", "darwin", "windows"}

// pkg is what go list says about a package, without its tests.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
	Standard   bool
	Module     *struct{ Path string }
}

// own returns the path below the module's root, "." for the root, and whether
// the package is the project's.
func own(importPath string) (string, bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

// matches reports whether path fits pattern: equal, or below "x/...".
func matches(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return pattern == "*" || pattern == path
}

func anyMatches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

// list returns the project's packages and everything they stand on.
func list(t *testing.T, goos string) map[string]*pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,Deps,Standard,Module", "./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	pkgs := map[string]*pkg{}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		p := &pkg{}
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		pkgs[p.ImportPath] = p
	}
}

func TestDependencies(t *testing.T) {
	for _, goos := range systems {
		t.Run(goos, func(t *testing.T) {
			pkgs := list(t, goos)
			for _, fault := range slices.Concat(layerFaults(pkgs), banFaults(pkgs), moduleFaults(pkgs)) {
				t.Error(fault)
			}
		})
	}
}

func TestPurePackages(t *testing.T) {
	for _, path := range purePackages {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(path), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range impurities(t, path+"/"+filepath.Base(file), src) {
				t.Error(fault)
			}
		}
	}
}

// layerFaults holds every package of the project against the layers.
func layerFaults(pkgs map[string]*pkg) []string {
	var faults []string
	for _, p := range pkgs {
		path, ok := own(p.ImportPath)
		if !ok {
			continue
		}
		i := slices.IndexFunc(layers, func(l layer) bool { return matches(l.pkg, path) })
		if i < 0 {
			faults = append(faults, path+" is in no rule: add it to layers in internal/deptest/rules_test.go, with the reason for its place")
			continue
		}
		rule := layers[i]
		for _, imp := range p.Imports {
			target, ok := own(imp)
			if !ok || anyMatches(rule.may, target) && (!anyMatches(developmentTools, target) || anyMatches(developmentTools, path)) {
				continue
			}
			reason := rule.reason
			if anyMatches(developmentTools, target) {
				reason = target + " is a development tool and does not belong in what users build"
			}
			faults = append(faults, fmt.Sprintf("%s imports %s: %s", path, target, reason))
		}
	}
	slices.Sort(faults)
	return faults
}

// banFaults looks for forbidden imports from outside the project.
func banFaults(pkgs map[string]*pkg) []string {
	var faults []string
	for _, p := range pkgs {
		path, ok := own(p.ImportPath)
		if !ok {
			continue
		}
		for _, b := range bans {
			if !matches(b.pkg, path) {
				continue
			}
			imports, how := p.Imports, "imports"
			if b.deep {
				imports, how = p.Deps, "depends on"
			}
			for _, imp := range imports {
				if !anyMatches(b.imports, imp) || b.except != "" && onlyIn(p, b.except, imp) {
					continue
				}
				faults = append(faults, fmt.Sprintf("%s %s %s: %s", path, how, imp, b.reason))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// onlyIn reports whether file alone imports the package imp.
func onlyIn(p *pkg, files, imp string) bool {
	for _, name := range p.GoFiles {
		if slices.Contains(strings.Fields(files), name) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
		if err != nil {
			return false
		}
		for _, spec := range parsed.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); path == imp {
				return false
			}
		}
	}
	return true
}

// moduleFaults looks for modules outside the list, in the graphs of the
// library and of the command.
func moduleFaults(pkgs map[string]*pkg) []string {
	var faults []string
	for _, p := range pkgs {
		path, ok := own(p.ImportPath)
		if !ok || anyMatches(developmentTools, path) {
			continue
		}
		seen := map[string]bool{}
		for _, dep := range p.Deps {
			d := pkgs[dep]
			if d == nil || d.Standard || d.Module == nil || d.Module.Path == modulePath || seen[d.Module.Path] {
				continue
			}
			seen[d.Module.Path] = true
			if fault := moduleFault(path, d.Module.Path); fault != "" {
				faults = append(faults, fault)
			}
		}
	}
	slices.Sort(faults)
	return faults
}

func moduleFault(path, module string) string {
	for name, reason := range heavy {
		if matches(name+"/...", module) {
			return fmt.Sprintf("%s depends on %s: too heavy, %s", path, module, reason)
		}
	}
	for _, m := range modules {
		if m.path == module {
			if matches(m.users, path) {
				return ""
			}
			return fmt.Sprintf("%s depends on %s, which is for %s only: %s", path, module, m.users, m.reason)
		}
	}
	return fmt.Sprintf("%s depends on %s, which is not in modules in internal/deptest/rules_test.go: dependencies are counted, add it with its reason", path, module)
}

// clock is what package time offers beside values and arithmetic.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// impurities lists the uses of the clock and of goroutines in one file.
func impurities(t *testing.T, name string, src []byte) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	timeName := ""
	for _, spec := range file.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); path == "time" {
			if timeName = "time"; spec.Name != nil {
				timeName = spec.Name.Name
			}
		}
	}
	var faults []string
	add := func(n ast.Node, what string) {
		pos := fset.Position(n.Pos())
		faults = append(faults, fmt.Sprintf("%s:%d: %s: a pure package cannot be replayed with it; time comes in from outside", pos.Filename, pos.Line, what))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "go statement")
		case *ast.SelectStmt:
			add(n, "select")
		case *ast.ChanType:
			add(n, "channel")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && timeName != "" && x.Name == timeName && slices.Contains(clock, n.Sel.Name) {
				add(n, "time."+n.Sel.Name)
			}
		}
		return true
	})
	return faults
}
