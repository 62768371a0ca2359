package file

import (
	"container/list"
	"sync"

	"github.com/turnwright/turnwright/internal/vfs"
)

// maxOpen bounds the files that all stores of the process hold open together.
const maxOpen = 64

// files is shared by all stores: the limit on descriptors is the process's.
var files = newPool(maxOpen)

// pool hands out places for open files. A place is either in use, or holds the
// idle file of a journal, which is closed when somebody needs its place.
//
// Nobody waits for a place while holding one, so the pool cannot lock up.
type pool struct {
	mu   sync.Mutex
	free sync.Cond
	max  int
	used int       // places taken, those of idle files included
	open list.List // *handle, the most recently used first
}

func newPool(most int) *pool {
	p := &pool{max: most}
	p.free.L = &p.mu
	return p
}

// handle is the append file of one journal, if it is open.
type handle struct {
	file vfs.File
	elem *list.Element // place in pool.open while the file is open
	busy bool          // borrowed
}

// take waits for a place.
func (p *pool) take() {
	p.mu.Lock()
	p.takeLocked()
	p.mu.Unlock()
}

func (p *pool) takeLocked() {
	for p.used >= p.max {
		if !p.evictOne() {
			p.free.Wait()
		}
	}
	p.used++
}

// evictOne closes the idle file that was not used for the longest time.
func (p *pool) evictOne() bool {
	for e := p.open.Back(); e != nil; e = e.Prev() {
		if h := e.Value.(*handle); !h.busy {
			p.close(h)
			return true
		}
	}
	return false
}

// close closes an idle file. What it wrote is with the system already, so an
// error of closing has nothing to say.
func (p *pool) close(h *handle) {
	p.open.Remove(h.elem)
	_ = h.file.Close()
	h.file, h.elem = nil, nil
	p.used--
}

// give returns a place.
func (p *pool) give() {
	p.mu.Lock()
	p.used--
	p.mu.Unlock()
	p.free.Signal()
}

// borrow makes the journal's file usable, opening it if it is not at hand.
func (p *pool) borrow(h *handle, open func() (vfs.File, error)) (vfs.File, error) {
	p.mu.Lock()
	if h.file != nil {
		h.busy = true
		p.open.MoveToFront(h.elem)
		p.mu.Unlock()
		return h.file, nil
	}
	p.takeLocked()
	p.mu.Unlock()
	f, err := open()
	if err != nil {
		p.give()
		return nil, err
	}
	p.mu.Lock()
	h.file, h.busy = f, true
	h.elem = p.open.PushFront(h)
	p.mu.Unlock()
	return f, nil
}

// put makes a borrowed file idle.
func (p *pool) put(h *handle) {
	p.mu.Lock()
	h.busy = false
	p.mu.Unlock()
	p.free.Signal()
}

// drop closes the journal's file, which is not borrowed.
func (p *pool) drop(h *handle) {
	p.mu.Lock()
	if h.file != nil {
		p.close(h)
	}
	p.mu.Unlock()
	p.free.Signal()
}
