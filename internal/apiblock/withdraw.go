package apiblock

import (
	"strings"

	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
)

// maxText is the size from which a text is taken for what made a request too
// large, in bytes.
const maxText = 1 << 20

// Refused reports whether the text of an API error blames something that a
// message brought along: an image or a document that cannot be read, or a request
// above the API's size. The API has no types for these errors, only words.
func Refused(text string) bool {
	low := strings.ToLower(text)
	for _, words := range []string{
		"could not process image", "could not process document", "could not process pdf", "request exceeds the maximum size", "request_too_large",
	} {
		if strings.Contains(low, words) {
			return true
		}
	}
	if strings.Contains(low, "api error: 413") {
		return true
	}
	for _, thing := range []string{"image", "document", "pdf", "file_id", "search_result", "container_upload"} {
		if strings.Contains(low, thing) && (strings.Contains(low, "messages.") || strings.Contains(low, "exceed") ||
			strings.Contains(low, "dimension") || strings.Contains(low, "not valid") || strings.Contains(low, "invalid")) {
			return true
		}
	}
	return false
}

// Withdraw returns what is sent instead of a block of a message that was refused
// for what it brought along. Short texts stay.
func Withdraw(b message.Block) message.Block {
	switch b.Type() {
	case message.TypeText:
		if n := len(b.Raw()); n > maxText {
			return note("A text of %d bytes was here; the API refused the request with it", n)
		}
		return b
	case message.TypeToolResult:
		return withdrawResult(b)
	case message.TypeImage, message.TypeDocument, typeSearchResult, typeUpload:
		return note("%s was attached; the API refused the request with it", kindName(b.Type()))
	}
	return b
}

func withdrawResult(b message.Block) message.Block {
	return rebuilt(b, func(key string, value []byte) []byte {
		switch {
		case key != "content":
		case rawjson.IsString(value):
			if text := Withdraw(message.NewText(rawjson.Unquote(value))); len(value) > maxText {
				return rawjson.AppendString(nil, text.Text())
			}
		case len(value) > 0 && value[0] == '[':
			list := []byte{'['}
			for e := range rawjson.Elements(value) {
				if b, err := message.ParseBlock(e); err == nil {
					e = Withdraw(b).Raw()
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
