// Package wire carries the frames between a client process and the binary
// (docs/contract/wire-protocol.md): it decodes the lines of standard input,
// whatever their length, and writes whole lines to standard output.
//
// A [Conn] reads on one goroutine, which never waits for standard output, and
// writes on another one. What the frames mean is decided by a [Handler]; the
// package knows neither session nor engine. Requests go both ways: a
// [Request] is answered by the handler, [Conn.Call] asks the client.
package wire
