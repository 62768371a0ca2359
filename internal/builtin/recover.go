package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

// What became of a call that was allowed and left no result is told from the
// file alone (design decision 15). A file is whole or as before at every
// moment (replaceFile), so that three cases are left: it has what was to be
// written, it still is as the session knew it, or nobody can say.

// recovery is a file as it is found after a crash.
type recovery struct {
	*change
	data   []byte
	info   fs.FileInfo
	exists bool
}

// findFile looks at the file of a call that was interrupted and removes what
// the call may have left beside it. ok is false when it cannot be looked at.
func findFile(ctx context.Context, c *tool.Call, path, verb string) (*recovery, bool) {
	ch, err := openChange(ctx, c, "file_path", path, verb)
	if err != nil {
		return nil, false
	}
	removeTemp(ch.target, c.Key) // most often there is none
	r := &recovery{change: ch}
	r.data, r.info, err = readForEdit(ch.target)
	switch {
	case err == nil:
		r.exists = true
	case !errors.Is(err, fs.ErrNotExist):
		ch.unlock()
		return nil, false
	}
	return r, true
}

// untouched reports whether the file surely is as it was before the call.
func (r *recovery) untouched() bool {
	if !r.exists {
		return !r.known
	}
	return r.known && r.before.Hash != "" && r.before.same(recordOf(r.info, r.data))
}

// done is the result of a call that had done its work.
func (r *recovery) done(c *tool.Call, what string) (*tool.Result, bool) {
	r.remember(c, r.data)
	return tool.Text(fmt.Sprintf("%s has been %s. (The process ended right after; the file was looked at again, and it is complete.)", r.path, what)), true
}

// notDone is the result of a call that surely changed nothing.
func (r *recovery) notDone(what string) (*tool.Result, bool) {
	text := fmt.Sprintf("%s was not %s: the process ended before that. The file is as it was; repeat the call if it is still wanted.", r.path, what)
	return &tool.Result{Content: []message.Block{message.NewText(text)}, IsError: true}, true
}

// Recover compares the file with the content that was to be written.
func (*Write) Recover(ctx context.Context, c *tool.Call) (*tool.Result, bool) {
	var in writeInput
	if json.Unmarshal(c.Input, &in) != nil {
		return nil, false
	}
	r, ok := findFile(ctx, c, in.FilePath, "written")
	if !ok {
		return nil, false
	}
	defer r.unlock()
	switch {
	case r.exists && string(r.data) == in.Content:
		return r.done(c, "written")
	case r.untouched():
		return r.notDone("written")
	}
	return nil, false
}

// Recover compares the file with the recorded one, as it is and with the edit
// taken back: where that gives the recorded hash, the edit was made.
func (*Edit) Recover(ctx context.Context, c *tool.Call) (*tool.Result, bool) {
	var in editInput
	if json.Unmarshal(c.Input, &in) != nil {
		return nil, false
	}
	r, ok := findFile(ctx, c, in.FilePath, "edited")
	if !ok {
		return nil, false
	}
	defer r.unlock()
	switch {
	case r.untouched():
		return r.notDone("edited")
	case !r.exists:
	case in.OldString == "":
		// It creates a file or fills an empty one.
		wasEmpty := !r.known || r.before.Size <= int64(len(byteOrderMark))
		if body := strings.TrimPrefix(string(r.data), byteOrderMark); wasEmpty && body == strings.TrimPrefix(in.NewString, byteOrderMark) {
			return r.done(c, "edited")
		}
	case r.known && r.before.Hash != "" && editLeadsTo(r.data, in, r.before):
		return r.done(c, "edited")
	}
	return nil, false
}

// maxTakenBack bounds the bytes that are hashed in search of the state before
// an edit.
const maxTakenBack = 256 << 20

// editLeadsTo reports whether data is what the edit makes of the content that
// before describes. The content is not at hand, but its hash proves a guess:
// the edit taken back at one of the places where its new text stands.
func editLeadsTo(data []byte, in editInput, before fileRecord) bool {
	text := string(data)
	crlf := func(s string) string { return strings.ReplaceAll(foldString(s), "\n", "\r\n") }
	spent := 0
	proven := func(size int, parts ...string) bool {
		if int64(size) != before.Size {
			return false
		}
		spent += size
		sum := sha256.New()
		for _, p := range parts {
			sum.Write([]byte(p))
		}
		return hex.EncodeToString(sum.Sum(nil)) == before.Hash
	}
	tried := map[[2]string]bool{}
	for _, pair := range [][2]string{
		{foldString(in.OldString), foldString(in.NewString)},
		{crlf(in.OldString), crlf(in.NewString)},
		{foldString(in.OldString), in.NewString}, // a file without line ends takes those given
	} {
		was, is := strings.TrimPrefix(pair[0], byteOrderMark), strings.TrimPrefix(pair[1], byteOrderMark)
		if tried[pair] {
			continue
		}
		tried[pair] = true
		if in.ReplaceAll && is != "" {
			whole := strings.ReplaceAll(text, is, was)
			if proven(len(whole), whole) {
				return true
			}
		}
		for at := 0; at <= len(text) && spent <= maxTakenBack; at++ {
			i := strings.Index(text[at:], is)
			if i < 0 {
				break
			}
			at += i
			if proven(len(text)-len(is)+len(was), text[:at], was, text[at+len(is):]) {
				return true
			}
		}
	}
	return false
}

var (
	_ tool.Recoverer = (*Write)(nil)
	_ tool.Recoverer = (*Edit)(nil)
)
