package agenttest

import (
	"io"
	"log"
	"net/http"
	"strings"
)

// An Option is an argument of NewServer and Start: a Source, a Step or a
// setting such as StrictEcho.
type Option interface{ apply(*config) }

type config struct {
	t             TB
	sources       []Source
	key           string
	noValidate    bool
	expectInvalid bool
	strictEcho    bool
	memory        bool
	keep          int // requests to keep, -1: all
	room          int // bytes of bodies that are kept then
	problems      []error
}

func (s Source) apply(c *config) { c.sources = append(c.sources, s) }

func (s Step) apply(c *config) { c.sources = append(c.sources, Script(s)) }

type setting func(*config)

func (f setting) apply(c *config) { f(c) }

// APIKey makes the server refuse every other key with status 401. The key is
// accepted in x-api-key and as a bearer token. Without it any key will do.
func APIKey(key string) Option { return setting(func(c *config) { c.key = key }) }

// NoValidate answers every request without checking it.
func NoValidate() Option { return setting(func(c *config) { c.noValidate = true }) }

// ExpectInvalid keeps an invalid request from failing the test; it is still
// refused.
func ExpectInvalid() Option { return setting(func(c *config) { c.expectInvalid = true }) }

// StrictEcho makes the server refuse a request in which the blocks of one of
// its earlier responses come back changed, incomplete or in another order; as
// in the API, thinking may be left out once its tool loop is over or when
// another model is asked. Answers that were cut or failed are not compared.
func StrictEcho() Option { return setting(func(c *config) { c.strictEcho = true }) }

// KeepRequests limits the record to the newest n requests; 0 keeps none.
// Without it all are kept, up to a gigabyte: a run that goes on then is refused.
func KeepRequests(n int) Option { return setting(func(c *config) { c.keep = max(n, 0) }) }

// InMemory serves over in-process pipes instead of a socket: only Client
// reaches the server, and everything works in the fake time of a synctest
// bubble.
func InMemory() Option { return setting(func(c *config) { c.memory = true }) }

func hasKey(h http.Header, key string) bool {
	bearer, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return h.Get("X-Api-Key") == key || ok && bearer == key
}

// discardLog silences the HTTP server: a cut connection is what tests ask for.
func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
