package anthropic

import (
	"net/http"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

// TestProxyFromEnv asks which proxy a request would go through.
func TestProxyFromEnv(t *testing.T) {
	for _, tt := range []struct {
		name, url, want string
		env             []string
	}{
		{"none", "http://model.test/", "", nil},
		{"http", "http://model.test/", "http://p.test:1", []string{"HTTP_PROXY", "http://p.test:1"}},
		{"not for https", "https://model.test/", "", []string{"HTTP_PROXY", "http://p.test:1"}},
		{"https", "https://model.test/", "http://p.test:2", []string{"HTTPS_PROXY", "p.test:2"}},
		{"lower case", "https://model.test/", "socks5://p.test:3", []string{"https_proxy", "socks5://p.test:3"}},
		{"upper case first", "http://model.test/", "http://p.test:1", []string{"HTTP_PROXY", "p.test:1", "http_proxy", "p.test:4"}},
		{"credentials", "http://model.test/", "http://me:pw@p.test:1", []string{"HTTP_PROXY", " http://me:pw@p.test:1 "}},
		{"excepted", "http://model.test/", "", []string{"HTTP_PROXY", "p.test:1", "NO_PROXY", "a.test,.test"}},
		{"excepted in lower case", "http://model.test/", "", []string{"HTTP_PROXY", "p.test:1", "no_proxy", "model.test"}},
		{"another is excepted", "http://model.test/", "http://p.test:1", []string{"HTTP_PROXY", "p.test:1", "NO_PROXY", "other.test"}},
		{"everything is excepted", "http://model.test/", "", []string{"HTTP_PROXY", "p.test:1", "NO_PROXY", "*"}},
		{"the own machine", "http://127.0.0.1:9/", "", []string{"HTTP_PROXY", "p.test:1"}},
		{"a CGI script's client", "http://model.test/", "", []string{"HTTP_PROXY", "p.test:1", "REQUEST_METHOD", "GET"}},
		{"a CGI script's owner", "http://model.test/", "http://p.test:1", []string{"http_proxy", "p.test:1", "REQUEST_METHOD", "GET"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := FromEnv(env(tt.env...))
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequest(http.MethodPost, tt.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Proxy.choose()(r)
			if err != nil || got == nil && tt.want != "" || got != nil && got.String() != tt.want {
				t.Errorf("%v, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// A value that is no proxy would send the requests out directly.
func TestBadProxy(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"HTTP_PROXY", "ftp://p.test", "ftp://p.test"},
		{"https_proxy", "http://p test", "p test"},
		{"HTTPS_PROXY", "http://", "http:"},
	} {
		_, err := FromEnv(env(c.name, c.value))
		if err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
	if _, err := FromEnv(env("HTTP_PROXY", "ftp://me:hidden@p.test")); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
	if _, err := New(Config{Proxy: &Proxy{HTTPS: "ftp://p.test"}}); err == nil || !strings.Contains(err.Error(), "Proxy.HTTPS") {
		t.Error(err)
	}
}

// Clients of one network share their connections, of another they do not.
func TestTransports(t *testing.T) {
	of := func(c Config) *http.Transport {
		t.Helper()
		tr, err := transportFor(c)
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	one := of(Config{Proxy: &Proxy{HTTP: "p.test:1"}})
	if of(Config{Proxy: &Proxy{HTTP: "p.test:1"}, APIKey: "k"}) != one {
		t.Error("two transports for one network")
	}
	if of(Config{Proxy: &Proxy{HTTP: "p.test:2"}}) == one || of(Config{Proxy: &Proxy{}}) == one || of(Config{}) == of(Config{Proxy: &Proxy{}}) {
		t.Error("one transport for two networks")
	}
}

func TestUserAgent(t *testing.T) {
	conform.Covers(t, "K-226")
	for want, kv := range map[string][]string{
		"turnwright":                                       nil,
		"turnwright (sdk-py, agent-sdk/0.2.1)":             {"CLAUDE_CODE_ENTRYPOINT", "sdk-py", "CLAUDE_AGENT_SDK_VERSION", "0.2.1"},
		"turnwright (client-app/my_app_1.0_)":              {"CLAUDE_AGENT_SDK_CLIENT_APP", "my app(1.0)"},
		"turnwright (__)":                                  {"CLAUDE_CODE_ENTRYPOINT", "é\x00"},
		"turnwright (" + strings.Repeat("x", 100) + ")":    {"CLAUDE_CODE_ENTRYPOINT", strings.Repeat("x", 300)},
		"turnwright (cli, agent-sdk/1, client-app/mine/2)": {"CLAUDE_CODE_ENTRYPOINT", "cli", "CLAUDE_AGENT_SDK_VERSION", "1", "CLAUDE_AGENT_SDK_CLIENT_APP", "mine/2"},
	} {
		c, err := FromEnv(env(kv...))
		if err != nil || c.UserAgent != want {
			t.Errorf("%q: %q, %v", kv, c.UserAgent, err)
		}
		if cl, err := New(c); err != nil || cl.header.Get("User-Agent") != want {
			t.Errorf("%q: %v", kv, err)
		}
	}
}
