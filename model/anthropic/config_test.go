package anthropic

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

func env(kv ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == name {
				return kv[i+1]
			}
		}
		return ""
	}
}

func TestFromEnv(t *testing.T) {
	conform.Covers(t, "K-222", "M-17")
	c, err := FromEnv(env())
	if err != nil || c.BaseURL != DefaultBaseURL || c.KeySource() != "none" || c.Headers != nil || c.ExtraBody != nil {
		t.Errorf("%+v %v", c, err)
	}
	c, err = FromEnv(env(
		"ANTHROPIC_BASE_URL", " http://127.0.0.1:9/gw/ ", "ANTHROPIC_API_KEY", "k1\n", "ANTHROPIC_AUTH_TOKEN", "tok",
		"ANTHROPIC_CUSTOM_HEADERS", "X-One: 1\r\n\n  x-two :a: b  \n", "ANTHROPIC_BETAS", "a-1, b-2,,",
		"CLAUDE_CODE_EXTRA_BODY", ` {"top_k": 5} `,
	))
	if err != nil {
		t.Fatal(err)
	}
	if c.BaseURL != "http://127.0.0.1:9/gw/" || c.APIKey != "k1" || c.AuthToken != "tok" || c.KeySource() != "ANTHROPIC_API_KEY" ||
		c.Headers["X-One"] != "1" || c.Headers["x-two"] != "a: b" || strings.Join(c.Betas, "|") != "a-1|b-2" || string(c.ExtraBody) != `{"top_k": 5}` {
		t.Errorf("%+v", c)
	}
	if c, err := FromEnv(env("ANTHROPIC_AUTH_TOKEN", "tok")); err != nil || c.KeySource() != "none" {
		t.Error("a token is no API key", err)
	}
}

func TestFromEnvNamesVariableAndValue(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"ANTHROPIC_BASE_URL", "localhost:8080", "localhost:8080"},
		{"ANTHROPIC_BASE_URL", "ftp://x", "ftp://x"},
		{"ANTHROPIC_BASE_URL", "http://", "http:"},
		{"ANTHROPIC_BASE_URL", "http://h/?a=b", "?a=b"},
		{"ANTHROPIC_BASE_URL", "http://h\x7f/", "h"},
		{"ANTHROPIC_CUSTOM_HEADERS", "no colon", "no colon"},
		{"ANTHROPIC_CUSTOM_HEADERS", "bad name: x", "bad name"},
		{"ANTHROPIC_CUSTOM_HEADERS", ": x", ""},
		{"ANTHROPIC_CUSTOM_HEADERS", "Content-Length: 5", "Content-Length"},
		{"ANTHROPIC_CUSTOM_HEADERS", "A: x\x00y", `x\x00y`},
		{"ANTHROPIC_BETAS", "a\x01b", `a\x01b`},
		{"CLAUDE_CODE_EXTRA_BODY", "[1]", "[1]"},
		{"CLAUDE_CODE_EXTRA_BODY", "{", "{"},
		{"CLAUDE_CODE_EXTRA_BODY", "{} {}", "{}"},
	} {
		_, err := FromEnv(env(c.name, c.value))
		if err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} {
		_, err := FromEnv(env(name, "sk-secret\nX-Evil: 1"))
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := FromEnv(env("ANTHROPIC_BASE_URL", "ftp://me:hidden@x"))
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, c := range map[string]Config{
		"base URL":   {BaseURL: "nonsense"},
		"API key":    {APIKey: "a\nb"},
		"auth token": {AuthToken: "a\nb"},
		"headers":    {Headers: map[string]string{"a b": "c"}},
		"betas":      {Betas: []string{"a\n"}},
		"Version":    {Version: "a\n"},
		"UserAgent":  {UserAgent: "a\n"},
		"extra body": {ExtraBody: []byte(`7`)},
		"ca.pem":     {CAFile: empty},
		"absent.pem": {CAFile: filepath.Join(t.TempDir(), "absent.pem")},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestConnectionLimit(t *testing.T) {
	for limit, want := range map[uint64]int{0: 256, 1024: 128, 256: 32, 8: 4, 1 << 20: 256, ^uint64(0): 256} {
		if got := connectionLimit(limit); got != want {
			t.Errorf("%d descriptors: %d connections, want %d", limit, got, want)
		}
	}
}
