package history

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"pgregory.net/rapid"
)

const (
	png  = "iVBORw0KGgoAAAAA"
	jpeg = "/9j/4AAQSkZJRgAB"
)

// accepted asks the API's rules, as agenttest has them, about a request.
func accepted(msgs []Message) error {
	type wireMessage struct {
		Role    message.Role    `json:"role"`
		Content []message.Block `json:"content"`
	}
	body := struct {
		Model     string        `json:"model"`
		MaxTokens int           `json:"max_tokens"`
		Messages  []wireMessage `json:"messages"`
	}{Model: "m", MaxTokens: 1}
	for _, m := range msgs {
		body.Messages = append(body.Messages, wireMessage{m.Role, m.Blocks})
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return agenttest.Validate(raw, http.Header{"Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {"k"}, "Content-Type": {"application/json"}})
}

// TestUserBlocks: what a person attaches either goes to the model as it is, or
// mended, or as a text that says what it was and what is wrong with it.
func TestUserBlocks(t *testing.T) {
	conform.Covers(t, "L-200", "K-466", "M-103", "W-42")
	img := func(source string) string { return `{"type":"image","source":` + source + `}` }
	doc := func(source string) string { return `{"type":"document","source":` + source + `}` }
	tests := map[string]struct{ block, want string }{
		"image":                {img(`{"type":"base64","media_type":"image/png","data":"` + png + `"}`), "="},
		"image by url":         {img(`{"type":"url","url":"https://example.com/a.png"}`), "="},
		"image by file":        {img(`{"type":"file","file_id":"f1"}`), "="},
		"wrong media type":     {img(`{"type":"base64","media_type":"image/png","data":"` + jpeg + `"}`), img(`{"type":"base64","media_type":"image/jpeg","data":"` + jpeg + `"}`)},
		"extra key":            {`{"type":"image","name":"a.png","source":{"type":"url","url":"https://example.com"}}`, img(`{"type":"url","url":"https://example.com"}`)},
		"no source":            {`{"type":"image"}`, "[An image was attached that cannot be processed: it has no source.]"},
		"null source":          {img(`null`), "[An image was attached that cannot be processed: it has no source.]"},
		"string source":        {img(`"a.png"`), "[An image was attached that cannot be processed: it has no source.]"},
		"empty source":         {img(`{}`), "[An image was attached that cannot be processed: the type (none) of its source is not one of base64, url, file.]"},
		"unknown source":       {img(`{"type":"path","path":"a.png"}`), `[An image was attached that cannot be processed: the type "path" of its source is not one of base64, url, file.]`},
		"type of another type": {img(`{"type":5}`), "[An image was attached that cannot be processed: the type 5 of its source is not one of base64, url, file.]"},
		"empty url":            {img(`{"type":"url","url":""}`), "[An image was attached that cannot be processed: url is empty.]"},
		"no file id":           {img(`{"type":"file"}`), "[An image was attached that cannot be processed: file_id is missing.]"},
		"bad media type":       {img(`{"type":"base64","media_type":"image/bmp","data":"` + png + `"}`), `[An image was attached that cannot be processed: its media type "image/bmp" is not one of image/png, image/jpeg, image/gif, image/webp.]`},
		"media type number":    {img(`{"type":"base64","media_type":1,"data":"` + png + `"}`), `[An image was attached that cannot be processed: its media type 1 is not one of image/png, image/jpeg, image/gif, image/webp.]`},
		"no data":              {img(`{"type":"base64","media_type":"image/png"}`), "[An image was attached that cannot be processed: its data is missing.]"},
		"data number":          {img(`{"type":"base64","media_type":"image/png","data":7}`), "[An image was attached that cannot be processed: its data is no string.]"},
		"no base64":            {img(`{"type":"base64","media_type":"image/png","data":"%%%%"}`), "[An image was attached that cannot be processed: its data is not base64.]"},
		"bare base64":          {img(`{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo"}`), "[An image was attached that cannot be processed: its data is not base64.]"},
		"line breaks":          {img(`{"type":"base64","media_type":"image/png","data":"iVBO\nRw0KGgo="}`), "[An image was attached that cannot be processed: its data is not base64.]"},
		"bad far behind":       {img(`{"type":"base64","media_type":"image/png","data":"` + png + strings.Repeat("A", 8192) + `=AAA"}`), "[An image was attached that cannot be processed: its data is not base64.]"},
		"no picture":           {img(`{"type":"base64","media_type":"image/png","data":"aGVsbG8="}`), "[An image was attached that cannot be processed: its data is no image of a type that the API reads.]"},
		"too large":            {img(`{"type":"base64","media_type":"image/png","data":"` + png + strings.Repeat("A", 5<<20) + `"}`), "[An image was attached that cannot be processed: its 5242896 bytes of base64 are more than the 5242880 that the API takes.]"},
		"pdf":                  {doc(`{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}`), "="},
		"pdf with a title":     {`{"type":"document","title":"T","context":null,"source":{"type":"url","url":"https://example.com"}}`, "="},
		"title of a number":    {`{"type":"document","title":5,"source":{"type":"url","url":"https://example.com"}}`, doc(`{"type":"url","url":"https://example.com"}`)},
		"plain document":       {doc(`{"type":"text","media_type":"text/plain","data":"words"}`), "="},
		"document of blocks":   {doc(`{"type":"content","content":[{"type":"text","text":"a"}]}`), "="},
		"document of a string": {doc(`{"type":"content","content":"a"}`), "="},
		"document of calls":    {doc(`{"type":"content","content":[{"type":"tool_use"}]}`), `[A document was attached that cannot be processed: block 1 of its content, of type "tool_use", is not what can stand there.]`},
		"empty document":       {doc(`{"type":"content","content":[]}`), "[A document was attached that cannot be processed: its content is empty.]"},
		"bad pdf":              {doc(`{"type":"base64","media_type":"application/pdf","data":"%"}`), "[A document was attached that cannot be processed: its data is not base64.]"},
		"no pdf":               {doc(`{"type":"base64","media_type":"text/html","data":"AAAA"}`), `[A document was attached that cannot be processed: its media type "text/html" is not application/pdf.]`},
		"html document":        {doc(`{"type":"text","media_type":"text/html","data":"a"}`), `[A document was attached that cannot be processed: its media type "text/html" is not text/plain.]`},
		"search result":        {`{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}],"citations":{"enabled":true}}`, "="},
		"search without title": {`{"type":"search_result","source":"s","content":[{"type":"text","text":"a"}]}`, "[A search result was attached that cannot be processed: title is missing.]"},
		"upload":               {`{"type":"container_upload","file_id":"f"}`, "="},
		"upload of nothing":    {`{"type":"container_upload"}`, "[An upload was attached that cannot be processed: file_id is missing.]"},
		"surrogate":            {`{"type":"text","text":"a\ud800b"}`, "{\"type\":\"text\",\"text\":\"a\uFFFDb\"}"},
		"surrogate in a title": {`{"type":"document","title":"\udc00","source":{"type":"url","url":"https://example.com"}}`, "{\"type\":\"document\",\"title\":\"\uFFFD\",\"source\":{\"type\":\"url\",\"url\":\"https://example.com\"}}"},
		"unknown key in text":  {`{"type":"text","text":"a","id":1,"citations":5}`, `{"type":"text","text":"a"}`},
		"unknown type":         {`{"type":"hologram","data":"x"}`, `[A block of type "hologram" was attached, which cannot be sent to the model.]`},
		"thinking":             {`{"type":"thinking","thinking":"t","signature":"s"}`, `[A block of type "thinking" was attached, which cannot be sent to the model.]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := block(t, tt.block)
			msgs, _ := Assemble(chain(user(b)).Items(), Options{})
			if len(msgs) != 1 || len(msgs[0].Blocks) != 1 {
				t.Fatalf("%v", msgs)
			}
			want := tt.want
			switch want[0] {
			case '=':
				want = string(b.Raw())
			case '[':
				want = string(message.NewText(want).Raw())
			}
			if got := string(msgs[0].Blocks[0].Raw()); got != want {
				t.Errorf("sent as %.300s\nwant      %.300s", got, want)
			}
			if err := accepted(msgs); err != nil {
				t.Errorf("refused: %v", err)
			}
			// In a tool's result what cannot stand there is replaced as well.
			inside := message.NewToolResult("c1", message.BlockContent(b), false)
			msgs, _ = Assemble(chain(user(text("go")), assistant(use("c1")), user(inside)).Items(), Options{})
			if err := accepted(msgs); err != nil {
				t.Errorf("in a result refused: %v", err)
			}
		})
	}
}

// TestAnyUserBlock: whatever is in a block, the API takes the request.
func TestAnyUserBlock(t *testing.T) {
	conform.Covers(t, "L-200", "K-466")
	values := []string{
		`null`, `5`, `true`, `""`, `"x"`, `"\ud800"`, `{}`, `[]`, `[{"type":"text","text":"t"}]`, `[{"type":"text"}]`, `[{"type":"image","source":{}}]`,
		`"` + png + `"`, `"` + jpeg + `"`, `"JVBERi0="`, `"image/png"`, `"image/jpeg"`, `"application/pdf"`, `"text/plain"`, `{"enabled":true}`,
	}
	keys := []string{"text", "source", "title", "context", "content", "citations", "file_id", "tool_name", "id", "Type", "\\u0074ext", "cache_control", "is_error"}
	sourceKeys := []string{"type", "media_type", "data", "url", "file_id", "content"}
	types := []string{"text", "image", "document", "search_result", "container_upload", "tool_reference", "hologram", "redacted_thinking", "server_tool_use", "x_tool_result"}
	object := func(t *rapid.T, first string, keys []string, value func(t *rapid.T, key string) string) string {
		b := "{" + first
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 5, rapid.ID[string]).Draw(t, "keys") {
			if len(b) > 1 {
				b += ","
			}
			b += `"` + k + `":` + value(t, k)
		}
		return b + "}"
	}
	any := func(t *rapid.T, _ string) string { return rapid.SampledFrom(values).Draw(t, "value") }
	draw := func(t *rapid.T) message.Block {
		raw := object(t, `"type":"`+rapid.SampledFrom(types).Draw(t, "type")+`"`, keys, func(t *rapid.T, key string) string {
			if key == "source" && rapid.Bool().Draw(t, "object") {
				return object(t, "", sourceKeys, func(t *rapid.T, key string) string {
					if key == "type" {
						return rapid.SampledFrom([]string{`"base64"`, `"url"`, `"file"`, `"text"`, `"content"`, `"path"`, `5`}).Draw(t, "source type")
					}
					return any(t, key)
				})
			}
			return any(t, key)
		})
		b, err := message.ParseBlock([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		return b
	}
	rapid.Check(t, func(t *rapid.T) {
		said, result := draw(t), draw(t)
		msgs, _ := Assemble(chain(
			user(text("go")), assistant(use("c1")),
			user(message.NewToolResult("c1", message.BlockContent(result, text("more")), false)), user(said, text("and")),
		).Items(), Options{})
		if err := accepted(msgs); err != nil {
			t.Fatalf("%v\nsaid   %s\nresult %s", err, said.Raw(), result.Raw())
		}
	})
}

// TestRefusedAttachment: what a message brought along is not sent again when the
// API has blamed it, and everything else is.
func TestRefusedAttachment(t *testing.T) {
	conform.Covers(t, "L-200", "L-203")
	image := message.NewImage("image/png", png)
	notice := func(text string) Item {
		return Item{Role: message.RoleAssistant, Blocks: []message.Block{message.NewText(text)}, Flags: Notice}
	}
	long := strings.Repeat("x", 2<<20)
	h := chain(user(text("old"), image), assistant(text("seen"), use("c1")), user(result("c1", "out")), user(text("look"), image, text(long)), user(text("note")))
	h.RefusedFor("API Error: 400 Your credit balance is too low to access the API")
	h.RefusedFor("API Error: 400 max_tokens: 5 > 4, which is the maximum")
	before, _ := Assemble(h.Items(), Options{})
	if got := len(before[2].Blocks); got != 5 || before[2].Blocks[2].Type() != "image" {
		t.Fatalf("withdrawn for another error: %v", before[2].Blocks)
	}
	h.Append(notice("API Error: 400 Could not process image"))
	h.RefusedFor("API Error: 400 Could not process image")
	h.Append(user(text("next")))
	msgs, _ := Assemble(h.Items(), Options{})
	var got []string
	for _, m := range msgs {
		for _, b := range m.Blocks {
			got = append(got, b.Type()+" "+b.Text())
		}
	}
	want := "text old|image |text seen|tool_use |tool_result |text look|text [An image was attached; the API refused the request with it.]|text [A text of 2097177 bytes was here; the API refused the request with it.]|text note|text next"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %.900s\nwant %s", strings.Join(got, "|"), want)
	}
}
