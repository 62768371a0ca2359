//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/agenttest"
)

// line is one line of the command, decoded.
type line map[string]any

// word is the line's type, with a slash before the subtype.
func (l line) word() string {
	word := l.str("type")
	for _, path := range []string{"subtype", "request.subtype", "response.subtype"} {
		if sub := l.str(path); sub != "" {
			return word + "/" + sub
		}
	}
	return word
}

// at is the value at a path of keys, "message.content"; nil: there is none.
func (l line) at(path string) any {
	var v any = map[string]any(l)
	for key := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func (l line) str(path string) string {
	s, _ := l.at(path).(string)
	return s
}

func (l line) has(path string) bool {
	key, rest, deeper := strings.Cut(path, ".")
	v, ok := l[key]
	if !deeper || !ok {
		return ok
	}
	m, ok := v.(map[string]any)
	return ok && line(m).has(rest)
}

// blocks are the content blocks of the line's message.
func (l line) blocks() (all []line) {
	list, _ := l.at("message.content").([]any)
	for _, b := range list {
		if m, ok := b.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// dialog is a client at the other end of the command: it writes lines and
// reads them, one after the other.
type dialog struct {
	*process
	in  io.WriteCloser
	out *bufio.Reader
	all []line // read so far
}

func talk(t *testing.T, srv *agenttest.Server, args ...string) *dialog {
	t.Helper()
	d := &dialog{process: streaming(t, srv, args...)}
	in, err := d.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.in, d.out = in, bufio.NewReader(out)
	return d
}

// begin starts the command.
func (d *dialog) begin() *dialog {
	d.t.Helper()
	if err := d.Start(); err != nil {
		d.t.Fatal(err)
	}
	stuck := time.AfterFunc(time.Minute, func() { _ = d.Process.Kill() })
	d.t.Cleanup(func() { stuck.Stop() })
	return d
}

func (d *dialog) send(format string, a ...any) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, fmt.Sprintf(format, a...)+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

func (d *dialog) user(text string) {
	d.t.Helper()
	d.send(`{"type":"user","message":{"role":"user","content":%q}}`, text)
}

// next reads a line; nil at the end.
func (d *dialog) next() line {
	d.t.Helper()
	text, err := d.out.ReadString('\n')
	if errors.Is(err, io.EOF) && text == "" {
		return nil
	}
	var l line
	if err == nil {
		err = json.Unmarshal([]byte(text), &l)
	}
	if err != nil {
		d.t.Fatalf("%v in the line %.200q\n%s", err, text, &d.stderr)
	}
	d.all = append(d.all, l)
	return l
}

// until reads to a line of the type.
func (d *dialog) until(word string) line {
	d.t.Helper()
	for {
		l := d.next()
		if l == nil {
			d.t.Fatalf("no line %s after %q\n%s", word, d.words(), &d.stderr)
		}
		if l.word() == word {
			return l
		}
	}
}

// result reads to the end of the turn.
func (d *dialog) result() line {
	d.t.Helper()
	for {
		l := d.next()
		if l == nil {
			d.t.Fatalf("no result after %q\n%s", d.words(), &d.stderr)
		}
		if l.str("type") == "result" {
			return l
		}
	}
}

// finish ends the input, reads the rest and expects the exit code, and nothing
// on stderr.
func (d *dialog) finish(code int) {
	d.t.Helper()
	if err := d.in.Close(); err != nil {
		d.t.Error(err)
	}
	for d.next() != nil {
	}
	if got := d.end(); got != code || d.stderr.Len() > 0 {
		d.t.Errorf("exit code %d, want %d; stderr %q", got, code, &d.stderr)
	}
}

func (d *dialog) words() (words []string) {
	for _, l := range d.all {
		words = append(words, l.word())
	}
	return words
}

// transcript are the lines of the only session that the command has stored.
func (p *process) transcript() (all []line) {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.Dir, "config", "projects", "*", "*.jsonl"))
	if err != nil || len(found) != 1 {
		p.t.Fatalf("transcripts %q, %v", found, err)
	}
	raw, err := os.ReadFile(found[0])
	if err != nil {
		p.t.Fatal(err)
	}
	for text := range strings.Lines(string(raw)) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil || !strings.HasSuffix(text, "\n") {
			p.t.Fatalf("%v in the stored line %q", err, text)
		}
		all = append(all, l)
	}
	return all
}
