package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// selection is the tests of one package that are new or changed.
type selection struct {
	module string // directory of its go.mod below the root, "." for the root module
	pkg    string // "./internal/loop", as seen from the module's directory
	tests  []string
}

func printChanged(out io.Writer, base string) error {
	root, err := git(".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if base == "" {
		if base, err = baseCommit(root); err != nil {
			return err
		}
	}
	selections, err := changedTests(root, base)
	if err != nil {
		return err
	}
	for _, s := range selections {
		fmt.Fprintf(out, "%s\t%s\t^(%s)$\n", s.module, s.pkg, strings.Join(s.tests, "|"))
	}
	return nil
}

// changedTests returns, package by package, the tests, fuzz targets and
// examples that are new or changed since base. Changed means that a line of
// the function is in the diff, or a line of something in the package's test
// files that it uses, directly or through others (a helper, a table), or, for
// a function that mentions testdata, a file there.
func changedTests(root, base string) ([]selection, error) {
	changes, err := changedFiles(root, base)
	if err != nil {
		return nil, err
	}
	byDir := map[string][]fileChange{}
	for _, c := range changes {
		byDir[c.testDir()] = append(byDir[c.testDir()], c)
	}
	var selections []selection
	for dir, changes := range byDir {
		if ignoredDir(dir) {
			continue
		}
		tests, err := changedInDir(root, dir, changes)
		if err != nil {
			return nil, err
		}
		if len(tests) == 0 {
			continue
		}
		module, err := moduleDir(root, dir)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(filepath.FromSlash(module), filepath.FromSlash(dir))
		if err != nil {
			return nil, err
		}
		pkg := "./" + filepath.ToSlash(rel)
		if rel == "." {
			pkg = "."
		}
		selections = append(selections, selection{module, pkg, tests})
	}
	slices.SortFunc(selections, func(a, b selection) int {
		return strings.Compare(a.module+"\x00"+a.pkg, b.module+"\x00"+b.pkg)
	})
	return selections, nil
}

// ignoredDir reports whether the go command does not look into dir.
func ignoredDir(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		if part == "testdata" || part == "vendor" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") && part != "." {
			return true
		}
	}
	return false
}

// moduleDir returns the directory of the nearest go.mod at or above dir.
func moduleDir(root, dir string) (string, error) {
	for at := dir; ; at = path.Dir(at) {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(at), "go.mod")); err == nil {
			return at, nil
		}
		if at == "." {
			return "", fmt.Errorf("no go.mod at or above %s", dir)
		}
	}
}

// declaration is one top-level name of a package's test files.
type declaration struct {
	name    string
	changed bool
	uses    map[string]bool // names that it mentions; "testdata" for a literal with that word
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Example)([^\p{Ll}].*)?$`)

func changedInDir(root, dir string, changes []fileChange) ([]string, error) {
	spans := map[string][]lineSpan{}
	data := &declaration{name: "testdata"}
	for _, c := range changes {
		if c.isTestData() {
			data.changed = true
		} else {
			spans[path.Base(c.name)] = c.spans
		}
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		return nil, err
	}
	decls := []*declaration{data}
	for _, file := range files {
		found, err := declarations(file, spans[filepath.Base(file)])
		if err != nil {
			return nil, err
		}
		decls = append(decls, found...)
	}
	spread(decls)
	var tests []string
	everything := slices.ContainsFunc(decls, func(d *declaration) bool { return d.changed && (d.name == "TestMain" || d.name == "init") })
	for _, d := range decls {
		if (d.changed || everything) && d.name != "TestMain" && testName.MatchString(d.name) {
			tests = append(tests, d.name)
		}
	}
	slices.Sort(tests)
	return slices.Compact(tests), nil
}

// spread marks everything that uses something changed, until nothing is added.
// Names are compared without types: a method counts as its bare name. That can
// select a test too many, never one too few.
func spread(decls []*declaration) {
	for again := true; again; {
		again = false
		changed := map[string]bool{}
		for _, d := range decls {
			changed[d.name] = changed[d.name] || d.changed
		}
		for _, d := range decls {
			if d.changed {
				continue
			}
			for name := range d.uses {
				if changed[name] {
					d.changed, again = true, true
					break
				}
			}
		}
	}
}

// declarations reads the top-level names of one test file.
func declarations(file string, spans []lineSpan) ([]*declaration, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var decls []*declaration
	add := func(node ast.Node, names ...string) {
		from, to := fset.Position(node.Pos()).Line, fset.Position(node.End()).Line
		changed := slices.ContainsFunc(spans, func(s lineSpan) bool { return s.touches(from, to) })
		uses := mentions(node)
		for _, name := range names {
			decls = append(decls, &declaration{name, changed, uses})
		}
	}
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			add(decl, decl.Name.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec, spec.Name.Name)
				case *ast.ValueSpec:
					names := make([]string, len(spec.Names))
					for i, n := range spec.Names {
						names[i] = n.Name
					}
					add(spec, names...)
				}
			}
		}
	}
	return decls, nil
}

func mentions(node ast.Node) map[string]bool {
	uses := map[string]bool{}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			uses[n.Name] = true
		case *ast.BasicLit:
			if n.Kind == token.STRING && strings.Contains(n.Value, "testdata") {
				uses["testdata"] = true
			}
		}
		return true
	})
	// A local variable named like a helper is rare; the blank name is not a name.
	delete(uses, "_")
	return uses
}
