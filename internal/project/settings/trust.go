package settings

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/permission"
)

// trust says whether the folder of the session is trusted. Nothing is read
// until somebody asks.
type trust struct {
	dir    string // where the session starts
	global string // the file in which trust is recorded; "": none
}

// maxGlobal bounds the global file, in bytes.
const maxGlobal = 64 << 20

// root is what trust is recorded for: the repository, or the folder outside of
// one. Trust in a folder above does not count (P-103).
func (t *trust) root() string {
	if repo := repository(t.dir); repo != "" {
		return repo
	}
	return t.dir
}

// repository is the directory at or above dir that has .git in it; "": none.
func repository(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// given reports whether the folder is trusted. What cannot be read trusts
// nothing.
func (t *trust) given() bool {
	if t.global == "" {
		return false
	}
	f, err := os.Open(t.global)
	if err != nil {
		return false
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, maxGlobal))
	if err != nil || !json.Valid(doc) {
		return false
	}
	for _, key := range []string{"projects", t.root(), "hasTrustDialogAccepted"} {
		for len(doc) > 0 && (doc[0] == ' ' || doc[0] == '\t' || doc[0] == '\n' || doc[0] == '\r') {
			doc = doc[1:]
		}
		if !rawjson.IsObject(doc) {
			return false
		}
		found := rawjson.Member(doc, key)
		if alt := filepath.ToSlash(key); found == nil && alt != key { // Windows: either kind of slash
			found = rawjson.Member(doc, alt)
		}
		doc = found
	}
	return string(doc) == "true"
}

// waits reports whether what the layer grants waits for trust: the project's
// shared file does, and the local one where it may have come with the
// repository (P-101, P-104).
func (t *trust) waits(l *Layer) bool {
	switch l.Source {
	case permission.SourceProject:
		return true
	case permission.SourceLocal:
		for _, path := range []string{filepath.Dir(l.File), l.File} {
			if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink != 0 {
				return true
			}
		}
		repo := repository(t.dir)
		return repo != "" && tracked(repo, l.File)
	}
	return false
}

// how tells a person what to do about it.
func (t *trust) how() string {
	if t.global == "" {
		return "this workspace has not been trusted, and there is no configuration home to record trust in."
	}
	return fmt.Sprintf("this workspace has not been trusted. Trust is recorded as projects[%q].hasTrustDialogAccepted in %s.", t.root(), t.global)
}
