package model

import (
	"fmt"
	"net/http"
	"strings"
)

// vendorHost is the endpoint whose status page a hint may name (L-109).
const vendorHost = "api.anthropic.com"

// maxMessage bounds the part of an API message that a text shows, in bytes.
const maxMessage = 2000

// text renders the failure that ended the call (L-91, L-92, L-95, L-100, L-109).
func (c *call) text(e *Error) string {
	t := plainText(e)
	if e.RequestID != "" && e.Kind != KindAborted {
		t += " (request id " + e.RequestID + ")"
	}
	return t
}

func plainText(e *Error) string {
	if e.Kind == KindAborted {
		return "Request was aborted"
	}
	if e.Progress == ProgressBlock {
		cause := "Server error mid-response"
		switch e.Kind {
		case KindConnection, KindTimeout, KindTLS:
			cause = "Connection lost mid-response"
		case KindStalled:
			cause = "The response stopped arriving"
		}
		return "API Error: " + cause + ". The response above may be incomplete."
	}
	if e.Kind == KindConnection && e.Progress == ProgressThinkingDone {
		return "Connection lost before a response was produced"
	}
	msg := clip(e.Message)
	switch e.Kind {
	case KindStalled:
		return "The response stalled before a response was produced"
	case KindTooLong, KindMaxTokensTooLarge:
		return "Prompt is too long"
	case KindTimeout:
		return "Request timed out" + hint(e)
	case KindOverloaded:
		return "API Error: Repeated 529 Overloaded errors" + hint(e)
	case KindRateLimit:
		t := "API Error: Request rejected (429)"
		if msg != "" {
			t += " · " + msg
		}
		return t
	case KindEmpty, KindMalformed:
		t := fmt.Sprintf("API returned an empty or malformed response (HTTP %d)", orOK(e.Status))
		if msg != "" {
			t += ": " + msg
		}
		return t + hint(e)
	}
	if msg == "" {
		msg = http.StatusText(e.Status)
	}
	if e.Status != 0 {
		msg = strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, msg))
	}
	if msg == "" {
		msg = "unknown error"
	}
	return "API Error: " + msg + hint(e)
}

// orOK returns the status of an answer that was no error: a response that
// turned out empty or malformed came with 200.
func orOK(status int) int {
	if status == 0 {
		return http.StatusOK
	}
	return status
}

// hint says where to look. With an endpoint of the user's own the vendor's
// status page would mislead (L-109).
func hint(e *Error) string {
	switch e.Kind {
	case KindServer, KindOverloaded, KindTimeout, KindMalformed, KindEmpty, KindConnection, KindTLS:
	default:
		return ""
	}
	switch {
	case e.Host == "":
		return ""
	case e.Host != vendorHost:
		return " · check the endpoint " + e.Host
	case e.Kind == KindConnection || e.Kind == KindTLS:
		return " · check the network connection to " + e.Host
	}
	return " · usually temporary; if it persists see https://status.claude.com"
}

// clip keeps a text readable: one line, bounded.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}
