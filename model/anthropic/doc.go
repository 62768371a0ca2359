// Package anthropic is the client for the Anthropic Messages API, and for
// every server that speaks it: one streaming attempt a request, over net/http.
//
// Requests are assembled by joining the bytes that the content blocks already
// have; nothing is encoded twice. Retries, watchdog and error texts live in
// package model, shared by all providers.
package anthropic
