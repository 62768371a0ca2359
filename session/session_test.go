package session_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
)

func TestParseID(t *testing.T) {
	conform.Covers(t, "S-4", "K-282")
	const id = "6f2c1a34-0b5d-4e8f-9a7b-c1d2e3f40516"
	for in, want := range map[string]string{
		id: id, strings.ToUpper(id): id,
		"00000000-0000-0000-0000-000000000000": "00000000-0000-0000-0000-000000000000",
		"":                                     "", "../x": "", id + " ": "", " " + id[1:]: "", "{" + id + "}": "", strings.ReplaceAll(id, "-", ""): "",
		strings.ReplaceAll(id, "-", "_"): "", id[:35] + "g": "", id[:35] + "/": "", id[1:] + "-": "",
	} {
		got, err := session.ParseID(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParseID(%q) = %q, %v", in, got, err)
		}
		if bad, ok := errors.AsType[*session.IDError](err); err != nil && (!ok || bad.ID != in) {
			t.Errorf("ParseID(%q): error %v", in, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9a-fA-Fg-]{36}`), rapid.Just(uuid.NewString())).Draw(t, "id")
		got, err := session.ParseID(id)
		parsed, uerr := uuid.Parse(id)
		if good := uerr == nil && len(id) == 36; good != (err == nil) || good && got != parsed.String() {
			t.Fatalf("ParseID(%q) = %q, %v", id, got, err)
		}
	})
}

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&session.IDError{ID: "../x"}, `session id "../x" is not a UUID (want 8-4-4-4-12 hexadecimal digits)`},
		{&session.LineError{Line: 3, Err: errors.New("unexpected end of JSON input")}, "line 3 is not readable: unexpected end of JSON input"},
		{&session.LineError{Line: 1}, "line 1 is not readable"},
		{&session.LockedError{ID: "x", Holder: "process 12 on host"}, "session x is in use by process 12 on host"},
		{&session.IOError{Op: "write", Path: "/f", Code: "ENOSPC", Err: errors.New("disk is full")}, "write /f: disk is full (ENOSPC)"},
		{&session.IOError{Op: "read", Path: "/f", Err: errors.New("no")}, "read /f: no"},
		{&session.SyncError{Err: errors.New("no")}, "lines are written but may be lost with the power: no"},
		{&session.OptionError{Field: "OpenOptions.Dir", Value: "x", Reason: "must be an absolute path"}, `session: OpenOptions.Dir "x" must be an absolute path`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%T: %q, want %q", c.err, got, c.want)
		}
	}
	deep := fmt.Errorf("turn: %w", &session.SyncError{Err: &session.IOError{Err: syscall.EIO}})
	if !errors.Is(deep, syscall.EIO) {
		t.Error("the system's error is not found")
	}
}

func TestCheckLine(t *testing.T) {
	for line, good := range map[string]bool{
		`{}`: true, ` {"a":1} `: true, "{\"a\":1}\r": true,
		``: false, `[]`: false, `1`: false, `"x"`: false, `null`: false, `{`: false, `{}{}`: false, "\x00": false, `x`: false,
	} {
		if err := session.CheckLine([]byte(line)); (err == nil) != good {
			t.Errorf("CheckLine(%q) = %v", line, err)
		}
	}
}
