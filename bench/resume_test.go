package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

const resumeID = "0e5f0000-0000-4000-8000-000000000001"

// writeSession writes a session of about size bytes: an assistant line with a
// call, its permission, its result of some kilobytes of text and the state of the
// turn, again and again. With boundary a compaction stands before its last tenth.
func writeSession(b *testing.B, path string, size int, boundary bool) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	out := bufio.NewWriterSize(f, 1<<20)
	w := &journal.Writer{SessionID: resumeID, CWD: "/home/u/project", Version: "bench"}
	written, n := 0, 0
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	put := func(e loop.Entry) {
		n++
		at = at.Add(time.Second)
		if e.Time = at; e.Chain() {
			e.UUID = fmt.Sprintf("0e5f0000-0000-4000-8000-%012d", n)
		}
		line, err := w.Encode(e)
		if err != nil {
			b.Fatal(err)
		}
		written += len(line) + 1
		_, _ = out.Write(append(line, '\n'))
	}
	source := strings.Repeat("func (s *Session) rest() {\n\ts.active = false\n\tif len(s.running) > 0 {\n\t\treturn // \"still\" working\n\t}\n}\n", 80)
	put(loop.Entry{Kind: loop.KindOpen, Open: &loop.Settings{Format: journal.Format, SessionID: resumeID, Model: "m", Mode: "default"}})
	put(loop.Entry{Kind: loop.KindUser, User: &loop.UserEntry{Content: message.TextContent("Find all faults and mend them.")}})
	turn := loop.Turn{State: loop.Model, Seq: 1, Input: "i", Started: at, Usage: message.Usage{InputTokens: 100, OutputTokens: 7}}
	for i := 0; written < size; i++ {
		if boundary && written > size-size/10 {
			boundary = false
			put(loop.Entry{Kind: loop.KindSystem, System: &loop.SystemEntry{Trigger: "auto", PreTokens: 100}})
			put(loop.Entry{Kind: loop.KindUser, User: &loop.UserEntry{Content: message.TextContent("What was done."), Summary: true}})
		}
		id := fmt.Sprintf("toolu_%d", i)
		turn.Seq++
		turn.ToolTurns++
		put(loop.Entry{Kind: loop.KindAssistant, Assistant: &loop.AssistantEntry{Message: message.APIMessage{
			ID: "msg_" + id, Type: "message", Role: "assistant", Model: "m", Content: []message.Block{
				message.NewText("The next file needs a look; I read it whole, since the fault may be anywhere."),
				message.NewToolUse(id, "Read", []byte(`{"file_path":"/home/u/project/session.go"}`)),
			},
		}}})
		put(loop.Entry{Kind: loop.KindCall, Call: &loop.CallEntry{Op: loop.CallsRequested, Calls: []loop.Call{{ID: id, Name: "Read", Key: fmt.Sprintf("%d.0", turn.Seq), Repeatable: true}}}})
		turn.State = loop.Tools
		put(loop.Entry{Kind: loop.KindTurn, Turn: &loop.TurnEntry{Turn: turn}})
		put(loop.Entry{Kind: loop.KindCall, Call: &loop.CallEntry{Op: loop.CallAllowed, Key: fmt.Sprintf("%d.0", turn.Seq)}})
		put(loop.Entry{Kind: loop.KindUser, User: &loop.UserEntry{ToolUseID: id, Content: message.BlockContent(message.NewToolResult(id, message.TextContent(source[i%400:]), false))}})
		turn.State, turn.Seq = loop.Model, turn.Seq+1
		put(loop.Entry{Kind: loop.KindTurn, Turn: &loop.TurnEntry{Turn: turn}})
	}
	turn = loop.Turn{State: loop.Idle, Seq: turn.Seq}
	put(loop.Entry{Kind: loop.KindTurn, Turn: &loop.TurnEntry{Turn: turn}})
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkResume reads a session of 100 MB into a machine, beside reading its
// file and beside checking its lines, in turn. It reports the ratios of medians and
// the heap that the resumed session holds and that was allocated for it at most,
// by the size of its live lines.
func BenchmarkResume(b *testing.B) {
	const size = 100 << 20
	for name, boundary := range map[string]bool{"compacted": true, "live": false} {
		b.Run(name, func(b *testing.B) {
			home, dir := b.TempDir(), b.TempDir()
			store, err := file.New(file.Config{ConfigDir: home, ProjectDirName: "p"})
			if err != nil {
				b.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(home, "projects", "p"), 0o700); err != nil {
				b.Fatal(err)
			}
			path := filepath.Join(home, "projects", "p", resumeID+".jsonl")
			writeSession(b, path, size, boundary)
			var reads, valids, resumes []time.Duration
			var held uint64
			for b.Loop() {
				runtime.GC()
				start := time.Now()
				raw, err := os.ReadFile(path)
				if err != nil {
					b.Fatal(err)
				}
				reads = append(reads, time.Since(start))
				start = time.Now()
				for line := range bytes.Lines(raw) {
					if !json.Valid(line) {
						b.Fatal("not valid")
					}
				}
				valids = append(valids, time.Since(start))
				raw = nil
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				start = time.Now()
				j, err := store.Open(b.Context(), resumeID, session.OpenOptions{Dir: dir})
				if err != nil {
					b.Fatal(err)
				}
				t, err := journal.Read(j.Load(b.Context()))
				if err != nil {
					b.Fatal(err)
				}
				m := loop.Fold(loop.Config{SessionID: resumeID}, slices.Values(t.Entries))
				resumes = append(resumes, time.Since(start))
				t = nil
				runtime.GC()
				runtime.ReadMemStats(&after)
				held = after.HeapAlloc - before.HeapAlloc
				if m.History().Len() < 100 {
					b.Fatal("the history is short")
				}
				runtime.KeepAlive(m)
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
			}
			median := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2]) }
			live := float64(size)
			if boundary {
				live /= 10
			}
			b.ReportMetric(median(resumes)/median(reads), "x-ReadFile")
			b.ReportMetric(median(resumes)/median(valids), "x-Valid")
			b.ReportMetric(float64(held)/live, "held/live")
			b.ReportMetric(median(resumes)/1e6, "ms")
		})
	}
}
