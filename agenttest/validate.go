package agenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxRequestBytes is the API's limit for the body of a request.
const MaxRequestBytes = 32 << 20

// InvalidError says why the API would refuse a request.
type InvalidError struct {
	Status  int    // HTTP status
	Type    string // the API's error type, such as invalid_request_error
	Path    string // such as messages.3.content.1; "" for the request as a whole
	Message string

	prefill bool // the only fault is an assistant message at the end
}

// Error is the message as the API words it: the path, then the cause.
func (e *InvalidError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Validate reports whether the Messages API would accept a request with this
// body and these headers; if not, the error is an *InvalidError for the first
// fault found. The rules are those of the public API reference for the versions
// 2023-06-01 and 2026-10-21, and of the error messages that it is known to
// give. Rules that need the server's knowledge are left out: whether the model
// exists, its limits, whether a signature is genuine. One rule is stricter: a
// max_tokens of 0, which only fills the cache, is refused.
func Validate(body []byte, header http.Header) error {
	if err := validate(body, header); err != nil {
		return err // not the nil *InvalidError in an error
	}
	return nil
}

func validate(body []byte, header http.Header) *InvalidError {
	if err := checkHeader(header); err != nil {
		return err
	}
	if len(body) > MaxRequestBytes {
		return &InvalidError{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "Request exceeds the maximum size"}
	}
	if err := checkText(body); err != nil {
		return err
	}
	v := &validator{version: header.Get("Anthropic-Version"), betas: strings.Join(header.Values("Anthropic-Beta"), ",")}
	return v.request(body)
}

// invalid makes the usual error: status 400, invalid_request_error.
func invalid(path, format string, args ...any) *InvalidError {
	return &InvalidError{Status: http.StatusBadRequest, Type: "invalid_request_error", Path: path, Message: fmt.Sprintf(format, args...)}
}

func checkHeader(h http.Header) *InvalidError {
	if h.Get("X-Api-Key") == "" && strings.TrimPrefix(h.Get("Authorization"), "Bearer ") == "" {
		return &InvalidError{Status: http.StatusUnauthorized, Type: "authentication_error", Message: "x-api-key header is required"}
	}
	switch version := h.Get("Anthropic-Version"); version {
	case "2023-06-01", "2026-10-21":
	case "":
		return invalid("anthropic-version", "header is required")
	default:
		return invalid("anthropic-version", "%q is not a valid version", version)
	}
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return invalid("", "content-type must be application/json, not %q", h.Get("Content-Type"))
	}
	return nil
}

// checkText refuses what is not JSON text, or not text at all.
func checkText(body []byte) *InvalidError {
	if !utf8.Valid(body) {
		return invalid("", "The request body is not valid JSON: invalid UTF-8 at byte %d", invalidAt(body))
	}
	if !json.Valid(body) {
		return invalid("", "The request body is not valid JSON")
	}
	if at := loneSurrogate(body); at >= 0 {
		return invalid("", "The request body is not valid JSON: lone surrogate in string at byte %d", at)
	}
	return nil
}

func invalidAt(body []byte) int {
	for i := 0; i < len(body); {
		r, n := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(body)
}

// loneSurrogate returns where valid JSON text has an escape of half a
// surrogate pair, which encoding/json would replace in silence, or -1.
func loneSurrogate(body []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(body[i:], '\\')
		if n < 0 {
			return -1
		}
		i += n
		unit, ok := escapedUnit(body, i)
		switch {
		case !ok || unit < 0xD800 || unit > 0xDFFF:
			i += 2
		case unit >= 0xDC00:
			return i
		default:
			low, ok := escapedUnit(body, i+6)
			if !ok || low < 0xDC00 || low > 0xDFFF {
				return i
			}
			i += 12
		}
	}
}

func escapedUnit(body []byte, i int) (uint64, bool) {
	if i+6 > len(body) || body[i] != '\\' || body[i+1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(body[i+2:i+6]), 16, 32)
	return unit, err == nil
}

// validator holds what the rules of one request share.
type validator struct {
	version, betas string

	model     string
	maxTokens int64
	thinking  string // type of the thinking field: "", enabled, adaptive, disabled
	toolNames map[string]bool
	turns     []turn
	marks     int
	shortMark bool // a five-minute mark was seen
}

// object is a JSON object whose members are not decoded yet.
type object map[string]json.RawMessage

// present reports whether a member is there and not null.
func (o object) present(name string) bool {
	raw, ok := o[name]
	return ok && string(raw) != "null"
}

var (
	topKeys = []string{
		"model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "stream", "stop_sequences",
		"metadata", "service_tier", "output_config", "cache_control", "container", "inference_geo", "speed", "diagnostics",
	}
	// Accepted with an anthropic-beta header only.
	betaKeys = []string{
		"context_management", "mcp_servers", "output_format", "fallbacks", "fallback_credit_token", "thread", "compaction", "billing_policy",
	}
	// Removed in version 2026-10-21.
	samplingKeys = []string{"temperature", "top_p", "top_k"}
)

func (v *validator) request(body []byte) *InvalidError {
	top, ok := asObject(body)
	if !ok {
		return invalid("", "Input should be a valid dictionary")
	}
	for _, check := range []func(object) *InvalidError{
		v.keys, v.modelName, v.limits, v.thinkingField, v.tools, v.toolChoice, v.system, v.messages, v.rest, v.topMark,
	} {
		if err := check(top); err != nil {
			return err
		}
	}
	return v.conversation()
}

func (v *validator) keys(top object) *InvalidError {
	// Sorted, so that the same request always gives the same error.
	for _, key := range sortedKeys(top) {
		ok := slices.Contains(topKeys, key) ||
			v.betas != "" && slices.Contains(betaKeys, key) ||
			v.version == "2023-06-01" && slices.Contains(samplingKeys, key)
		if !ok {
			return invalid(key, "Extra inputs are not permitted")
		}
	}
	for _, key := range []string{"model", "max_tokens", "messages"} {
		if _, ok := top[key]; !ok {
			return invalid(key, "Field required")
		}
	}
	return nil
}

func sortedKeys(o object) []string {
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (v *validator) modelName(top object) *InvalidError {
	name, ok := asString(top["model"])
	switch {
	case !ok:
		return invalid("model", "Input should be a valid string")
	case name == "":
		return invalid("model", "String should have at least 1 character")
	}
	v.model = name
	return nil
}

func (v *validator) limits(top object) *InvalidError {
	n, ok := asInt(top["max_tokens"])
	switch {
	case !ok:
		return invalid("max_tokens", "Input should be a valid integer")
	case n < 1:
		return invalid("max_tokens", "Input should be greater than or equal to 1")
	}
	v.maxTokens = n
	if raw, ok := top["temperature"]; ok {
		var x float64
		if json.Unmarshal(raw, &x) != nil || x < 0 || x > 1 {
			return invalid("temperature", "Input should be a number from 0 to 1")
		}
	}
	if raw, ok := top["top_p"]; ok {
		var x float64
		if json.Unmarshal(raw, &x) != nil || x < 0 || x > 1 {
			return invalid("top_p", "Input should be a number from 0 to 1")
		}
	}
	if raw, ok := top["top_k"]; ok {
		if n, ok := asInt(raw); !ok || n < 0 {
			return invalid("top_k", "Input should be an integer of at least 0")
		}
	}
	return nil
}

func (v *validator) thinkingField(top object) *InvalidError {
	if !top.present("thinking") {
		return nil
	}
	th, ok := asObject(top["thinking"])
	if !ok {
		return invalid("thinking", "Input should be a valid dictionary")
	}
	kind, _ := asString(th["type"])
	allowed := map[string][]string{
		"enabled": {"type", "budget_tokens", "display"}, "adaptive": {"type", "display"}, "disabled": {"type"},
	}[kind]
	if allowed == nil {
		return invalid("thinking.type", "Input should be 'enabled', 'adaptive' or 'disabled'")
	}
	if err := extra("thinking."+kind, th, allowed); err != nil {
		return err
	}
	if th.present("display") {
		if d, _ := asString(th["display"]); d != "summarized" && d != "omitted" {
			return invalid("thinking."+kind+".display", "Input should be 'summarized' or 'omitted'")
		}
	}
	v.thinking = kind
	if kind != "enabled" {
		return nil
	}
	budget, ok := asInt(th["budget_tokens"])
	switch {
	case !ok:
		return invalid("thinking.enabled.budget_tokens", "Field required")
	case budget < 1024:
		return invalid("thinking.enabled.budget_tokens", "Input should be greater than or equal to 1024")
	case budget >= v.maxTokens && !strings.Contains(v.betas, "interleaved-thinking"):
		return invalid("", "`max_tokens` must be greater than `thinking.budget_tokens`")
	}
	return nil
}

// rest checks the small fields.
func (v *validator) rest(top object) *InvalidError {
	if raw, ok := top["stream"]; ok && string(raw) != "true" && string(raw) != "false" {
		return invalid("stream", "Input should be a valid boolean")
	}
	if top.present("stop_sequences") {
		var seqs []string
		if json.Unmarshal(top["stop_sequences"], &seqs) != nil {
			return invalid("stop_sequences", "Input should be a list of strings")
		}
		for i, s := range seqs {
			if strings.TrimSpace(s) == "" {
				return invalid(fmt.Sprintf("stop_sequences.%d", i), "each stop sequence must contain non-whitespace")
			}
		}
	}
	if top.present("metadata") {
		m, ok := asObject(top["metadata"])
		if !ok {
			return invalid("metadata", "Input should be a valid dictionary")
		}
		if err := extra("metadata", m, []string{"user_id"}); err != nil {
			return err
		}
		if _, ok := asString(m["user_id"]); m.present("user_id") && !ok {
			return invalid("metadata.user_id", "Input should be a valid string")
		}
	}
	if top.present("service_tier") {
		if s, _ := asString(top["service_tier"]); s != "auto" && s != "standard_only" {
			return invalid("service_tier", "Input should be 'auto' or 'standard_only'")
		}
	}
	return v.outputConfig(top)
}

func (v *validator) outputConfig(top object) *InvalidError {
	if !top.present("output_config") {
		return nil
	}
	oc, ok := asObject(top["output_config"])
	if !ok {
		return invalid("output_config", "Input should be a valid dictionary")
	}
	allowed := []string{"effort", "format"}
	if v.betas != "" {
		allowed = append(allowed, "task_budget")
	}
	if err := extra("output_config", oc, allowed); err != nil {
		return err
	}
	if oc.present("effort") {
		effort, _ := asString(oc["effort"])
		if !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, effort) {
			return invalid("output_config.effort", "Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
		}
	}
	if oc.present("format") {
		f, ok := asObject(oc["format"])
		if !ok {
			return invalid("output_config.format", "Input should be a valid dictionary")
		}
		if kind, _ := asString(f["type"]); kind != "json_schema" {
			return invalid("output_config.format.type", "Input should be 'json_schema'")
		}
		if !isObject(f["schema"]) {
			return invalid("output_config.format.schema", "Input should be a valid dictionary")
		}
	}
	return nil
}

// extra refuses members that are not allowed.
func extra(path string, o object, allowed []string) *InvalidError {
	for _, key := range sortedKeys(o) {
		if !slices.Contains(allowed, key) {
			return invalid(path+"."+key, "Extra inputs are not permitted")
		}
	}
	return nil
}

// The readers below take text that json.Valid has accepted. They look at each
// byte once for each level of nesting and copy nothing: bodies may be large.

func asObject(raw json.RawMessage) (object, bool) {
	if !isObject(raw) {
		return nil, false
	}
	o := object{}
	members(raw, func(key, value []byte) bool {
		name := string(key)
		if bytes.IndexByte(key, '\\') >= 0 {
			// Valid text: the error cannot happen, and would leave the name as written.
			_ = json.Unmarshal(join(`"`, name, `"`), &name)
		}
		o[name] = value
		return true
	})
	return o, true
}

func asString(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

func asInt(raw json.RawMessage) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

func asList(raw json.RawMessage) ([]json.RawMessage, bool) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	list := []json.RawMessage{}
	elements(raw, func(value []byte) bool {
		list = append(list, value)
		return true
	})
	return list, true
}
