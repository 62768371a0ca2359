package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Defaults of Config.
const (
	DefaultBaseURL = "https://api.anthropic.com"
	DefaultVersion = "2026-10-21"
)

// Environment variables that FromEnv reads (K-222, O-107, K-250).
const (
	envBaseURL   = "ANTHROPIC_BASE_URL"
	envAPIKey    = "ANTHROPIC_API_KEY"
	envAuthToken = "ANTHROPIC_AUTH_TOKEN"
	envHeaders   = "ANTHROPIC_CUSTOM_HEADERS"
	envBetas     = "ANTHROPIC_BETAS"
	envExtraBody = "CLAUDE_CODE_EXTRA_BODY"
	envExtraCA   = "NODE_EXTRA_CA_CERTS"
	envCertFile  = "SSL_CERT_FILE"
)

// Variables that the official clients set, for the User-Agent (K-225, K-226).
const (
	envEntrypoint = "CLAUDE_CODE_ENTRYPOINT"
	envSDKVersion = "CLAUDE_AGENT_SDK_VERSION"
	envClientApp  = "CLAUDE_AGENT_SDK_CLIENT_APP"
)

// Config says where requests go and what they carry. The zero value is the
// vendor's endpoint without credentials.
type Config struct {
	BaseURL   string            // "": DefaultBaseURL; /v1/messages is appended
	APIKey    string            // sent as x-api-key
	AuthToken string            // sent as Authorization: Bearer
	Version   string            // anthropic-version, "": DefaultVersion
	Headers   map[string]string // further headers; they win over the client's own
	Betas     []string          // anthropic-beta, before those of the request
	UserAgent string            // "": turnwright
	// HTTPClient replaces the process's shared one. A client without a
	// CheckRedirect gets one that refuses: credentials do not follow.
	HTTPClient *http.Client
	// ExtraBody is a JSON object whose members are put into every request
	// body in place of the request's own; nil: none.
	ExtraBody json.RawMessage
	// CAFile names a PEM file of certificates that are trusted beside the
	// system's; "": none. CertFile names one whose certificates are trusted in
	// place of the system's; "": the system's. Proxy says through which proxies
	// requests go; nil: as the variables of the process say. The three have no
	// effect with HTTPClient.
	CAFile, CertFile string
	Proxy            *Proxy
}

// FromEnv reads a Config from environment variables: ANTHROPIC_BASE_URL,
// ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, ANTHROPIC_CUSTOM_HEADERS (lines of
// "Name: value"), ANTHROPIC_BETAS (comma-separated), CLAUDE_CODE_EXTRA_BODY (a
// JSON object), NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, HTTP_PROXY, HTTPS_PROXY and
// NO_PROXY, the last three also in lower case (K-222, O-107, K-250). An unset or
// blank variable is none. CLAUDE_CODE_ENTRYPOINT, CLAUDE_AGENT_SDK_VERSION and
// CLAUDE_AGENT_SDK_CLIENT_APP go into the User-Agent (K-225). A bad value is an
// error that names the variable and the value; the values of credentials are
// not shown.
func FromEnv(getenv func(string) string) (Config, error) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	c := Config{
		BaseURL:   get(envBaseURL),
		APIKey:    get(envAPIKey),
		AuthToken: get(envAuthToken),
		CAFile:    get(envExtraCA),
		CertFile:  get(envCertFile),
		UserAgent: agent(get),
	}
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	if _, err := parseBase(c.BaseURL); err != nil {
		return Config{}, fmt.Errorf("%s: %w", envBaseURL, err)
	}
	for _, v := range [...]struct{ name, value string }{{envAPIKey, c.APIKey}, {envAuthToken, c.AuthToken}} {
		if err := checkSecret(v.value); err != nil {
			return Config{}, fmt.Errorf("%s: %w", v.name, err)
		}
	}
	var err error
	if c.Proxy, err = proxyFromEnv(get); err != nil {
		return Config{}, err
	}
	if c.Headers, err = parseHeaders(getenv(envHeaders)); err != nil {
		return Config{}, fmt.Errorf("%s: %w", envHeaders, err)
	}
	for b := range strings.SplitSeq(get(envBetas), ",") {
		b = strings.TrimSpace(b)
		if b == "" {
			continue
		}
		if !validValue(b) {
			return Config{}, fmt.Errorf("%s: %q is no header value", envBetas, b)
		}
		c.Betas = append(c.Betas, b)
	}
	if v := get(envExtraBody); v != "" {
		if _, err := membersOf([]byte(v)); err != nil {
			return Config{}, fmt.Errorf("%s: %.200q is not one JSON object: %w", envExtraBody, v, err)
		}
		c.ExtraBody = json.RawMessage(v)
	}
	return c, nil
}

// KeySource returns where the API key comes from, for the init message
// (M-17): "ANTHROPIC_API_KEY", or "none" without a key. A token is no key.
func (c Config) KeySource() string {
	if c.APIKey != "" {
		return envAPIKey
	}
	return "none"
}

// agent is the User-Agent with what the clients say of themselves, as in
// "turnwright (sdk-py, agent-sdk/0.2.1, client-app/mine)".
func agent(get func(string) string) string {
	var about []string
	for _, v := range [...]struct{ prefix, value string }{
		{"", get(envEntrypoint)}, {"agent-sdk/", get(envSDKVersion)}, {"client-app/", get(envClientApp)},
	} {
		if v.value != "" {
			about = append(about, v.prefix+inComment(v.value))
		}
	}
	if len(about) == 0 {
		return defaultAgent
	}
	return defaultAgent + " (" + strings.Join(about, ", ") + ")"
}

// inComment makes a value fit for a comment of a header: at most 100
// characters, and "_" for each that would end or nest the comment.
func inComment(v string) string {
	v = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`(),\`, r) {
			return '_'
		}
		return r
	}, v)
	return v[:min(len(v), 100)]
}

// parseBase returns the endpoint's base URL without a trailing slash.
func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("%q is not an http or https URL with a host", redact(s))
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q has a query or a fragment, a base URL has none", redact(s))
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// redact hides a password in what may be a URL.
func redact(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	if _, after, ok := strings.Cut(s, "@"); ok {
		return "…@" + after
	}
	return s
}

func checkSecret(v string) error {
	if !validValue(v) {
		return fmt.Errorf("the value (%d bytes, not shown) has a character that no header may have", len(v))
	}
	return nil
}

// parseHeaders reads lines of "Name: value".
func parseHeaders(s string) (map[string]string, error) {
	var all map[string]string
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok {
			return nil, fmt.Errorf("the line %q is not of the form Name: value", line)
		}
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		if all == nil {
			all = make(map[string]string)
		}
		all[name] = value
	}
	return all, nil
}

func checkHeader(name, value string) error {
	if !validName(name) {
		return fmt.Errorf("%q is no header name", name)
	}
	switch http.CanonicalHeaderKey(name) {
	case "Content-Length", "Transfer-Encoding", "Connection":
		return fmt.Errorf("the header %q is the transport's own and cannot be set", name)
	}
	if !validValue(value) {
		return fmt.Errorf("the value %q of header %q has a character that no header may have", value, name)
	}
	return nil
}

// validName reports whether s is a header name (RFC 9110, token).
func validName(s string) bool {
	for _, r := range s {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) {
			return false
		}
	}
	return s != ""
}

func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
