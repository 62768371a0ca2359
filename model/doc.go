// Package model is the seam to language models: the Model interface, the
// request in the form of the Messages API, typed errors, and what all
// providers share: retries with back-off, the idle watchdog and the Catalog of
// prices and capabilities.
//
// A provider speaks Messages API events (docs/design.md). The Anthropic client
// is in model/anthropic.
package model
