package agenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// TB is the part of testing.TB that a server uses.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Server is a running scripted server. Its methods are safe for concurrent use.
type Server struct {
	config config
	listen net.Listener
	http   *http.Server
	client *http.Client
	closed chan struct{}
	active sync.WaitGroup // Serve, connections and handlers
	stop   sync.Once

	ids    idSource
	count  atomic.Int64
	echo   *echo
	paused pausedTexts

	mu       sync.Mutex
	requests []*Request
	recorded int // bytes of the bodies in requests
}

// recordLimit is how many bytes of bodies are kept without KeepRequests. Each
// request repeats the whole conversation, so a run without an end would fill
// the memory of the machine in less than a minute.
const recordLimit = 1 << 30

// NewServer starts a server that the test closes at its end. Its arguments are
// sources, steps (each a source that answers once) and settings, in any order:
//
//	NewServer(t, Call("Bash", `{"command":"ls"}`), Text("Done."), StrictEcho())
//
// An invalid request, a request without an answer and a failed Check fail the
// test.
func NewServer(t TB, options ...Option) *Server {
	t.Helper()
	s, err := start(t, options)
	if err != nil {
		t.Fatalf("agenttest: %v", err)
		return nil
	}
	t.Cleanup(s.Close)
	return s
}

// Start is NewServer without a test: what would fail the test only shows in
// the answers and in Problems. Close ends the server.
func Start(options ...Option) (*Server, error) { return start(nil, options) }

func start(t TB, options []Option) (*Server, error) {
	s := &Server{closed: make(chan struct{})}
	s.config.t = t
	s.config.keep, s.config.room = -1, recordLimit
	for _, o := range options {
		if o != nil {
			o.apply(&s.config)
		}
	}
	if s.config.strictEcho {
		s.echo = newEcho()
	}
	transport := &http.Transport{DisableCompression: true}
	if s.config.memory {
		l := newPipeListener()
		s.listen = l
		transport.DialContext = l.dial
	} else {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("listen on loopback: %w", err)
		}
		s.listen = l
	}
	s.client = &http.Client{Transport: transport}
	s.http = &http.Server{Handler: s, ConnState: s.connState, ErrorLog: discardLog()}
	s.active.Go(func() {
		// Serve always ends with an error: ErrServerClosed after Close.
		_ = s.http.Serve(s.listen)
	})
	return s, nil
}

// connState counts connections, so that Close can wait for their goroutines.
func (s *Server) connState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.active.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.active.Done()
	}
}

// URL is the base URL, for ANTHROPIC_BASE_URL.
func (s *Server) URL() string { return "http://" + s.listen.Addr().String() }

// Client is an HTTP client that reaches the server. With InMemory only this
// client does. It keeps no connection after Close.
func (s *Server) Client() *http.Client { return s.client }

// Close ends every request, closes all connections and waits until nothing of
// the server is left. It may be called more than once.
func (s *Server) Close() {
	s.stop.Do(func() {
		close(s.closed)
		s.client.CloseIdleConnections()
		// The error is that of the listener, which nothing can be done about.
		_ = s.http.Close()
	})
	s.active.Wait()
}

// Count is the number of requests to the Messages endpoint so far, refused
// ones included.
func (s *Server) Count() int { return int(s.count.Load()) }

// Requests are the recorded requests in order of arrival, refused ones included.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Last is the newest recorded request, nil before the first.
func (s *Server) Last() *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		return nil
	}
	return s.requests[len(s.requests)-1]
}

// Problems are the requests that were refused as invalid, had no answer or
// failed a Check, as one error; nil when there was none.
func (s *Server) Problems() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.config.problems...)
}

func (s *Server) problem(format string, args ...any) {
	s.mu.Lock()
	s.config.problems = append(s.config.problems, fmt.Errorf("agenttest: "+format, args...))
	s.mu.Unlock()
	if s.config.t != nil {
		s.config.t.Errorf("agenttest: "+format, args...)
	}
}

// ServeHTTP answers one request, so that a server can also be mounted elsewhere.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := readBody(req)
	if err != nil {
		return // the client left while sending
	}
	switch req.URL.Path {
	case "/v1/messages":
	case "/v1/messages/count_tokens":
		s.countTokens(w, req, body)
		return
	default:
		s.fail(w, &apiError{"not_found_error", "Not Found: " + req.Method + " " + req.URL.Path}, http.StatusNotFound)
		return
	}
	if req.Method != http.MethodPost {
		s.fail(w, &apiError{"invalid_request_error", "Method Not Allowed"}, http.StatusMethodNotAllowed)
		return
	}
	r := &Request{Number: int(s.count.Add(1)), Time: time.Now(), Path: req.URL.Path, Header: req.Header, Body: body}
	r.Err = s.validate(r)
	if !s.record(r) {
		s.problem("request %d was refused: the requests recorded so far fill %d bytes; does the script ever end? A long run needs KeepRequests", r.Number, s.config.room)
		s.fail(w, &apiError{"invalid_request_error", "agenttest: the record is full"}, http.StatusBadRequest)
		return
	}
	s.respond(w, req, r)
}

func readBody(req *http.Request) ([]byte, error) {
	if n := req.ContentLength; n > 0 {
		body := make([]byte, n)
		_, err := io.ReadFull(req.Body, body)
		return body, err
	}
	return io.ReadAll(req.Body)
}

func (s *Server) validate(r *Request) error {
	if s.config.key != "" && !hasKey(r.Header, s.config.key) {
		return &InvalidError{Status: http.StatusUnauthorized, Type: "authentication_error", Message: "invalid x-api-key"}
	}
	if s.config.noValidate {
		return nil
	}
	if err := Validate(r.Body, r.Header); err != nil && !s.paused.allow(err, r) {
		return err
	}
	if s.echo != nil {
		return s.echo.check(r)
	}
	return nil
}

// record keeps r and reports whether there was room for it.
func (s *Server) record(r *Request) bool {
	if s.config.keep == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.keep < 0 && s.recorded+len(r.Body) > s.config.room {
		return false
	}
	s.recorded += len(r.Body)
	s.requests = append(s.requests, r)
	if n := s.config.keep; n > 0 && len(s.requests) > n {
		s.requests = slices.Delete(s.requests, 0, len(s.requests)-n)
	}
	return true
}

func (s *Server) respond(w http.ResponseWriter, req *http.Request, r *Request) {
	if r.Err != nil {
		if !s.config.expectInvalid {
			s.problem("request %d is invalid: %v", r.Number, r.Err)
		}
		s.refuse(w, r.Err)
		return
	}
	step, ok := s.next(r)
	if !ok {
		s.problem("request %d has no answer: the script is at its end%s", r.Number, describe(r))
		s.fail(w, &apiError{"invalid_request_error", fmt.Sprintf("agenttest: request %d has no answer: the script is at its end", r.Number)}, http.StatusBadRequest)
		return
	}
	for _, check := range step.checks {
		if err := check(r); err != nil {
			s.problem("request %d: %v", r.Number, err)
			s.fail(w, &apiError{"invalid_request_error", fmt.Sprintf("agenttest: request %d: %v", r.Number, err)}, http.StatusBadRequest)
			return
		}
	}
	s.send(w, req, r, step)
}

func (s *Server) next(r *Request) (Step, bool) {
	for _, source := range s.config.sources {
		if step, ok := source(r); ok {
			return step, true
		}
	}
	return Step{}, false
}

func (s *Server) send(w http.ResponseWriter, req *http.Request, r *Request, step Step) {
	out := &sender{w: w, flush: flusher(w), gone: req.Context().Done(), closed: s.closed}
	if step.never {
		abort(out.hold(0))
	}
	if err := out.wait(step.delay); err != nil {
		abort(err)
	}
	h := w.Header()
	h.Set("Request-Id", s.ids.next("req"))
	for name, values := range step.header {
		h[name] = values
	}
	if step.failed != nil {
		s.fail(w, step.failed, step.status)
		return
	}
	if step.mime != "" {
		h.Set("Content-Type", step.mime)
		w.WriteHeader(step.status)
		abort(out.sendRaw(step))
		return
	}
	stream := r.Stream() && !step.plain
	if !stream && step.fault != nil {
		s.fail(w, step.fault, step.fault.status())
		return
	}
	a := step.answer(r.Model(), s.ids.next)
	forget := s.remember(a)
	send := out.sendMessage
	h.Set("Content-Type", "application/json")
	if stream {
		send = out.sendStream
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
	}
	if err := send(a); err != nil {
		forget()
		abort(err)
	}
}

// abort ends a request that could not be answered whole without the end of a
// body, so that a client never takes it for whole.
func abort(err error) {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// remember keeps what later requests are compared with, before the answer is
// sent: the next request may come before the last write returns. It returns
// how to forget it again.
func (s *Server) remember(a answer) (forget func()) {
	forget = func() {}
	if a.step.broken() {
		return forget // the client may keep any part of it
	}
	if a.stopReason == "pause_turn" {
		s.paused.add(a)
	}
	if s.echo != nil {
		kept := s.echo.add(a)
		forget = func() { s.echo.forget(kept) }
	}
	return forget
}

// refuse answers with the status and body of an invalid request.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		invalid = &InvalidError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: err.Error()}
	}
	s.fail(w, &apiError{invalid.Type, invalid.Error()}, invalid.Status)
}

func (s *Server) fail(w http.ResponseWriter, e *apiError, status int) {
	h := w.Header()
	id := h.Get("Request-Id")
	if id == "" {
		id = s.ids.next("req")
		h.Set("Request-Id", id)
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error of the write means that the client left.
	_, _ = w.Write(e.body(id))
}

// countTokens answers with one token for four bytes of the body.
func (s *Server) countTokens(w http.ResponseWriter, req *http.Request, body []byte) {
	if req.Method != http.MethodPost {
		s.fail(w, &apiError{"invalid_request_error", "Method Not Allowed"}, http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Request-Id", s.ids.next("req"))
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"input_tokens":%d}`, (len(body)+3)/4)
}

func flusher(w http.ResponseWriter) func() {
	rc := http.NewResponseController(w)
	return func() { _ = rc.Flush() } // a writer that cannot flush writes at the end
}

// describe shortens what a request asks, for a message.
func describe(r *Request) string {
	if results := r.LastToolResults(); len(results) > 0 {
		return fmt.Sprintf(" (it carries %d tool results)", len(results))
	}
	text := []rune(r.UserText())
	if len(text) > 80 {
		text = append(text[:80], '…')
	}
	return fmt.Sprintf(" (last user text %q)", string(text))
}

// idSource makes the ids of one server: unique in it, and the same for the
// same requests in the same order.
type idSource struct{ n atomic.Int64 }

func (s *idSource) next(kind string) string { return fmt.Sprintf("%s_01%022d", kind, s.n.Add(1)) }
