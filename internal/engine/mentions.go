package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// mention is "@path" or @"path with blanks" in a prompt, at its begin or behind a
// blank or an opening bracket: an address of mail is none.
var mention = regexp.MustCompile(`(?:^|[\s(\[{<])@(?:"([^"\n]+)"|([^\s"]+))`)

// maxMentions is how many files one prompt can bring along.
const maxMentions = 20

// mentionedFiles are the files that a prompt names, absolute, without doubles.
func mentionedFiles(prompt, dir, home string) (paths []string) {
	for _, m := range mention.FindAllStringSubmatch(prompt, -1) {
		name := m[1]
		if name == "" {
			name = m[2]
		}
		for ; name != ""; name = name[:len(name)-1] {
			path := filepath.FromSlash(name)
			switch rest, ok := strings.CutPrefix(name, "~/"); {
			case ok && home != "":
				path = filepath.Join(home, filepath.FromSlash(rest))
			case !filepath.IsAbs(path):
				path = filepath.Join(dir, path)
			}
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				if !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
				break
			}
			if m[1] != "" || !strings.ContainsAny(name[len(name)-1:], ".,;:!?)]}>'`") {
				break // only what ends a sentence may stand behind a path
			}
		}
		if len(paths) == maxMentions {
			break
		}
	}
	return paths
}

// mentions are the files that come with an input. One that no person wrote brings
// none.
func (s *Session) mentions(ctx context.Context, in *loop.Input) []message.Block {
	if in.Synthetic || isInjected(in) {
		return nil
	}
	return s.mentioned(ctx, in.Content.Text())
}

// mentioned reads the files that a prompt names with "@path", as the tool Read
// does. There is no call, so no hook is asked, and nobody else either: a file
// that Read may not read without a question stays a word of the prompt (H-126).
func (s *Session) mentioned(ctx context.Context, prompt string) (blocks []message.Block) {
	t, spec, ok := s.tools.Get("Read")
	if !ok || !strings.Contains(prompt, "@") {
		return nil
	}
	for i, path := range mentionedFiles(prompt, s.cfg.Dir, s.cfg.Getenv("HOME")) {
		input, err := message.Encode(map[string]string{"file_path": path})
		if err == nil {
			input, err = s.tools.Prepare(s.env(), spec.Name, input)
		}
		if err != nil {
			continue // a tool of another kind
		}
		var approved []permission.Access
		dec, err := s.decideWith(t, spec, input, func(r *permission.Request) { approved = r.Accesses })
		if err != nil || dec.Behavior != permission.Allow {
			s.debugMention(path, "it is not allowed: "+dec.Reason)
			continue
		}
		blocks = append(blocks, s.attach(ctx, t, spec, input, approved, path, "mention/"+NewID()+"/"+strconv.Itoa(i))...)
	}
	return blocks
}

// attach is what the model gets of one file.
func (s *Session) attach(ctx context.Context, t tool.Tool, spec tool.Spec, input json.RawMessage, approved []permission.Access, path, key string) []message.Block {
	res, err := callSafely(ctx, t, spec, &tool.Call{
		ID: key, Key: s.cfg.Loop.SessionID + "/" + key, Name: spec.Name, Input: input, Env: s.env(), Approved: approved,
	})
	if err != nil || res == nil || res.IsError {
		s.debugMention(path, "it cannot be read")
		return nil
	}
	var text []string
	var rest []message.Block
	for _, b := range res.Content {
		if b.Type() == message.TypeText {
			text = append(text, b.Text())
		} else {
			rest = append(rest, b)
		}
	}
	f := loop.Finished{}
	s.broughtAlong(ctx, t, spec.Name, input, &f)
	for _, note := range f.State {
		s.state.Set(note.Key, note.Value) // it is written with the next call
	}
	head := "The prompt mentions the file " + path + ". The tool " + spec.Name + " returns for it:\n"
	blocks := append([]message.Block{message.NewText(reminder(head + strings.Join(text, "\n")))}, rest...)
	return append(blocks, f.Context...)
}

func (s *Session) debugMention(path, why string) {
	if s.cfg.Debug != nil {
		s.cfg.Debug("prompt", "@"+path+" is not attached: "+why)
	}
}
