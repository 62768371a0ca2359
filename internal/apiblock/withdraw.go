package apiblock

import (
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
)

// What a withdrawn message may still hold of texts, in bytes: a request above the
// API's size has a text of megabytes in it, one above the model's window a text of
// tens of thousands of tokens.
const (
	maxText   = 1 << 20
	maxWindow = 64 << 10
)

// Blame is what an API error says is wrong with a message.
type Blame uint8

// The kinds of blame.
const (
	Nothing    Blame = iota
	Attachment       // something that it brought along, or its size
	Address          // a file or a URL that it names, which may have been good before
	Window           // it may be what does not fit the model's window
)

// Blamed reads the text of an API error: an image or a document that cannot be
// read, a request above the API's size or the model's window. The API has no types
// for these errors, only words.
func Blamed(text string) Blame {
	low := strings.ToLower(text)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	switch {
	case has("download", "url source", ".source.url", "file_id", "file not found", "fetch the"):
		return Address
	case has("could not process image", "could not process document", "could not process pdf", "request exceeds the maximum size", "request_too_large", "api error: 413"):
		return Attachment
	case has("prompt is too long"):
		return Window
	case has("image", "document", "pdf", "search_result", "container_upload") && has("messages.", "exceed", "dimension", "not valid", "invalid"):
		return Attachment
	}
	return Nothing
}

// Named reports whether a block names a file or a URL that the API fetches.
func Named(b message.Block) bool {
	if b.Type() == message.TypeToolResult {
		r, _ := b.ToolResult()
		return slices.ContainsFunc(r.Content.Blocks(), Named)
	}
	source := rawjson.Member(b.Raw(), "source")
	if !rawjson.IsObject(source) {
		return b.Type() == typeUpload
	}
	typ := rawjson.Member(source, "type")
	return string(typ) == `"url"` || string(typ) == `"file"`
}

// Withdraw returns what is sent instead of a block of a message that was refused
// for what it brought along. Short texts stay.
func Withdraw(b message.Block) message.Block { return withdraw(b, maxText, true) }

// Shorten does the same with a message that may be what did not fit the window:
// long texts go, everything else stays.
func Shorten(b message.Block) message.Block { return withdraw(b, maxWindow, false) }

func withdraw(b message.Block, limit int, attachments bool) message.Block {
	switch b.Type() {
	case message.TypeText:
		if n := len(b.Raw()); n > limit {
			return note("A text of %d bytes was here; the API refused the request with it", n)
		}
		return b
	case message.TypeToolResult:
		return withdrawResult(b, limit, attachments)
	}
	if !attachments {
		return b
	}
	switch b.Type() {
	case message.TypeImage, message.TypeDocument, typeSearchResult, typeUpload:
		return note("%s was attached; the API refused the request with it", kindName(b.Type()))
	}
	return b
}

func withdrawResult(b message.Block, limit int, attachments bool) message.Block {
	return rebuilt(b, func(key string, value []byte) []byte {
		switch {
		case key != "content":
		case rawjson.IsString(value):
			if text := withdraw(message.NewText(rawjson.Unquote(value)), limit, false); len(value) > limit {
				return rawjson.AppendString(nil, text.Text())
			}
		case len(value) > 0 && value[0] == '[':
			list := []byte{'['}
			for e := range rawjson.Elements(value) {
				if b, err := message.ParseBlock(e); err == nil {
					e = withdraw(b, limit, attachments).Raw()
				}
				if len(list) > 1 {
					list = append(list, ',')
				}
				list = append(list, e...)
			}
			return append(list, ']')
		}
		return value
	})
}
