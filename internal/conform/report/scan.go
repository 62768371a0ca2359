package report

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/internal/conform"
)

// Proof is one place that names one requirement.
type Proof struct {
	ID      string
	Test    string // "loop.TestCaps/zero", "loop: scenarios/cap.txtar"
	Skipped bool   // the test is skipped without a condition: it proves nothing yet
	Pos     string // "internal/loop/caps_test.go:31"
}

const conformPath = "github.com/turnwright/turnwright/internal/conform"

// ScanTests reads every *_test.go below root, nested modules included, and
// returns what they name, ordered by id and test. Files that do not parse and
// Covers calls whose ids cannot be read from the source are errors.
func ScanTests(root string) ([]Proof, error) {
	var proofs []Proof
	scenarioDirs := map[string]string{} // directory → package name
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// The tests of the conform package itself play with made-up ids.
			if own := filepath.Join(root, "internal", "conform"); name == own || name != root && skipDir(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, scenarios, err := scanFile(filepath.ToSlash(rel), src)
		if err != nil {
			return err
		}
		proofs = append(proofs, found...)
		if scenarios {
			scenarioDirs[filepath.Dir(name)] = packageName(path.Dir(filepath.ToSlash(rel)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for dir, pkg := range scenarioDirs {
		found, err := scanScenarios(root, dir, pkg)
		if err != nil {
			return nil, err
		}
		proofs = append(proofs, found...)
	}
	slices.SortFunc(proofs, func(a, b Proof) int {
		if c := compareIDs(a.ID, b.ID); c != 0 {
			return c
		}
		if c := strings.Compare(a.Test, b.Test); c != 0 {
			return c
		}
		return strings.Compare(a.Pos, b.Pos)
	})
	return proofs, nil
}

// skipDir tells which directories hold no tests of ours: the ones that the go
// command ignores too.
func skipDir(base string) bool {
	return base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

// packageName is the name that a proof is listed under: the directory, short
// as people say it ("internal/loop" is "loop"), and unique in the repository.
func packageName(dir string) string {
	if dir == "." {
		return "turnwright"
	}
	return strings.TrimPrefix(dir, "internal/")
}

func scanFile(rel string, src []byte) (proofs []Proof, scenarios bool, err error) {
	if !bytes.Contains(src, []byte(conformPath)) {
		return nil, false, nil // spares parsing nine files in ten
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, rel, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, false, fmt.Errorf("reading tests: %w", err)
	}
	name := importName(file)
	if name == "" {
		return nil, false, nil
	}
	s := &fileScan{fset: fset, conform: name, pkg: packageName(path.Dir(rel))}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		s.top = fn
		s.walk(fn.Body, fn.Name.Name, false)
	}
	return s.proofs, s.scenarios, s.err
}

// importName returns the name under which file imports the conform package.
func importName(file *ast.File) string {
	for _, imp := range file.Imports {
		if p, _ := strconv.Unquote(imp.Path.Value); p != conformPath {
			continue
		}
		if imp.Name != nil {
			return imp.Name.Name
		}
		return "conform"
	}
	return ""
}

type fileScan struct {
	fset      *token.FileSet
	conform   string // local name of the conform import
	pkg       string
	top       *ast.FuncDecl
	proofs    []Proof
	scenarios bool
	err       error
}

// walk visits the statements of one function body. test is the name of the
// (sub)test they stand in; skipped tells that an enclosing test never gets there.
func (s *fileScan) walk(body *ast.BlockStmt, test string, skipped bool) {
	skipped = skipped || alwaysSkips(body)
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch {
		case s.isConform(call, "Covers"):
			s.covers(call, test, skipped)
			return false
		case s.isConform(call, "CoversFile"):
			s.scenarios = true
			return false
		}
		if sub, fn := subtest(call); fn != nil {
			name := test
			if sub != "" {
				name += "/" + sub
			}
			s.walk(fn.Body, name, skipped)
			return false
		}
		return true
	})
}

func (s *fileScan) isConform(call *ast.CallExpr, fn string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != fn {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == s.conform
}

// covers records the ids of one Covers call. Ids that are not written there as
// literals (a field of a table row) are looked for in the enclosing top-level
// function, where the table stands.
func (s *fileScan) covers(call *ast.CallExpr, test string, skipped bool) {
	pos := s.fset.Position(call.Pos())
	var ids []string
	literal := true
	for _, arg := range call.Args[min(1, len(call.Args)):] {
		if id, ok := stringLit(arg); ok {
			ids = append(ids, id)
		} else {
			literal = false
		}
	}
	if !literal {
		ids = append(ids, s.tableIDs()...)
	}
	if len(ids) == 0 && s.err == nil {
		s.err = fmt.Errorf("%s:%d: the ids of this Covers call are not string literals of %s",
			pos.Filename, pos.Line, s.top.Name.Name)
	}
	for _, id := range sortIDs(ids) {
		s.proofs = append(s.proofs, Proof{
			ID: id, Test: s.pkg + "." + test, Skipped: skipped,
			Pos: fmt.Sprintf("%s:%d", pos.Filename, pos.Line),
		})
	}
}

// tableIDs returns the string literals of the current top-level function that
// have the form of an id and are not arguments of a Covers call themselves.
func (s *fileScan) tableIDs() []string {
	var ids []string
	ast.Inspect(s.top, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && s.isConform(call, "Covers") {
			return false
		}
		if e, ok := n.(ast.Expr); ok {
			if id, ok := stringLit(e); ok && conform.Valid(id) {
				ids = append(ids, id)
			}
		}
		return true
	})
	return ids
}

// subtest recognises x.Run(name, func(…){…}); name is "" where it is not a literal.
func subtest(call *ast.CallExpr) (name string, fn *ast.FuncLit) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Run" || len(call.Args) != 2 {
		return "", nil
	}
	fn, ok = call.Args[1].(*ast.FuncLit)
	if !ok {
		return "", nil
	}
	name, _ = stringLit(call.Args[0])
	return strings.ReplaceAll(name, " ", "_"), fn
}

// alwaysSkips reports whether a statement of the body itself, under no
// condition, is a call of Skip, Skipf or SkipNow.
func alwaysSkips(body *ast.BlockStmt) bool {
	for _, stmt := range body.List {
		expr, ok := stmt.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := expr.X.(*ast.CallExpr)
		if !ok {
			continue
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			switch sel.Sel.Name {
			case "Skip", "Skipf", "SkipNow":
				return true
			}
		}
	}
	return false
}

func stringLit(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// scanScenarios reads the covers lines of all *.txtar files below dir/testdata.
func scanScenarios(root, dir, pkg string) ([]Proof, error) {
	var proofs []Proof
	data := filepath.Join(dir, "testdata")
	if _, err := os.Stat(data); err != nil {
		return nil, nil // scenarios made in the test itself: nothing to read
	}
	err := filepath.WalkDir(data, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".txtar") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		inData, err := filepath.Rel(data, name)
		if err != nil {
			return err
		}
		inRoot, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		for _, id := range sortIDs(conform.FileIDs(archiveComment(text))) {
			proofs = append(proofs, Proof{
				ID: id, Test: pkg + ": " + filepath.ToSlash(inData), Pos: filepath.ToSlash(inRoot),
			})
		}
		return nil
	})
	return proofs, err
}

// archiveComment returns what stands before the first "-- name --" line.
func archiveComment(text []byte) []byte {
	end := 0
	for line := range bytes.Lines(text) {
		trimmed := bytes.TrimRight(line, "\r\n")
		if bytes.HasPrefix(trimmed, []byte("-- ")) && bytes.HasSuffix(trimmed, []byte(" --")) {
			break
		}
		end += len(line)
	}
	return text[:end]
}
