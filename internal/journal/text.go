package journal

import (
	"encoding/json"
	"strings"
)

// Texts returns what a line says that a person may search for: the texts of a
// message, the inputs of its calls and the results of calls. role is "user",
// "assistant" or, for results, "tool"; ok is false for lines that say nothing to
// readers.
func Texts(line []byte) (role, uuid string, texts []string, ok bool) {
	var l struct {
		Type       string `json:"type"`
		UUID       string `json:"uuid"`
		Meta       bool   `json:"isMeta"`
		Sidechain  bool   `json:"isSidechain"`
		CopiedFrom string `json:"copiedFrom"`
		Message    struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &l) != nil || l.Type != "user" && l.Type != "assistant" ||
		l.Meta || l.Sidechain || l.CopiedFrom != "" {
		return "", "", nil, false
	}
	role = l.Type
	texts, results := contentTexts(l.Message.Content)
	if l.Type == "user" && len(results) > 0 {
		role = "tool"
	}
	texts = append(texts, results...)
	return role, l.UUID, texts, len(texts) > 0
}

// contentTexts are the texts of a message's content: its own, and those of tool
// results in it.
func contentTexts(content json.RawMessage) (texts, results []string) {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return []string{s}, nil
	}
	var blocks []struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		Name    string          `json:"name"`
		Input   json.RawMessage `json:"input"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return nil, nil
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
		case "tool_use":
			texts = append(texts, b.Name+" "+inputText(b.Input))
		case "tool_result":
			own, _ := contentTexts(b.Content)
			results = append(results, own...)
		}
	}
	return texts, results
}

// inputText are the strings of a call's input, in order and without escapes, so
// that a command is found as it is written.
func inputText(input json.RawMessage) string {
	var parts []string
	d := json.NewDecoder(strings.NewReader(string(input)))
	for {
		tok, err := d.Token()
		if err != nil {
			return strings.Join(parts, " ")
		}
		if s, ok := tok.(string); ok {
			parts = append(parts, s)
		}
	}
}
