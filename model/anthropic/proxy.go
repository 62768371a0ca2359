package anthropic

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Proxy says through which proxies requests go (K-250). HTTP and HTTPS are the
// URLs of the proxies for these schemes, "host:port" stands for
// "http://host:port", "" for none; https, socks5 and socks5h are proxies as
// well. Except lists hosts that are asked directly, in the form of NO_PROXY.
// The own machine always is.
type Proxy struct{ HTTP, HTTPS, Except string }

// proxyFromEnv reads the variables. A CGI script's HTTP_PROXY is a header of
// its client, so it does not count there.
func proxyFromEnv(get func(string) string) (*Proxy, error) {
	p := &Proxy{}
	for _, v := range [...]struct {
		name, lower string
		to          *string
	}{{"HTTP_PROXY", "http_proxy", &p.HTTP}, {"HTTPS_PROXY", "https_proxy", &p.HTTPS}, {"NO_PROXY", "no_proxy", &p.Except}} {
		name := v.name
		if get(name) == "" || name == "HTTP_PROXY" && get("REQUEST_METHOD") != "" {
			name = v.lower
		}
		*v.to = get(name)
		if v.to == &p.Except {
			continue
		}
		if err := checkProxy(*v.to); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return p, nil
}

// checkProxy refuses what would be no proxy: requests would go out directly.
func checkProxy(v string) error {
	if v == "" {
		return nil
	}
	if !strings.Contains(v, "://") {
		v = "http://" + v
	}
	u, err := url.Parse(v)
	if err == nil && u.Host != "" {
		switch u.Scheme {
		case "http", "https", "socks5", "socks5h":
			return nil
		}
	}
	return fmt.Errorf("%q is not the URL of a proxy (http, https, socks5 or socks5h)", redact(v))
}

// choose returns the transport's function.
func (p *Proxy) choose() func(*http.Request) (*url.URL, error) {
	if p == nil {
		return http.ProxyFromEnvironment
	}
	of := (&httpproxy.Config{HTTPProxy: p.HTTP, HTTPSProxy: p.HTTPS, NoProxy: p.Except}).ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return of(r.URL) }
}
