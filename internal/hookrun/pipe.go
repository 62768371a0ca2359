package hookrun

import (
	"bytes"
	"os"
	"sync"
)

// maxCapture is how much of each of a command's outputs is kept, in bytes. What
// is more is read, so that the command does not block, and dropped.
const maxCapture = 1 << 20

// captured is what a command has written.
type captured struct {
	mu                   sync.Mutex
	stdout, stderr, both []byte // both: as they came
}

func (c *captured) addStdout(b []byte) { c.add(&c.stdout, b) }
func (c *captured) addStderr(b []byte) { c.add(&c.stderr, b) }

func (c *captured) add(to *[]byte, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b = b[:min(len(b), maxCapture-len(*to))]
	*to = append(*to, b...)
	c.both = append(c.both, b...)
}

// texts are the outputs so far, for people.
func (c *captured) texts() (stdout, stderr, both string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return text(c.stdout), text(c.stderr), text(c.both)
}

func text(b []byte) string { return string(bytes.ToValidUTF8(b, []byte("\uFFFD"))) }

// pipe takes one output of a command. The end of the command's own output is
// known by a mark that is written when it has exited: its children may hold the
// pipe open for ever (B-073).
type pipe struct {
	r, w *os.File
	end  []byte
	done chan struct{} // closed when the mark was read
}

func newPipe(end []byte) (*pipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &pipe{r: r, w: w, end: end, done: make(chan struct{})}, nil
}

// pump hands on what is read before the mark.
func (p *pipe) pump(take func([]byte)) {
	defer close(p.done)
	var held []byte // the last piece may begin the mark
	buf := make([]byte, 32<<10)
	for {
		n, err := p.r.Read(buf)
		held = append(held, buf[:n]...)
		if i := bytes.Index(held, p.end); i >= 0 {
			take(held[:i])
			return
		}
		keep := len(held)
		if err == nil {
			keep = len(held) - p.begun(held)
		}
		take(held[:keep])
		held = append(held[:0], held[keep:]...)
		if err != nil {
			return
		}
	}
}

// begun returns how many bytes at the end of b may be the beginning of the mark.
func (p *pipe) begun(b []byte) int {
	for n := min(len(p.end)-1, len(b)); n > 0; n-- {
		if bytes.HasPrefix(p.end, b[len(b)-n:]) {
			return n
		}
	}
	return 0
}

// drain waits until everything has been taken that was written before. It takes
// no time: pump reads.
func (p *pipe) drain() {
	_, _ = p.w.Write(p.end)
	<-p.done
}

func (p *pipe) close() {
	if p == nil {
		return
	}
	_ = p.w.Close()
	_ = p.r.Close()
}
