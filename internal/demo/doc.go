// Package demo runs the reference scenario of docs/contract/loop.md (L-16)
// without a key and without a network: a scripted model on loopback repairs a
// small broken project in four turns, through the same path as every run:
// HTTP, streaming, tools, journal.
package demo
