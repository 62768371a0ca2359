package hook

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// HTTP is a handler that sends the event to a server (H-32): a POST with the
// event as JSON.
type HTTP struct {
	URL     string            // http or https, absolute
	Headers map[string]string // $NAME and ${NAME} stand for variables
	EnvVars []string          // those that headers may name; all others are empty
}

// http reads the fields of an HTTP handler.
func (p *parser) http(place string, o object, ok bool) (*HTTP, bool) {
	h := &HTTP{}
	ok = p.field(place, o, "url", "a string", &h.URL) && ok
	ok = p.field(place, o, "headers", "an object of strings", &h.Headers) && ok
	ok = p.field(place, o, "allowedEnvVars", "a list of strings", &h.EnvVars) && ok
	if !ok {
		return nil, false
	}
	if _, err := parseURL(h.URL); err != nil {
		p.problem(place+".url", "%w", err)
		return nil, false
	}
	return h, true
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("is missing or empty")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("must be an absolute URL of http or https, not %.200q", text)
	}
	return u, nil
}

var inHeader = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// Header returns the headers of the request. Variables that EnvVars does not
// list are empty, so that a file cannot send what it was not given (H-32).
func (h *HTTP) Header(getenv func(string) string) http.Header {
	header := http.Header{}
	for name, v := range h.Headers {
		header.Set(name, inHeader.ReplaceAllStringFunc(v, func(ref string) string {
			variable := strings.Trim(ref, "${}")
			if !slices.Contains(h.EnvVars, variable) {
				return ""
			}
			return getenv(variable)
		}))
	}
	header.Set("Content-Type", "application/json")
	return header
}

// HTTPLimits are what settings let all HTTP hooks do (H-34).
type HTTPLimits struct {
	// URLs are patterns of the addresses that may be asked: "*" stands for any
	// text, before the path for any text within the host. nil: every address,
	// empty: none.
	URLs []string
	// EnvVars are the variables that headers may name beside a handler's own
	// list. nil: all of that list.
	EnvVars []string
}

// Limit returns the file without what the limits forbid. Each such handler or
// variable is a *Problem.
func (f File) Limit(l HTTPLimits) (File, []*Problem) {
	if l.URLs == nil && l.EnvVars == nil {
		return f, nil
	}
	p := parser{file: f.Path}
	groups := map[Event][]fileGroup{}
	for _, ev := range slices.Sorted(maps.Keys(f.groups)) {
		for _, g := range f.groups[ev] {
			kept := fileGroup{matcher: g.matcher}
			for _, h := range g.handlers {
				if h.HTTP == nil || p.limit(&h, l) {
					kept.handlers = append(kept.handlers, h)
				}
			}
			if len(kept.handlers) > 0 {
				groups[ev] = append(groups[ev], kept)
			}
		}
	}
	f.groups = groups
	return f, p.problems
}

// limit reports whether the handler may run, with the variables that it may
// name.
func (p *parser) limit(h *Handler, l HTTPLimits) bool {
	if l.URLs != nil && !slices.ContainsFunc(l.URLs, func(pattern string) bool { return matchesURL(pattern, h.HTTP.URL) }) {
		p.problem(h.place+".url", "%q is not among the addresses that allowedHttpHookUrls lets hooks ask, so the hook never runs", h.HTTP.URL)
		return false
	}
	if l.EnvVars == nil {
		return true
	}
	own := *h.HTTP
	own.EnvVars = nil
	for _, v := range h.HTTP.EnvVars {
		if slices.Contains(l.EnvVars, v) {
			own.EnvVars = append(own.EnvVars, v)
			continue
		}
		p.problem(h.place+".allowedEnvVars", "%q is not among httpHookAllowedEnvVars, so it is empty", v)
	}
	h.HTTP = &own
	return true
}

// matchesURL reports whether a pattern is about an address. A "*" in the host
// does not reach into the path: "https://*.example.com/*" is about the hosts of
// one domain, whatever is in the path of others.
func matchesURL(pattern, address string) bool {
	u, err := parseURL(address)
	if err != nil {
		return false
	}
	file := path.Clean("/" + u.Path) // decoded, and without ".."
	if strings.HasSuffix(u.Path, "/") && file != "/" {
		file += "/"
	}
	plain := u.Scheme + "://" + strings.ToLower(u.Host) + file
	if u.RawQuery != "" {
		plain += "?" + u.RawQuery
	}
	if pattern == "*" {
		return true
	}
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		return false
	}
	host, rest, hasPath := strings.Cut(rest, "/")
	form := regexp.QuoteMeta(strings.ToLower(scheme)+"://"+host) + "/"
	form = strings.ReplaceAll(form, `\*`, `[^/?#@\\]*`)
	switch {
	case hasPath:
		form += strings.ReplaceAll(regexp.QuoteMeta(rest), `\*`, `.*`)
	case strings.HasSuffix(host, "*"):
		form += ".*"
	}
	re, err := regexp.Compile(`^(?s:` + form + `)$`)
	return err == nil && re.MatchString(plain)
}

// maxReply is how much of an unusable reply a fault shows, in bytes.
const maxReply = 200

// FromHTTP reads what a server answered (H-33): with a status of 2xx nothing, or
// a JSON object as a command writes it. Everything else decides nothing, so that
// a proxy's error page never blocks a call.
func FromHTTP(ev Event, status int, body []byte) (Output, error) {
	text := strings.TrimSpace(string(body))
	switch {
	case status < 200 || status > 299:
		return Output{}, fmt.Errorf("the server answered with status %d %s", status, http.StatusText(status))
	case text == "":
		return Output{}, nil
	case !strings.HasPrefix(text, "{"):
		return Output{}, fmt.Errorf("the server's answer must be empty or a JSON object, not %.*q", maxReply, text)
	}
	return ParseOutput(ev, []byte(text))
}
