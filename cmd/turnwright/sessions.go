package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// listed is a session in the JSON form of the listing, with the names that the
// clients' session functions use.
type listed struct {
	SessionID    string `json:"sessionId"`
	Summary      string `json:"summary"`
	LastModified int64  `json:"lastModified"` // ms since the Unix epoch
	FileSize     int64  `json:"fileSize"`
	CustomTitle  string `json:"customTitle,omitempty"`
	FirstPrompt  string `json:"firstPrompt,omitempty"`
	GitBranch    string `json:"gitBranch,omitempty"`
	CWD          string `json:"cwd,omitempty"`
	Tag          string `json:"tag,omitempty"`
	CreatedAt    int64  `json:"createdAt,omitempty"` // ms since the Unix epoch
}

// sessionsOptions are the flags of the listing.
type sessionsOptions struct{ json, all, help bool }

func (o *sessionsOptions) set() *pflag.FlagSet {
	fs := pflag.NewFlagSet("turnwright sessions", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.json, "json", false, "print a JSON array")
	fs.BoolVar(&o.all, "all", false, "of all directories")
	fs.BoolVarP(&o.help, "help", "h", false, "print this help")
	return fs
}

// runSessions lists the sessions of the directory, or of all with --all.
func runSessions(args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	var o sessionsOptions
	fs := o.set()
	if err := fs.Parse(args); err != nil {
		return fail(err)
	}
	switch {
	case o.help:
		fmt.Fprintf(stdout, "Usage: turnwright sessions [--all] [--json]\n\nLists the sessions of the working directory and of the other worktrees of its\nrepository, the last changed first.\n\nFlags:\n%s", fs.FlagUsages())
		return 0
	case fs.NArg() > 0:
		return fail(fmt.Errorf("unexpected argument %q", fs.Arg(0)))
	}
	found, err := sessions(context.Background(), o.all)
	if err != nil {
		return fail(err)
	}
	if o.json {
		raw, err := json.MarshalIndent(found, "", "  ")
		if err != nil {
			return fail(err)
		}
		_, err = stdout.Write(append(raw, '\n'))
		if err != nil {
			return fail(err)
		}
		return 0
	}
	if len(found) == 0 {
		fmt.Fprintln(stderr, "No sessions here. --all lists those of other directories.")
		return 0
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, s := range found {
		where := s.GitBranch
		if o.all {
			where = s.CWD
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.SessionID, time.UnixMilli(s.LastModified).Format("2006-01-02 15:04"), oneLine(s.Summary, 60), where)
	}
	if err := w.Flush(); err != nil {
		return fail(err)
	}
	return 0
}

func sessions(ctx context.Context, all bool) ([]listed, error) {
	store, err := file.New(file.Config{})
	if err != nil {
		return nil, err
	}
	dir := ""
	if !all {
		if dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	infos, err := store.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	out := []listed{}
	for _, info := range infos {
		head, tail, err := store.Ends(ctx, info, session.SummaryBytes)
		if errors.Is(err, session.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		s := session.Summarize(head, tail)
		if !s.Listed() {
			continue
		}
		l := listed{
			SessionID: info.ID, Summary: s.Text, LastModified: info.Modified.UnixMilli(), FileSize: info.Size,
			CustomTitle: s.Title, FirstPrompt: s.FirstPrompt, GitBranch: s.GitBranch, CWD: s.CWD, Tag: s.Tag,
		}
		if !s.Created.IsZero() {
			l.CreatedAt = s.Created.UnixMilli()
		}
		out = append(out, l)
	}
	return out, nil
}

// oneLine cuts a text to n characters for a table; control characters, which
// could move a terminal's cursor, become blanks.
func oneLine(s string, n int) string {
	clean := []rune(s)
	for i, r := range clean {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			clean[i] = ' '
		}
	}
	if len(clean) > n {
		return string(clean[:n-1]) + "…"
	}
	return string(clean)
}
