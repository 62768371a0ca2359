package anthropic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
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

// transports holds the process's transports by CA file, "" for the usual one.
var transports struct {
	sync.Mutex
	byFile map[string]*http.Transport
}

// transportFor returns the transport that trusts the certificates in caFile
// beside the system's.
func transportFor(caFile string) (*http.Transport, error) {
	transports.Lock()
	defer transports.Unlock()
	if t := transports.byFile[caFile]; t != nil {
		return t, nil
	}
	t := newTransport()
	if caFile != "" {
		pool, err := poolWith(caFile)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	if transports.byFile == nil {
		transports.byFile = make(map[string]*http.Transport)
	}
	transports.byFile[caFile] = t
	return t, nil
}

// writeBuffer is the transport's buffer, in bytes: a TLS record. Idle
// connections keep it.
const writeBuffer = 16 << 10

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment, // K-250
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

func poolWith(caFile string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("the file holds no PEM certificate")
	}
	return pool, nil
}

// CloseIdleConnections closes the connections that wait for a further request.
// They close by themselves after a minute.
func CloseIdleConnections() {
	transports.Lock()
	defer transports.Unlock()
	for _, t := range transports.byFile {
		t.CloseIdleConnections()
	}
}

// errRedirect keeps the credentials from following a redirect elsewhere.
func refuseRedirect(req *http.Request, _ []*http.Request) error {
	return fmt.Errorf("%w to %s", errRedirect, req.URL.Redacted())
}

var errRedirect = errors.New("the endpoint answered with a redirect, which is not followed,")
