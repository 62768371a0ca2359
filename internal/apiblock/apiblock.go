package apiblock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
)

// members are what the API takes in the blocks that clients make; anything else
// in them is "extra inputs are not permitted".
var members = map[string][]string{
	message.TypeText:       {"type", "text", "citations", "cache_control"},
	message.TypeImage:      {"type", "source", "cache_control", "transformations"},
	message.TypeDocument:   {"type", "source", "title", "context", "citations", "cache_control"},
	typeSearchResult:       {"type", "source", "title", "content", "citations", "cache_control"},
	message.TypeToolResult: {"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"},
	typeUpload:             {"type", "file_id", "cache_control"},
	typeReference:          {"type", "tool_name", "cache_control"},
}

const (
	typeSearchResult = "search_result"
	typeUpload       = "container_upload"
	typeReference    = "tool_reference"
)

// The types of blocks that may stand in a user's message, in a tool's result, and
// in the content of a document.
var (
	inMessage  = []string{message.TypeText, message.TypeImage, message.TypeDocument, message.TypeToolResult, typeSearchResult, typeUpload}
	inResult   = []string{message.TypeText, message.TypeImage, message.TypeDocument, typeSearchResult, typeReference}
	inDocument = []string{message.TypeText, message.TypeImage}
)

// InMessage returns b as a user's message may hold it.
func InMessage(b message.Block) message.Block { return usable(b, inMessage) }

// InResult returns b as the result of a tool may hold it.
func InResult(b message.Block) message.Block { return usable(b, inResult) }

func usable(b message.Block, allowed []string) message.Block {
	typ := b.Type()
	if !slices.Contains(allowed, typ) {
		return note("A block of type %s was attached, which cannot be sent to the model", strconv.Quote(clip(typ)))
	}
	b = onlyKnown(b)
	var why string
	switch typ {
	case message.TypeImage:
		b, why = image(b)
	case message.TypeDocument:
		why = documentFault(b)
	case typeSearchResult:
		why = searchFault(b)
	case typeUpload:
		why = stringFault(b.Raw(), "file_id")
	case typeReference:
		why = stringFault(b.Raw(), "tool_name")
	}
	if why != "" {
		return note("%s was attached that cannot be processed: %s", kindName(typ), why)
	}
	return b
}

// onlyKnown returns b without the members that the API does not take, and
// without those that are not needed and have the wrong shape.
func onlyKnown(b message.Block) message.Block {
	known := members[b.Type()]
	keep := func(key string, value []byte) bool {
		null := rawjson.IsNull(value)
		switch {
		case !slices.Contains(known, key):
			return false
		case key == "citations" && b.Type() == message.TypeText:
			return null || value[0] == '['
		case key == "citations":
			return null || value[0] == '{'
		case b.Type() == message.TypeDocument && (key == "title" || key == "context"):
			return null || rawjson.IsString(value)
		case key == "is_error":
			return string(value) == "true" || string(value) == "false"
		}
		return true
	}
	sound := true
	for key, value := range rawjson.Members(b.Raw()) {
		sound = sound && keep(string(key), value)
	}
	if sound {
		return b
	}
	return rebuilt(b, func(key string, value []byte) []byte {
		if !keep(key, value) {
			return nil
		}
		return value
	})
}

// rebuilt returns b with the values that change returns; nil leaves one out.
func rebuilt(b message.Block, change func(key string, value []byte) []byte) message.Block {
	nb, err := message.ParseBlock(object(b.Raw(), change))
	if err != nil {
		return b // change took its type
	}
	return nb
}

// object does that with any JSON object.
func object(obj []byte, change func(key string, value []byte) []byte) []byte {
	raw := append(make([]byte, 0, len(obj)), '{')
	for key, value := range rawjson.Members(obj) {
		if value = change(string(key), value); value == nil {
			continue
		}
		if len(raw) > 1 {
			raw = append(raw, ',')
		}
		raw = append(append(rawjson.AppendString(raw, string(key)), ':'), value...)
	}
	return append(raw, '}')
}

func searchFault(b message.Block) string {
	for _, key := range []string{"source", "title"} {
		if why := stringFault(b.Raw(), key); why != "" {
			return why
		}
	}
	return contentFault(b.Raw(), []string{message.TypeText})
}

// contentFault says what is wrong with the list of blocks that raw holds.
func contentFault(raw []byte, allowed []string) string {
	list := rawjson.Member(raw, "content")
	if len(list) == 0 || list[0] != '[' {
		return "its content is no list of blocks"
	}
	n := 0
	for e := range rawjson.Elements(list) {
		n++
		b, err := message.ParseBlock(e)
		if err != nil {
			return fmt.Sprintf("block %d of its content has no type", n)
		}
		if b.Type() == message.TypeText && strings.TrimSpace(b.Text()) == "" {
			return fmt.Sprintf("block %d of its content has no text", n)
		}
		if got := usable(b, allowed); string(got.Raw()) != string(b.Raw()) {
			return fmt.Sprintf("block %d of its content, of type %s, is not what can stand there", n, strconv.Quote(clip(b.Type())))
		}
	}
	if n == 0 {
		return "its content is empty"
	}
	return ""
}

// stringFault says that a member is no string with something in it.
func stringFault(obj []byte, key string) string {
	switch v := rawjson.Member(obj, key); {
	case v == nil:
		return key + " is missing"
	case !rawjson.IsString(v):
		return key + " is no string"
	case rawjson.Unquote(v) == "":
		return key + " is empty"
	}
	return ""
}

// note is the text that stands for a block.
func note(format string, args ...any) message.Block {
	return message.NewText("[" + fmt.Sprintf(format, args...) + ".]")
}

func kindName(typ string) string {
	switch typ {
	case message.TypeImage, typeUpload:
		return "An " + strings.Replace(strings.Replace(typ, typeUpload, "upload", 1), "_", " ", 1)
	}
	return "A " + strings.ReplaceAll(typ, "_", " ")
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
