// Package bench measures what the loop costs: a turn in process, and a turn
// over loopback beside a bare client that makes the same requests, and searches
// beside ripgrep.
//
//	go test ./bench -run '^$' -bench Loopback -benchtime 300x -count 5
//	go test ./bench -run '^$' -bench Search -benchtime 8x
//
// docs/performance.md has the figures and what they mean.
package bench
