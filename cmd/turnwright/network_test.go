//go:build unix

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// proxy is an HTTP proxy that hands everything to one server, whatever host it
// is for, and remembers what it was asked for. No name is ever looked up.
type proxy struct {
	*httptest.Server
	plain, tunnel string // addresses of the servers behind it: for http, and for CONNECT

	mu    sync.Mutex
	asked []string
}

func newProxy(t *testing.T, plain, tunnel string) *proxy {
	t.Helper()
	p := &proxy{plain: plain, tunnel: tunnel}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI)
	p.mu.Unlock()
	to := p.plain
	if r.Method == http.MethodConnect {
		to = p.tunnel
	}
	there, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	if r.Method != http.MethodConnect {
		if err := r.Write(there); err != nil {
			return
		}
	}
	here, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if r.Method == http.MethodConnect {
		if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return
		}
	}
	go func() {
		_, _ = io.Copy(there, here)
		_ = there.Close()
	}()
	_, _ = io.Copy(here, there)
}

// seen returns what was asked for, each once.
func (p *proxy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.asked)
	return slices.Compact(slices.Clone(p.asked))
}

func host(url string) string {
	return strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://")
}

// secure serves srv over TLS as model.test. It returns the address and the file
// with the certificate, which nobody trusts who was not told to.
func secure(t *testing.T, srv *agenttest.Server) (address, certFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"model.test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(srv)
	front.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	front.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	front.StartTLS()
	t.Cleanup(front.Close)
	certFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600); err != nil {
		t.Fatal(err)
	}
	return front.Listener.Addr().String(), certFile
}

// runs runs the command with more variables and returns its exit code, output
// and what it wrote to standard error.
func runs(t *testing.T, srv *agenttest.Server, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := command(t, srv, args...)
	p.Env = append(p.Env, env...)
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	code = p.end()
	return code, out.String(), p.stderr.String()
}

// TestProxyAndCertificates reaches a model that only a proxy knows, with
// certificates that only the user knows.
func TestProxyAndCertificates(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "K-250")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("Hello.")))
	address, certs := secure(t, srv)
	nothing := filepath.Join(t.TempDir(), "nothing.pem")
	if err := os.WriteFile(nothing, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	const plain, sealed = "POST http://model.test/v1/messages", "CONNECT model.test:443"
	for _, tt := range []struct {
		name string
		env  []string // PROXY stands for the proxy's URL
		seen string   // by the proxy
		says string   // "": it works
	}{
		{"http", []string{"ANTHROPIC_BASE_URL=http://model.test", "HTTP_PROXY=PROXY"}, plain, ""},
		{"lower case", []string{"ANTHROPIC_BASE_URL=http://model.test", "http_proxy=PROXY"}, plain, ""},
		{"not for this host", []string{"HTTP_PROXY=PROXY", "HTTPS_PROXY=PROXY"}, "", ""}, // the model is on the own machine
		{"https, further certificates", []string{"ANTHROPIC_BASE_URL=https://model.test", "HTTPS_PROXY=PROXY", "NODE_EXTRA_CA_CERTS=" + certs}, sealed, ""},
		{"https, other certificates", []string{"ANTHROPIC_BASE_URL=https://model.test", "HTTPS_PROXY=PROXY", "SSL_CERT_FILE=" + certs}, sealed, ""},
		{"https, both", []string{"ANTHROPIC_BASE_URL=https://model.test", "HTTPS_PROXY=PROXY", "SSL_CERT_FILE=" + certs, "NODE_EXTRA_CA_CERTS=" + certs}, sealed, ""},
		{"https, not trusted", []string{"ANTHROPIC_BASE_URL=https://model.test", "HTTPS_PROXY=PROXY"}, sealed, "certificate"},
		{"no proxy there", []string{"ANTHROPIC_BASE_URL=http://model.test", "HTTP_PROXY=http://127.0.0.1:1"}, "", "127.0.0.1:1"},
		{"no proxy", []string{"HTTPS_PROXY=ftp://p.test"}, "", `HTTPS_PROXY: "ftp://p.test"`},
		{"no such file", []string{"ANTHROPIC_BASE_URL=https://model.test", "HTTPS_PROXY=PROXY", "SSL_CERT_FILE=/no/such/file"}, "", `"/no/such/file" (SSL_CERT_FILE)`},
		{"a file without end", []string{"ANTHROPIC_BASE_URL=https://model.test", "HTTPS_PROXY=PROXY", "SSL_CERT_FILE=/dev/zero"}, "", `/dev/zero: is larger than 16 MiB`},
		{"no certificates in it", []string{"ANTHROPIC_BASE_URL=https://model.test", "HTTPS_PROXY=PROXY", "NODE_EXTRA_CA_CERTS=" + nothing}, "", "(NODE_EXTRA_CA_CERTS): the file holds no PEM certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProxy(t, host(srv.URL()), address)
			var env []string
			for _, kv := range tt.env {
				env = append(env, strings.ReplaceAll(kv, "PROXY=PROXY", "PROXY="+p.URL))
				env[len(env)-1] = strings.ReplaceAll(env[len(env)-1], "proxy=PROXY", "proxy="+p.URL)
			}
			code, out, errs := runs(t, srv, env, "-p", "hi")
			if tt.says == "" && (code != 0 || out != "Hello.\n" || errs != "") {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
			}
			if tt.says != "" && (code != 1 || !strings.Contains(errs, tt.says)) {
				t.Errorf("exit code %d, stderr %q has no %q", code, errs, tt.says)
			}
			if got := strings.Join(p.seen(), ", "); got != tt.seen {
				t.Errorf("the proxy was asked for %q, want %q", got, tt.seen)
			}
		})
	}
}

// TestNoOtherTraffic has all that leaves the process go through a proxy that
// notes it: requests to the model and nothing else, whether or not the switches
// are set that other programs need for it.
func TestNoOtherTraffic(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "K-245")
	var requests [2][]byte
	for i, env := range [][]string{nil, {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DO_NOT_TRACK=1", "DISABLE_AUTOUPDATER=1"}} {
		srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("Bash", `{"command":"echo hello"}`), agenttest.Text("Done.")))
		p := newProxy(t, host(srv.URL()), "127.0.0.1:1")
		env = append(env, "ANTHROPIC_BASE_URL=http://model.test", "HTTP_PROXY="+p.URL, "HTTPS_PROXY="+p.URL)
		code, out, errs := runs(t, srv, env, "-p", "go", "--system-prompt", "same")
		if code != 0 || out != "Done.\n" || errs != "" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", env, code, out, errs)
		}
		if got := p.seen(); !slices.Equal(got, []string{"POST http://model.test/v1/messages"}) || srv.Count() != 2 {
			t.Errorf("%q: %d requests, the proxy was asked for %q", env, srv.Count(), got)
		}
		requests[i] = srv.Requests()[0].Body
	}
	if !bytes.Equal(requests[0], requests[1]) {
		t.Errorf("the switches change what is sent:\n%s\n%s", requests[0], requests[1])
	}
}

// TestClientsInUserAgent tells the endpoint which client started the process.
func TestClientsInUserAgent(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "K-225")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("Hello.")))
	for want, env := range map[string][]string{
		"turnwright":                             nil,
		"turnwright (sdk-py, agent-sdk/0.2.189)": {"CLAUDE_CODE_ENTRYPOINT=sdk-py", "CLAUDE_AGENT_SDK_VERSION=0.2.189"},
	} {
		env = append([]string{"CLAUDE_CODE_ENTRYPOINT=", "CLAUDE_AGENT_SDK_VERSION=", "CLAUDE_AGENT_SDK_CLIENT_APP="}, env...)
		if code, _, errs := runs(t, srv, env, "-p", "hi"); code != 0 {
			t.Errorf("exit code %d: %s", code, errs)
		}
		if got := srv.Last().Header.Get("User-Agent"); got != want {
			t.Errorf("User-Agent %q, want %q", got, want)
		}
	}
}
