package anthropic

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/turnwright/turnwright/model"
)

// maxErrorBody is how much of an error answer is read, in bytes.
const maxErrorBody = 64 << 10

// streamError returns the error that an error event stands for.
func streamError(ev *wireEvent) error {
	e := &model.Error{Kind: model.KindServer, RequestID: ev.RequestID}
	if ev.Error != nil {
		e.Type, e.Message = ev.Error.Type, ev.Error.Message
		if k := model.KindOf(0, e.Type, e.Message); k != model.KindUnknown {
			e.Kind = k
		}
	}
	return e
}

// lost returns the error for a request that got no answer.
func (c *Client) lost(ctx context.Context, err error) *model.Error {
	err = withoutURL(err)
	e := &model.Error{Kind: model.KindConnection, Message: err.Error(), Err: err, Host: c.host}
	switch {
	case ctx.Err() != nil:
		e.Kind = model.KindAborted
	case isCertificate(err):
		e.Kind = model.KindTLS
	case errors.Is(err, errRedirect):
		e.Kind = model.KindMalformed
	}
	return e
}

// isCertificate reports whether err is a failed validation of a certificate,
// by us or by the server (L-98). Other TLS trouble may pass.
func isCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.SystemRootsError](err); ok {
		return true
	}
	alert, ok := errors.AsType[tls.AlertError](err)
	// bad_certificate to unknown_ca, and certificate_required (RFC 8446, 6.2).
	return ok && (alert >= 42 && alert <= 48 || alert == 116)
}

// refused returns the error for an answer with a status other than 200.
func (c *Client) refused(answer *http.Response) *model.Error {
	raw, readErr := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody))
	e := &model.Error{
		Status:     answer.StatusCode,
		RequestID:  requestID(answer.Header),
		RetryAfter: retryAfter(answer.Header, time.Now()),
		Host:       c.host,
	}
	switch strings.ToLower(answer.Header.Get("X-Should-Retry")) {
	case "true":
		e.ShouldRetry = new(true)
	case "false":
		e.ShouldRetry = new(false)
	}
	var ev wireEvent
	if json.Unmarshal(raw, &ev) == nil && ev.Error != nil {
		e.Type, e.Message = ev.Error.Type, ev.Error.Message
		e.RequestID = cmp.Or(e.RequestID, ev.RequestID)
	} else {
		e.Message = plainMessage(answer, raw)
	}
	e.Kind = model.KindOf(e.Status, e.Type, e.Message)
	e.Err = readErr // the status says enough even when the body broke off
	return e
}

// plainMessage makes words of an error body that is not the API's: a proxy's
// page says no more than its status.
func plainMessage(answer *http.Response, raw []byte) string {
	const most = 300
	s := strings.TrimSpace(strings.ToValidUTF8(string(raw), "\uFFFD"))
	if s == "" || s[0] == '<' {
		return http.StatusText(answer.StatusCode)
	}
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// broken returns the error for a stream that failed with err.
func (c *Client) broken(ctx context.Context, err error, id string) *model.Error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		e = &model.Error{Kind: model.KindConnection, Message: err.Error(), Err: err}
		if ctx.Err() != nil {
			e.Kind = model.KindAborted
		}
	}
	e.Host = c.host
	e.RequestID = cmp.Or(id, e.RequestID)
	return e
}

// notAStream returns the error for a 200 answer that is neither events nor a
// Messages object.
func notAStream(answer *http.Response, body io.Reader) error {
	raw, _ := io.ReadAll(io.LimitReader(body, 200))
	return &model.Error{
		Kind: model.KindMalformed, Status: answer.StatusCode,
		Message: strings.TrimSpace(fmt.Sprintf("%s %.120q", answer.Header.Get("Content-Type"), raw)),
	}
}

func requestID(h http.Header) string {
	return cmp.Or(h.Get("Request-Id"), h.Get("X-Request-Id"))
}

// retryAfter returns how long the server asks to wait: retry-after-ms, or
// retry-after in seconds or as a date; 0 for none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return seconds(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return seconds(s)
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	// The server's own clock tells best how far away its date is.
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(t.Sub(now), 0)
}

// seconds converts s; what is no sensible wait is none.
func seconds(s float64) time.Duration {
	const most = 366 * 24 * 3600
	if !(s > 0) { // also not a number
		return 0
	}
	return time.Duration(min(s, most) * float64(time.Second))
}
