package anthropic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/readfile"
)

// maxConnections is how many requests of this process are under way at once:
// a process of a thousand sessions must not run out of descriptors, and its
// sessions wait their turn instead.
var maxConnections = connectionLimit(descriptorLimit())

// connectionLimit leaves seven of eight descriptors to journals, tools and
// whatever else the process does. limit 0 means that there is none.
func connectionLimit(limit uint64) int {
	const most = 256
	if limit == 0 || limit/8 > most {
		return most
	}
	return max(int(limit/8), 4)
}

// slots holds a token for each request under way. It is made at start and not
// on first use, so that no test bubble owns it.
var slots = make(chan struct{}, maxConnections)

// acquire waits for a slot.
func acquire(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case slots <- struct{}{}:
		return sync.OnceFunc(func() { <-slots }), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// network is what one transport differs from another by.
type network struct {
	caFile, certFile string
	proxied          bool // by proxy; else by the variables of the process
	proxy            Proxy
}

// transports holds the process's transports.
var transports struct {
	sync.Mutex
	by map[network]*http.Transport
}

// transportFor returns the transport for what c says of the network.
func transportFor(c Config) (*http.Transport, error) {
	n := network{caFile: c.CAFile, certFile: c.CertFile, proxied: c.Proxy != nil}
	if c.Proxy != nil {
		n.proxy = *c.Proxy
	}
	transports.Lock()
	defer transports.Unlock()
	if t := transports.by[n]; t != nil {
		return t, nil
	}
	t := newTransport()
	t.Proxy = c.Proxy.choose()
	if n.caFile != "" || n.certFile != "" {
		pool, err := poolWith(n.caFile, n.certFile)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	if transports.by == nil {
		transports.by = make(map[network]*http.Transport)
	}
	transports.by[n] = t
	return t, nil
}

// Network returns a client for requests of other kinds that reach the world as
// those to the API do: by the same proxies, and trusting the same certificates.
// It follows no redirect: it returns the answer that holds one. The error is that
// of a file of certificates.
func (c Config) Network() (*http.Client, error) {
	t, err := transportFor(c)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// writeBuffer is the transport's buffer, in bytes: a TLS record. Idle
// connections keep it.
const writeBuffer = 16 << 10

func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   30 * time.Second,
		MaxConnsPerHost:       maxConnections,
		MaxIdleConns:          maxConnections,
		MaxIdleConnsPerHost:   maxConnections,
		IdleConnTimeout:       60 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // a compressed stream of events comes in lumps
		WriteBufferSize:       writeBuffer,
	}
}

// What a file of certificates may have, in bytes (the bundles of systems have
// some 200 KB), and how long one that is a pipe is waited for.
const (
	maxCAFile  = 16 << 20
	caFileWait = 10 * time.Second
)

// poolWith is the system's pool, or in its place the certificates of certFile,
// and those of caFile.
func poolWith(caFile, certFile string) (pool *x509.CertPool, err error) {
	if certFile == "" {
		pool, err = x509.SystemCertPool()
	}
	if pool == nil || err != nil {
		pool = x509.NewCertPool()
	}
	for _, f := range [...]struct{ variable, path string }{{envCertFile, certFile}, {envExtraCA, caFile}} {
		if f.path == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), caFileWait)
		pem, err := readfile.Whole(ctx, f.path, maxCAFile)
		cancel()
		if err == nil && !pool.AppendCertsFromPEM(pem) {
			err = errors.New("the file holds no PEM certificate")
		}
		if err != nil {
			return nil, fmt.Errorf("CA file %q (%s): %w", f.path, f.variable, err)
		}
	}
	return pool, nil
}

// CloseIdleConnections closes the connections that wait for a further request.
// They close by themselves after a minute.
func CloseIdleConnections() {
	transports.Lock()
	defer transports.Unlock()
	for _, t := range transports.by {
		t.CloseIdleConnections()
	}
}

// errRedirect keeps the credentials from following a redirect elsewhere.
func refuseRedirect(req *http.Request, _ []*http.Request) error {
	return fmt.Errorf("%w to %s", errRedirect, req.URL.Redacted())
}

var errRedirect = errors.New("the endpoint answered with a redirect, which is not followed,")
