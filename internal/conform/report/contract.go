package report

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Class says how binding a requirement is.
type Class string

// The classes of the contract. A case from a user's report counts like a core
// requirement, but keeps its own class, so that the two are not added up.
const (
	Core     Class = "core"
	Extended Class = "ext"
	Host     Class = "host"
	Case     Class = "case"
)

// Requirement is one numbered line of the contract.
type Requirement struct {
	ID        string // "L-26", "B-161"
	Class     Class
	Statement string // the line's text behind id and class, Markdown
	Page      string // file name below docs/contract, "loop.md"
	Line      int    // 1-based
}

// Prefix returns the letter of the id.
func (r Requirement) Prefix() string { return r.ID[:1] }

// Contract is all requirements, page by page in the order of their lines.
type Contract struct {
	Requirements []Requirement
	byID         map[string]int
}

// Has reports whether the contract has the id.
func (c *Contract) Has(id string) bool {
	_, ok := c.byID[id]
	return ok
}

var (
	// Four forms are in use, one a page:
	//   - L-1 (core) text      - **K-1** (C) text
	//   - **T-1** core — text  | **O-9** | core | text |
	lineStart = regexp.MustCompile(`^(?:- |\| ?)\**([LMOSTPHCAWK]-[0-9]+)\b`)
	lineForm  = regexp.MustCompile(`^(- |\| ?)\**([LMOSTPHCAWK]-[0-9]+)\**\s*\|?\s*` +
		`(\((?:core|ext|host|C|X|H)\)|(?:core|extended|ext|host-specific|host|C|X|H)(?: py)?\s*[|—])\s*\|?\s*(.*)$`)
	caseForm = regexp.MustCompile(`^### (B-[0-9]{3}) \((?:low|medium|high|critical)\) (.+)$`)

	classOf = map[string]Class{
		"core": Core, "C": Core,
		"ext": Extended, "extended": Extended, "X": Extended,
		"host": Host, "host-specific": Host, "H": Host,
	}
)

// ReadContract reads every *.md page of dir. An id that stands twice, a line
// that starts with an id and has no class, and a page set without any
// requirement are errors that name page and line.
func ReadContract(dir fs.FS) (*Contract, error) {
	pages, err := fs.Glob(dir, "*.md")
	if err != nil {
		return nil, err
	}
	c := &Contract{byID: map[string]int{}}
	for _, page := range pages {
		text, err := fs.ReadFile(dir, page)
		if err != nil {
			return nil, fmt.Errorf("contract page: %w", err)
		}
		if err := c.addPage(page, string(text)); err != nil {
			return nil, err
		}
	}
	if len(c.Requirements) == 0 {
		return nil, fmt.Errorf("contract: no requirement in %d pages", len(pages))
	}
	return c, nil
}

func (c *Contract) addPage(page, text string) error {
	n := 0
	for line := range strings.Lines(text) {
		n++
		r, ok, err := parseLine(strings.TrimRight(line, "\r\n"))
		if err != nil {
			return fmt.Errorf("%s:%d: %w", page, n, err)
		}
		if !ok {
			continue
		}
		r.Page, r.Line = page, n
		if i, twice := c.byID[r.ID]; twice {
			first := c.Requirements[i]
			return fmt.Errorf("%s:%d: %s stands already at %s:%d", page, n, r.ID, first.Page, first.Line)
		}
		c.byID[r.ID] = len(c.Requirements)
		c.Requirements = append(c.Requirements, r)
	}
	return nil
}

func parseLine(line string) (r Requirement, ok bool, err error) {
	if m := caseForm.FindStringSubmatch(line); m != nil {
		return Requirement{ID: m[1], Class: Case, Statement: m[2]}, true, nil
	}
	start := lineStart.FindStringSubmatch(line)
	if start == nil {
		return Requirement{}, false, nil
	}
	m := lineForm.FindStringSubmatch(line)
	if m == nil {
		return Requirement{}, false, fmt.Errorf("%s has no class", start[1])
	}
	class, ok := classOf[strings.Trim(strings.TrimSuffix(strings.TrimRight(m[3], " |—"), " py"), "() ")]
	if !ok {
		return Requirement{}, false, fmt.Errorf("%s has the unknown class %q", start[1], m[3])
	}
	text := strings.TrimSpace(m[4])
	if strings.HasPrefix(m[1], "|") {
		text = joinCells(text)
	}
	return Requirement{ID: m[2], Class: class, Statement: text}, true, nil
}

// joinCells turns the rest of a table row into one text. `\|` stays inside a cell.
func joinCells(row string) string {
	const escaped = "\x00"
	row = strings.ReplaceAll(row, `\|`, escaped)
	var cells []string
	for cell := range strings.SplitSeq(row, "|") {
		if cell = strings.TrimSpace(cell); cell != "" {
			cells = append(cells, cell)
		}
	}
	return strings.ReplaceAll(strings.Join(cells, " · "), escaped, `|`)
}

// compareIDs orders "L-9" before "L-10" before "M-1".
func compareIDs(a, b string) int {
	pa, na := splitID(a)
	pb, nb := splitID(b)
	if pa != pb {
		return strings.Compare(pa, pb)
	}
	return na - nb
}

func splitID(id string) (prefix string, n int) {
	prefix, num, _ := strings.Cut(id, "-")
	n, _ = strconv.Atoi(num)
	return prefix, n
}

// sortIDs sorts ids and drops doubles.
func sortIDs(ids []string) []string {
	slices.SortFunc(ids, compareIDs)
	return slices.Compact(ids)
}
