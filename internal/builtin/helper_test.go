package builtin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// session is what the tests call tools in: a directory and the state of one
// session.
type session struct {
	t     testing.TB
	env   *tool.Env
	tools *tool.Registry
	vars  map[string]string
	blobs map[string][]byte
}

func newSession(t testing.TB) *session {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bash := NewBash(BashOptions{TempDir: t.TempDir(), Grace: 200 * time.Millisecond})
	t.Cleanup(func() {
		if err := bash.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &session{t: t, vars: map[string]string{"HOME": dir, "USERPROFILE": dir}, blobs: map[string][]byte{}}
	s.tools, err = tool.NewRegistry(NewRead(), NewEdit(), NewWrite(), NewNotebookEdit(), NewGlob(), NewGrep(), bash, NewTaskStop(bash), NewTaskOutput(bash))
	if err != nil {
		t.Fatal(err)
	}
	s.env = &tool.Env{
		Dir: dir, SessionID: "session-1", State: tool.NewState(nil),
		Getenv:  func(k string) string { return s.vars[k] },
		Environ: os.Environ,
		PutBlob: func(name string, data []byte) (string, error) {
			s.blobs[name] = append([]byte(nil), data...)
			return filepath.Join("/blobs", name), nil
		},
	}
	return s
}

// call runs a tool as the engine does: prepare, accesses, call.
func (s *session) call(name string, input any) (*tool.Result, error) {
	s.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err = s.tools.Prepare(s.env, name, raw)
	if err != nil {
		return nil, err
	}
	tl, _, _ := s.tools.Get(name)
	var accesses []permission.Access
	if a, ok := tl.(tool.Accesser); ok {
		if accesses, err = a.Accesses(raw); err != nil {
			return nil, err
		}
	}
	return tl.Call(s.t.Context(), &tool.Call{ID: "toolu_1", Key: "key-1", Name: name, Input: raw, Env: s.env, Approved: accesses})
}

// text calls a tool that must not fail and returns its text.
func (s *session) text(name string, input any) string {
	s.t.Helper()
	r, err := s.call(name, input)
	if err != nil {
		s.t.Fatalf("%s %v: %v", name, input, err)
	}
	if r.IsError {
		s.t.Fatalf("%s %v: error result %q", name, input, r.Content[0].Text())
	}
	return r.Content[0].Text()
}

// fails calls a tool that must fail with an error that has all the parts.
func (s *session) fails(name string, input any, parts ...string) {
	s.t.Helper()
	r, err := s.call(name, input)
	if err == nil {
		s.t.Errorf("%s %v: got %s, want an error", name, input, r.Content[0].Raw())
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			s.t.Errorf("%s %v: error %q lacks %q", name, input, err, p)
		}
	}
}

func (s *session) path(name string) string { return filepath.Join(s.env.Dir, name) }

func (s *session) write(name, content string) string {
	s.t.Helper()
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *session) content(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

type in = map[string]any

// judged prepares a call and judges it as a gate that allows what lies in the
// session's directory.
func (s *session) judged(name string, input any) (*tool.Call, bool) {
	s.t.Helper()
	raw, err := json.Marshal(input)
	if err == nil {
		raw, err = s.tools.Prepare(s.env, name, raw)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	tl, _, _ := s.tools.Get(name)
	accesses, err := tl.(tool.Accesser).Accesses(raw)
	if err != nil {
		return nil, false
	}
	for _, a := range accesses {
		if a.Target != s.env.Dir && !strings.HasPrefix(a.Target, s.env.Dir+string(filepath.Separator)) {
			return nil, false
		}
	}
	return &tool.Call{ID: "toolu_1", Key: "key-1", Name: name, Input: raw, Env: s.env, Approved: accesses}, true
}
