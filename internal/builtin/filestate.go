package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"

	"github.com/turnwright/turnwright/tool"
)

// fileRecord is what the session remembers of a file that was read or written
// (T-57, T-79). It is stored in Env.State under recordKey.
type fileRecord struct {
	Hash    string `json:"hash,omitempty"` // SHA-256 of the content; "" for a file too large to be hashed
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime"`             // nanoseconds since 1970
	Partial bool   `json:"partial,omitempty"` // only a PARTIAL view was shown
}

// recordKey is the key of the record of a file; target is its path resolved
// through links, so that a file has one record whatever it is called.
func recordKey(target string) string { return "file:" + target }

func loadRecord(s *tool.State, target string) (fileRecord, bool) {
	raw := s.Get(recordKey(target))
	if raw == nil {
		return fileRecord{}, false
	}
	var r fileRecord
	if json.Unmarshal(raw, &r) != nil {
		return fileRecord{}, false // of another format: as if it had not been read
	}
	return r, true
}

func storeRecord(s *tool.State, target string, r fileRecord) {
	raw, err := json.Marshal(r)
	if err != nil {
		return // cannot happen: the fields are plain
	}
	s.Set(recordKey(target), raw)
}

func recordOf(info fs.FileInfo, content []byte) fileRecord {
	sum := sha256.Sum256(content)
	return fileRecord{Hash: hex.EncodeToString(sum[:]), Size: info.Size(), ModTime: info.ModTime().UnixNano()}
}

// same reports whether the file still is as the record says: by content, and
// only for a file too large to be hashed by size and time (T-75).
func (r fileRecord) same(now fileRecord) bool {
	if r.Hash == "" {
		return r.Size == now.Size && r.ModTime == now.ModTime
	}
	return r.Hash == now.Hash
}
