package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/turnwright/turnwright/model"
)

const (
	// defaultAgent is the User-Agent when Config has none.
	defaultAgent = "turnwright"
	// tailGrace is how long an answer whose stop_reason arrived may take to
	// send its message_stop, which nothing depends on (L-97).
	tailGrace = 2 * time.Second
	// drainGrace is how long a finished stream may take to end, so that its
	// connection can serve the next request.
	drainGrace = 250 * time.Millisecond
)

// Client speaks the Messages API. It implements model.Model and
// model.Acquirer and may be used by many goroutines. It holds no resources of
// its own.
type Client struct {
	endpoint  string
	host      string
	keySource string
	missing   bool // the vendor's endpoint without credentials (L-112)
	header    http.Header
	hostField string // a Host header of the user's, "": none
	betas     []string
	extra     []member
	http      *http.Client
	tail      time.Duration // tailGrace, shorter in tests
}

var (
	_ model.Model    = (*Client)(nil)
	_ model.Acquirer = (*Client)(nil)
)

// New returns a client. It fails when a field of c is not usable and names
// it. Missing credentials are not an error here: the first request to the
// vendor's endpoint fails with model.KindAuthentication, so that a run ends
// with a result (L-112); other endpoints may not need any.
func New(c Config) (*Client, error) {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	base, err := parseBase(c.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("anthropic: base URL: %w", err)
	}
	cl := &Client{
		endpoint:  base.JoinPath("v1", "messages").String(),
		host:      base.Host,
		keySource: c.KeySource(),
		betas:     slices.Clone(c.Betas),
		http:      c.HTTPClient,
		tail:      tailGrace,
	}
	if c.Proxy != nil {
		for name, v := range map[string]string{"HTTP": c.Proxy.HTTP, "HTTPS": c.Proxy.HTTPS} {
			if err := checkProxy(v); err != nil {
				return nil, fmt.Errorf("anthropic: Proxy.%s: %w", name, err)
			}
		}
	}
	if len(c.ExtraBody) > 0 {
		if cl.extra, err = membersOf(c.ExtraBody); err != nil {
			return nil, fmt.Errorf("anthropic: extra body: %w", err)
		}
	}
	if err := cl.setHeader(c); err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	cl.missing = cl.host == "api.anthropic.com" && cl.header.Get("X-Api-Key") == "" && cl.header.Get("Authorization") == ""
	if cl.http == nil {
		if base.Scheme == "http" && (c.Proxy == nil || !strings.HasPrefix(c.Proxy.HTTP, "https:")) {
			c.CAFile, c.CertFile = "", "" // no redirect leads to https: the system's certificates need not be read
		}
		t, err := transportFor(c)
		if err != nil {
			return nil, fmt.Errorf("anthropic: %w", err)
		}
		cl.http = &http.Client{Transport: t, CheckRedirect: refuseRedirect}
	} else if cl.http.CheckRedirect == nil {
		own := *cl.http
		own.CheckRedirect = refuseRedirect
		cl.http = &own
	}
	return cl, nil
}

// setHeader prepares the headers that all requests share.
func (c *Client) setHeader(cfg Config) error {
	h := http.Header{
		"Content-Type":      {"application/json"},
		"Accept":            {"text/event-stream, application/json"},
		"Anthropic-Version": {cmp.Or(cfg.Version, DefaultVersion)},
		"User-Agent":        {cmp.Or(cfg.UserAgent, defaultAgent)},
	}
	if cfg.APIKey != "" {
		if err := checkSecret(cfg.APIKey); err != nil {
			return fmt.Errorf("API key: %w", err)
		}
		h.Set("X-Api-Key", cfg.APIKey)
	}
	if cfg.AuthToken != "" {
		if err := checkSecret(cfg.AuthToken); err != nil {
			return fmt.Errorf("auth token: %w", err)
		}
		h.Set("Authorization", "Bearer "+cfg.AuthToken)
	}
	for _, k := range slices.Sorted(maps.Keys(cfg.Headers)) {
		v := cfg.Headers[k]
		if err := checkHeader(k, v); err != nil {
			return fmt.Errorf("headers: %w", err)
		}
		if strings.EqualFold(k, "host") {
			c.hostField = v
			continue
		}
		h.Set(k, v)
	}
	for _, f := range [...]struct{ name, value string }{{"Version", h.Get("Anthropic-Version")}, {"UserAgent", h.Get("User-Agent")}} {
		if !validValue(f.value) {
			return fmt.Errorf("%s: %q is no header value", f.name, f.value)
		}
	}
	for _, b := range cfg.Betas {
		if !validValue(b) {
			return fmt.Errorf("betas: %q is no header value", b)
		}
	}
	c.header = h
	return nil
}

// KeySource returns where the API key comes from (Config.KeySource).
func (c *Client) KeySource() string { return c.keySource }

// Acquire waits for one of the process's connection slots (model.Acquirer).
func (c *Client) Acquire(ctx context.Context) (release func(), err error) { return acquire(ctx) }

// maxRequest is the API's limit on the body of a request, in bytes.
const maxRequest = 32 << 20

// Stream makes one attempt (model.Model). Its errors are *model.Error.
func (c *Client) Stream(ctx context.Context, r *model.Request, on func(model.Event)) (*model.Response, error) {
	if c.missing {
		return nil, &model.Error{
			Kind: model.KindAuthentication, Host: c.host,
			Message: "no credentials: set " + envAPIKey + " or " + envAuthToken,
		}
	}
	b, err := body(r, c.extra)
	if err != nil {
		return nil, &model.Error{Kind: model.KindInvalidRequest, Message: err.Error(), Err: err, Host: c.host}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, b.reader())
	if err != nil {
		return nil, &model.Error{Kind: model.KindInvalidRequest, Message: err.Error(), Err: err, Host: c.host}
	}
	// net/http sends the body again by itself when a kept connection turns
	// out to be closed.
	req.ContentLength = b.size()
	req.GetBody = func() (io.ReadCloser, error) { return b.reader(), nil }
	c.sign(req, r.Betas)
	answer, err := c.http.Do(req)
	if err != nil {
		if size := b.size(); size > maxRequest && ctx.Err() == nil {
			// The API answers 413 and closes before it has read the body, and then the
			// answer is often lost. Sent again, the body would meet the same end.
			return nil, &model.Error{
				Kind: model.KindInvalidRequest, Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Host: c.host, Err: err,
				Message: fmt.Sprintf("Request exceeds the maximum size: the connection broke while %d bytes were sent, and the API takes %d", size, maxRequest),
			}
		}
		return nil, c.lost(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, c.refused(answer)
	}
	s := &stream{
		asm: assembler{began: began}, on: on, tail: c.tail,
		grace: func(d time.Duration) *time.Timer { return time.AfterFunc(d, cancel) },
	}
	err = s.read(answer)
	resp := s.asm.response()
	id := requestID(answer.Header)
	if resp != nil {
		resp.RequestID = id
	}
	if resp.Complete() || err == nil {
		return resp, nil
	}
	return resp, c.broken(ctx, err, id)
}

// sign sets the headers of one request.
func (c *Client) sign(req *http.Request, betas []string) {
	req.Header = c.header.Clone()
	req.Host = cmp.Or(c.hostField, req.Host)
	all := slices.Clone(c.betas)
	for _, b := range betas {
		if !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	if len(all) > 0 {
		if set := req.Header.Get("Anthropic-Beta"); set != "" {
			all = append([]string{set}, all...)
		}
		req.Header.Set("Anthropic-Beta", strings.Join(all, ","))
	}
}

// stream reads the events of one answer.
type stream struct {
	asm   assembler
	ev    wireEvent // the one that is being used
	on    func(model.Event)
	grace func(time.Duration) *time.Timer // ends the request after a while
	timer *time.Timer
	due   time.Duration // the grace that begins with the next read, 0: none
	tail  time.Duration
}

// read uses the answer's body, a stream of events or one Messages object. It
// returns nil when the response is complete.
func (s *stream) read(answer *http.Response) error {
	defer func() {
		if s.timer != nil {
			s.timer.Stop()
		}
	}()
	body, form, err := sniff(answer)
	switch {
	case err != nil:
		return err
	case form == formObject:
		return s.readObject(body)
	case form == formOther:
		return notAStream(answer, body)
	}
	return s.readEvents(body)
}

func (s *stream) readEvents(body io.Reader) error {
	sc := newSSEScanner(&graceReader{r: body, s: s})
	defer sc.free()
	for !s.asm.stopped {
		f, err := sc.next()
		if err == nil {
			err = s.use(f)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return errCut
		case errors.Is(err, errEventSize):
			return malformed("%v", err)
		default:
			return err
		}
	}
	// The end of the body frees the connection for the next request.
	s.setGrace(drainGrace)
	for {
		if _, err := sc.next(); err != nil {
			return nil
		}
	}
}

// errCut says that a stream ended before the response was complete (L-94).
var errCut = errors.New("the stream ended before the response was complete")

// use takes one server-sent event.
func (s *stream) use(f frame) error {
	if string(f.data) == "[DONE]" {
		return nil // some gateways' mark of the end
	}
	ev := &s.ev
	if err := decode(f, ev); err != nil {
		if f.cut {
			return errCut
		}
		return malformed("event %q: %v: %.120q", f.name, err, f.data)
	}
	if s.on != nil {
		s.on(model.Event{Type: ev.Type, Data: f.data})
	}
	if err := s.asm.add(ev, f.data); err != nil {
		return err
	}
	if ev.Type == "message_delta" && s.asm.resp.Complete() {
		s.setGrace(s.tail)
	}
	return nil
}

// setGrace limits how long the rest of the body may take. The clock is started
// by the next read and not here: mostly there is none, because the end came
// with the last event, and a new timer wakes a sleeping thread.
func (s *stream) setGrace(d time.Duration) {
	s.due = d
}

// graceReader reads the body and starts the clock of its grace time.
type graceReader struct {
	r io.Reader
	s *stream
}

func (g *graceReader) Read(b []byte) (int, error) {
	if s := g.s; s.due != 0 {
		if s.timer != nil {
			s.timer.Stop()
		}
		s.timer, s.due = s.grace(s.due), 0
	}
	return g.r.Read(b)
}

// withoutURL returns the cause inside a *url.Error: the URL says nothing that
// the host does not, and may hold a password.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
