package message

import "encoding/json"

// PromptSuggestion is a guess at the user's next prompt, after a result (M-99).
type PromptSuggestion struct {
	Suggestion string `json:"suggestion"`
	Header
}

// Kind implements Message.
func (*PromptSuggestion) Kind() (typ, subtype string) { return "prompt_suggestion", "" }

// FilesPersisted tells which checkpoints reached the disk (M-100).
type FilesPersisted struct {
	Files       []PersistedFile `json:"files"`
	Failed      []FailedFile    `json:"failed"`
	ProcessedAt string          `json:"processed_at"` // ISO 8601
	Header
}

// PersistedFile is a file that was stored.
type PersistedFile struct {
	Filename string `json:"filename"`
	FileID   string `json:"file_id"`
}

// FailedFile is a file that could not be stored.
type FailedFile struct {
	Filename string `json:"filename"`
	Error    string `json:"error"`
}

// Kind implements Message.
func (*FilesPersisted) Kind() (typ, subtype string) { return "system", "files_persisted" }

// MirrorError tells that a batch for a session store was dropped; the run goes
// on (M-101).
type MirrorError struct {
	Error string    `json:"error"`
	Key   MirrorKey `json:"key"`
	Header
}

// MirrorKey names a transcript in a session store.
type MirrorKey struct {
	ProjectKey string `json:"projectKey"`
	SessionID  string `json:"sessionId"`
	Subpath    string `json:"subpath,omitempty"`
}

// Kind implements Message.
func (*MirrorError) Kind() (typ, subtype string) { return "system", "mirror_error" }

// TranscriptMirror hands what was written to a transcript file to the client
// that started the process (W-360 to W-369).
type TranscriptMirror struct {
	FilePath string            `json:"filePath"` // absolute
	Entries  []json.RawMessage `json:"entries"`  // the objects written, in order
	Header
}

// Kind implements Message.
func (*TranscriptMirror) Kind() (typ, subtype string) { return "transcript_mirror", "" }
