package turnwright_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session/file"
)

// largeHome makes a home with n sessions of which every one is as large as a
// head and a tail together, and one that is larger than any memory.
func largeHome(t testing.TB, n int) turnwright.Sessions {
	t.Helper()
	s := turnwright.Sessions{ConfigDir: t.TempDir(), Dir: t.TempDir()}
	project := filepath.Join(s.ConfigDir, "projects", file.ProjectName(s.Dir))
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f, err := os.Create(filepath.Join(project, sid(i)+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		size := int64(128 << 10)
		if i == 0 {
			size = 1 << 40
		}
		title := fmt.Sprintf(`{"type":"custom-title","customTitle":"title %d","sessionId":"%s"}`+"\n", i, sid(i))
		_, err = f.WriteString(said1(sid(i), "/x", strings.Repeat("x", 100)) + "\n")
		if err == nil { // a hole takes no room on disk
			_, err = f.WriteAt([]byte("\n"+title), size-int64(len(title))-1)
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			t.Skipf("the disk holds no files with holes: %v", err)
		}
	}
	return s
}

// Listing takes as much memory for a session as its name does, however many and
// however large they are.
func TestListMemory(t *testing.T) {
	conform.Covers(t, "S-72", "K-340")
	n := 10_000
	if testing.Short() {
		n = 1_000
	}
	s := largeHome(t, n)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	count, most := 0, int64(0)
	for info, err := range s.List(t.Context(), turnwright.Page{}) {
		if err != nil || !strings.HasPrefix(info.CustomTitle, "title ") || !strings.HasPrefix(info.FirstPrompt, "xxx") {
			t.Fatalf("%+v, %v", info, err)
		}
		if count++; count%(n/10) == 0 {
			most = max(most, heap()-before)
		}
	}
	if count != n {
		t.Errorf("%d sessions are listed", count)
	}
	const each, fixed = 512, 1 << 20 // bytes
	t.Logf("%d bytes for %d sessions", most, n)
	if limit := int64(n)*each + fixed; most > limit {
		t.Errorf("listing %d sessions takes %d bytes, more than %d", n, most, limit)
	}
}

func BenchmarkListSessions(b *testing.B) {
	s := largeHome(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range s.List(b.Context(), turnwright.Page{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
