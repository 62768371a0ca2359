package agenttest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// maxImageBytes is the API's limit for one image, in characters of base64.
const maxImageBytes = 5 << 20

// blockKeys are the members of the block types that clients make themselves.
// Blocks of other known types come from the server and are not looked into.
var blockKeys = map[string][]string{
	"text":              {"type", "text", "citations", "cache_control"},
	"image":             {"type", "source", "cache_control", "transformations"},
	"document":          {"type", "source", "title", "context", "citations", "cache_control"},
	"search_result":     {"type", "source", "title", "content", "citations", "cache_control"},
	"thinking":          {"type", "thinking", "signature"},
	"redacted_thinking": {"type", "data"},
	"tool_use":          {"type", "id", "name", "input", "cache_control", "caller", "toolset_name"},
	"container_upload":  {"type", "file_id", "cache_control"},
	"tool_result":       {"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"},
}

var (
	userKinds      = []string{"text", "image", "document", "search_result", "tool_result", "container_upload"}
	assistantKinds = []string{"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "container_upload"}
	resultKinds    = []string{"text", "image", "document", "search_result", "tool_reference"}
	betaKinds      = []string{"mcp_tool_use", "mcp_tool_result", "compaction", "fallback"}
)

func readBlock(path string, raw json.RawMessage) (located, *InvalidError) {
	b := located{path: path}
	var ok bool
	if b.object, ok = asObject(raw); !ok {
		return b, invalid(path, "Input should be a valid dictionary")
	}
	if b.object["type"] == nil {
		return b, invalid(path+".type", "Field required")
	}
	b.kind, _ = asString(b.object["type"])
	return b, nil
}

// block checks one content block of a message.
func (v *validator) block(b located, role string) *InvalidError {
	if err := v.allowedKind(b, role); err != nil {
		return err
	}
	if keys, ok := blockKeys[b.kind]; ok {
		if err := extra(b.path+"."+b.kind, b.object, keys); err != nil {
			return err
		}
	}
	switch b.kind {
	case "text":
		return v.textBlock(b, "messages")
	case "image":
		if err := v.image(b); err != nil {
			return err
		}
	case "document":
		if err := v.document(b); err != nil {
			return err
		}
	case "search_result":
		if err := v.searchResult(b); err != nil {
			return err
		}
	case "container_upload":
		if id, _ := asString(b.object["file_id"]); id == "" {
			return invalid(b.path+".container_upload.file_id", "Field required")
		}
	case "thinking", "redacted_thinking":
		return thinkingBlock(b)
	case "tool_use":
		if err := toolUse(b); err != nil {
			return err
		}
	case "tool_result":
		if err := v.toolResult(b); err != nil {
			return err
		}
	}
	return v.mark(b.path, b.object, true)
}

func (v *validator) allowedKind(b located, role string) *InvalidError {
	allowed := userKinds
	if role == "assistant" {
		allowed = assistantKinds
		if v.version == "2023-06-01" {
			allowed = append(slices.Clip(allowed), "document")
		}
	} else if role == "system" {
		allowed = []string{"text"}
	}
	switch {
	case slices.Contains(allowed, b.kind):
		return nil
	case role == "assistant" && strings.HasSuffix(b.kind, "_tool_result"):
		return nil // the result of a server tool
	case v.betas != "" && slices.Contains(betaKinds, b.kind):
		return nil
	case b.kind == "tool_result":
		return invalid(b.path, "`tool_result` blocks can only be in `user` messages")
	case role == "user" && slices.Contains(assistantKinds, b.kind):
		return invalid(b.path, "`%s` blocks can only be in `assistant` messages", b.kind)
	case slices.Contains(userKinds, b.kind):
		return invalid(b.path, "`%s` blocks are not permitted in `%s` messages", b.kind, role)
	}
	return invalid(b.path, "Input tag '%s' found using 'type' does not match any of the expected tags", b.kind)
}

// textBlock checks a text block; where is the list it is in.
func (v *validator) textBlock(b located, where string) *InvalidError {
	if err := extra(b.path+".text", b.object, blockKeys["text"]); err != nil {
		return err
	}
	text, ok := asString(b.object["text"])
	switch {
	case b.object["text"] == nil:
		return invalid(b.path+".text.text", "Field required")
	case !ok:
		return invalid(b.path+".text.text", "Input should be a valid string")
	case text == "" && b.present("cache_control"):
		return invalid(b.path+".text", "cache_control cannot be set for empty text blocks")
	case text == "":
		return invalid(where, "text content blocks must be non-empty")
	case strings.TrimSpace(text) == "" && where == "messages":
		return invalid(where, "text content blocks must contain non-whitespace text")
	}
	return v.mark(b.path, b.object, true)
}

func thinkingBlock(b located) *InvalidError {
	need := []string{"thinking", "signature"}
	if b.kind == "redacted_thinking" {
		need = []string{"data"}
	}
	for _, key := range need {
		value, ok := asString(b.object[key])
		path := fmt.Sprintf("%s.%s.%s", b.path, b.kind, key)
		switch {
		case b.object[key] == nil:
			return invalid(path, "Field required")
		case !ok:
			return invalid(path, "Input should be a valid string")
		case value == "" && key != "thinking": // thinking that is not displayed is empty
			return invalid(b.path, "Invalid `%s` in `%s` block", key, b.kind)
		}
	}
	return nil
}

func toolUse(b located) *InvalidError {
	path := b.path + ".tool_use"
	id, ok := asString(b.object["id"])
	switch {
	case !ok:
		return invalid(path+".id", "Field required")
	case !toolUseID.MatchString(id):
		return invalid(path+".id", "String should match pattern '%s'", toolUseID)
	}
	name, ok := asString(b.object["name"])
	switch {
	case !ok:
		return invalid(path+".name", "Field required")
	case !isToolName(name):
		return invalid(path+".name", "String should match pattern '%s'", toolNamePattern)
	case b.object["input"] == nil:
		return invalid(path+".input", "Field required")
	case !isObject(b.object["input"]):
		return invalid(path+".input", "Input should be a valid dictionary")
	}
	return nil
}

func (v *validator) toolResult(b located) *InvalidError {
	path := b.path + ".tool_result"
	id, ok := asString(b.object["tool_use_id"])
	switch {
	case !ok:
		return invalid(path+".tool_use_id", "Field required")
	case !toolUseID.MatchString(id):
		return invalid(path+".tool_use_id", "String should match pattern '%s'", toolUseID)
	}
	if raw, ok := b.object["is_error"]; ok && string(raw) != "true" && string(raw) != "false" && string(raw) != "null" {
		return invalid(path+".is_error", "Input should be a valid boolean")
	}
	failed := string(b.object["is_error"]) == "true"
	if !b.present("content") {
		return emptyError(path, failed)
	}
	if text, ok := asString(b.object["content"]); ok {
		return emptyError(path, failed && text == "")
	}
	list, ok := asList(b.object["content"])
	if !ok {
		return invalid(path+".content", "Input should be a valid string or a valid list")
	}
	if len(list) == 0 {
		return emptyError(path, failed)
	}
	for i, raw := range list {
		inner, err := readBlock(fmt.Sprintf("%s.content.%d", path, i), raw)
		if err != nil {
			return err
		}
		if err := v.resultBlock(inner); err != nil {
			return err
		}
	}
	return nil
}

func emptyError(path string, empty bool) *InvalidError {
	if empty {
		return invalid(path, "content cannot be empty if `is_error` is true")
	}
	return nil
}

// resultBlock checks a block inside a tool_result.
func (v *validator) resultBlock(b located) *InvalidError {
	if !slices.Contains(resultKinds, b.kind) {
		return invalid(b.path, "Input tag '%s' found using 'type' does not match any of the expected tags", b.kind)
	}
	if keys, ok := blockKeys[b.kind]; ok {
		if err := extra(b.path+"."+b.kind, b.object, keys); err != nil {
			return err
		}
	}
	switch b.kind {
	case "text":
		// Inside a result, white space is text.
		return v.textBlock(b, "tool_result")
	case "image":
		if err := v.image(b); err != nil {
			return err
		}
	case "document":
		if err := v.document(b); err != nil {
			return err
		}
	case "search_result":
		if err := v.searchResult(b); err != nil {
			return err
		}
	case "container_upload":
		if id, _ := asString(b.object["file_id"]); id == "" {
			return invalid(b.path+".container_upload.file_id", "Field required")
		}
	}
	return v.mark(b.path, b.object, true)
}

var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

func (v *validator) image(b located) *InvalidError {
	path := b.path + ".image.source"
	source, kind, err := readSource(path, b.object["source"])
	if err != nil {
		return err
	}
	switch kind {
	case "base64":
		media, _ := asString(source["media_type"])
		if !slices.Contains(imageTypes, media) {
			return invalid(path+".base64.media_type", "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'")
		}
		data, err := base64Data(path, source)
		if err != nil {
			return err
		}
		switch got := http.DetectContentType(data); {
		case !slices.Contains(imageTypes, got):
			return &InvalidError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "Could not process image"}
		case got != media:
			return invalid(path+".base64.data", "The image was specified using the %s media type, but the image appears to be a %s image", media, got)
		}
		return nil
	case "url", "file":
		return sourceString(path, kind, source)
	}
	return invalid(path, "Input tag '%s' found using 'type' does not match any of the expected tags", kind)
}

func (v *validator) document(b located) *InvalidError {
	path := b.path + ".document.source"
	source, kind, err := readSource(path, b.object["source"])
	if err != nil {
		return err
	}
	switch kind {
	case "base64":
		if media, _ := asString(source["media_type"]); media != "application/pdf" {
			return invalid(path+".base64.media_type", "Input should be 'application/pdf'")
		}
		_, err := base64Data(path, source)
		return err
	case "text":
		if media, _ := asString(source["media_type"]); media != "text/plain" {
			return invalid(path+".text.media_type", "Input should be 'text/plain'")
		}
		if data, _ := asString(source["data"]); data == "" {
			return invalid(path+".text.data", "text content blocks must be non-empty")
		}
		return nil
	case "content":
		if text, ok := asString(source["content"]); ok && text != "" {
			return nil
		}
		return v.inside(path+".content.content", source["content"], "text", "image")
	case "url", "file":
		return sourceString(path, kind, source)
	}
	return invalid(path, "Input tag '%s' found using 'type' does not match any of the expected tags", kind)
}

func (v *validator) searchResult(b located) *InvalidError {
	path := b.path + ".search_result"
	for _, key := range []string{"source", "title"} {
		if text, _ := asString(b.object[key]); text == "" {
			return invalid(path+"."+key, "Field required")
		}
	}
	return v.inside(path+".content", b.object["content"], "text")
}

// inside checks the blocks that another block holds.
func (v *validator) inside(path string, raw json.RawMessage, kinds ...string) *InvalidError {
	list, ok := asList(raw)
	if !ok || len(list) == 0 {
		return invalid(path, "Input should be a valid list")
	}
	for i, raw := range list {
		b, err := readBlock(fmt.Sprintf("%s.%d", path, i), raw)
		switch {
		case err != nil:
			return err
		case !slices.Contains(kinds, b.kind):
			return invalid(b.path, "Input tag '%s' found using 'type' does not match any of the expected tags", b.kind)
		}
		if err := v.block(b, "user"); err != nil {
			return err
		}
	}
	return nil
}

func readSource(path string, raw json.RawMessage) (object, string, *InvalidError) {
	source, ok := asObject(raw)
	if !ok {
		return nil, "", invalid(path, "Input should be a valid dictionary")
	}
	kind, _ := asString(source["type"])
	return source, kind, nil
}

func sourceString(path, kind string, source object) *InvalidError {
	key := map[string]string{"url": "url", "file": "file_id"}[kind]
	if s, _ := asString(source[key]); s == "" {
		return invalid(path+"."+kind+"."+key, "Field required")
	}
	return nil
}

func base64Data(path string, source object) ([]byte, *InvalidError) {
	text, ok := asString(source["data"])
	switch {
	case !ok:
		return nil, invalid(path+".base64.data", "Field required")
	case text == "":
		return nil, invalid(path+".base64.data", "data cannot be empty")
	}
	if media, _ := asString(source["media_type"]); strings.HasPrefix(media, "image/") && len(text) > maxImageBytes {
		return nil, invalid(path+".base64", "image exceeds 5 MB maximum: %d bytes > %d bytes", len(text), maxImageBytes)
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || bytes.ContainsAny([]byte(text), "\r\n") {
		return nil, invalid(path+".base64.data", "Invalid base64 data")
	}
	return data, nil
}
