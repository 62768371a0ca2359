package message

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/rawjson"
)

// shapes is the contract's list of keys, written down by hand and not derived
// from the Go types. Words without a mark are always there, those with ? only
// when set. "type", "subtype" and the header are understood.
var shapes = map[string]string{
	"system/init": `apiKeySource claude_code_version cwd tools mcp_servers model permissionMode slash_commands
		output_style skills plugins agents betas? capabilities? terminal_slash_commands? plugin_errors? mcp_server_errors?`,
	"assistant": `message parent_tool_use_id error? aborted? timestamp? context_usage?`,
	"user": `message parent_tool_use_id isSynthetic? isReplay? shouldQuery? tool_use_result? origin?
		timestamp?`,
	"stream_event":                 `event parent_tool_use_id ttft_ms?`,
	"system/compact_boundary":      `compact_metadata`,
	"system/status":                `status permissionMode?`,
	"system/informational":         `content level tool_use_id? prevent_continuation?`,
	"system/local_command_output":  `content`,
	"system/commands_changed":      `commands`,
	"conversation_reset":           `new_conversation_id`,
	"system/thinking_tokens":       `estimated_tokens estimated_tokens_delta`,
	"system/worker_shutting_down":  `reason`,
	"system/session_state_changed": `state`,
	"system/notification":          `key text priority color? timeout_ms?`,
	"system/memory_recall":         `mode memories`,
	"system/elicitation_complete":  `mcp_server_name elicitation_id`,
	"system/api_retry":             `attempt max_retries retry_delay_ms error_status error`,
	"rate_limit_event":             `rate_limit_info`,
	"system/permission_denied":     `tool_name tool_use_id agent_id? decision_reason_type? decision_reason? message`,
	"auth_status":                  `isAuthenticating output error?`,
	"system/hook_started":          `hook_id hook_name hook_event`,
	"system/hook_progress":         `hook_id hook_name hook_event stdout stderr output`,
	"system/hook_response":         `hook_id hook_name hook_event output stdout stderr exit_code? outcome`,
	"system/plugin_install":        `status name? error?`,
	"tool_progress": `tool_use_id tool_name parent_tool_use_id elapsed_time_seconds task_id? heartbeat?
		subagent_type? subagent_retry?`,
	"tool_use_summary":                `summary preceding_tool_use_ids`,
	"system/task_started":             `task_id tool_use_id? description task_type? is_backgrounded? spawn_depth?`,
	"system/task_progress":            `task_id tool_use_id? description subagent_type? usage last_tool_name? summary?`,
	"system/task_updated":             `task_id patch`,
	"system/task_notification":        `task_id tool_use_id? status output_file summary usage?`,
	"system/background_tasks_changed": `tasks`,
	"prompt_suggestion":               `suggestion`,
	"system/files_persisted":          `files failed processed_at`,
	"system/mirror_error":             `error key`,
	"transcript_mirror":               `filePath entries`,
	"control_request":                 `request_id request`,
	"control_response":                `response`,
	"control_cancel_request":          `request_id`,
	"keep_alive":                      ``,
	"result/success": `is_error duration_ms duration_api_ms num_turns tool_turns result stop_reason total_cost_usd?
		usage? modelUsage? permission_denials structured_output? deferred_tool_use? api_error_status? terminal_reason?
		origin? user_message_uuid? request_sent_wall_ms? ttft_ms? ttft_stream_ms?`,
	"result/error_max_turns":                     errorResult,
	"result/error_max_budget_usd":                errorResult,
	"result/error_during_execution":              errorResult,
	"result/error_max_structured_output_retries": errorResult,
}

// errorResult has errors and never result (M-55), and of the keys of a success
// only those of M-53 and M-56.
const errorResult = `is_error duration_ms duration_api_ms num_turns tool_turns errors stop_reason total_cost_usd?
	usage? modelUsage? permission_denials api_error_status? terminal_reason? origin?`

// parts is the same for the objects inside messages.
var parts = map[reflect.Type]string{
	reflect.TypeFor[APIMessage](): `id type role model content stop_reason stop_sequence usage`,
	reflect.TypeFor[UserBody]():   `role content`,
	reflect.TypeFor[Usage](): `input_tokens output_tokens cache_creation_input_tokens cache_read_input_tokens
		cache_creation server_tool_use service_tier speed? inference_geo? iterations?`,
	reflect.TypeFor[CacheCreation](): `ephemeral_5m_input_tokens ephemeral_1h_input_tokens`,
	reflect.TypeFor[ServerToolUse](): `web_search_requests web_fetch_requests`,
	reflect.TypeFor[ModelUsage](): `inputTokens outputTokens cacheReadInputTokens cacheCreationInputTokens
		webSearchRequests costUSD contextWindow maxOutputTokens canonicalModel? provider?`,
	reflect.TypeFor[PermissionDenial](): `tool_name tool_use_id tool_input`,
	reflect.TypeFor[ToolUse]():          `id name input`,
	reflect.TypeFor[Origin]():           `kind server? subkind? from? fromMode? name? fromSession? senderTaskId? body?`,
	reflect.TypeFor[ServerState]():      `name status`,
	reflect.TypeFor[ServerError]():      `name type message`,
	reflect.TypeFor[PluginRef]():        `name path`,
	reflect.TypeFor[PluginError]():      `plugin type message`,
	reflect.TypeFor[CompactMetadata]():  `trigger pre_tokens`,
	reflect.TypeFor[SlashCommand]():     `name description argumentHint aliases?`,
	reflect.TypeFor[RateLimitInfo](): `status resetsAt? rateLimitType? utilization? overageStatus? overageResetsAt?
		overageDisabledReason?`,
	reflect.TypeFor[SubagentRetry]():  `agent_id attempt max_retries retry_delay_ms error_status error_category`,
	reflect.TypeFor[TaskUsage]():      `total_tokens tool_uses duration_ms`,
	reflect.TypeFor[TaskPatch]():      `status? description? end_time? total_paused_ms? error? is_backgrounded?`,
	reflect.TypeFor[BackgroundTask](): `task_id task_type description`,
	reflect.TypeFor[PersistedFile]():  `filename file_id`,
	reflect.TypeFor[FailedFile]():     `filename error`,
	reflect.TypeFor[MirrorKey]():      `projectKey sessionId subpath?`,
	reflect.TypeFor[ControlAnswer]():  `subtype request_id response? error? pending_permission_requests?`,
}

// words returns the keys that are always there and all keys, sorted.
func words(shape string) (always, all []string) {
	for w := range strings.FieldsSeq(shape) {
		name, optional := strings.CutSuffix(w, "?")
		if !optional {
			always = append(always, name)
		}
		all = append(all, name)
	}
	slices.Sort(always)
	slices.Sort(all)
	return always, all
}

func keysOf(t *testing.T, line []byte, without ...string) []string {
	t.Helper()
	var keys []string
	for k := range rawjson.Members(line) {
		if !slices.Contains(without, string(k)) {
			keys = append(keys, string(k))
		}
	}
	slices.Sort(keys)
	return keys
}

// fillAll sets every field below v to something that is not empty.
func fillAll(v reflect.Value) {
	switch v.Type() {
	case rawType:
		v.SetBytes([]byte(`{"x":1}`))
		return
	case blockType:
		v.Set(reflect.ValueOf(NewText("x")))
		return
	case contentType:
		v.Set(reflect.ValueOf(TextContent("x")))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAll(v.Index(0))
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fillAll(elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), elem)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillAll(v.Field(i))
			}
		}
	}
}

func TestMessageShapes(t *testing.T) {
	conform.Covers(t, "M-4", "M-10", "M-16", "M-25", "M-35", "M-53", "M-54", "M-55", "M-56", "M-72",
		"M-80", "M-81", "M-82", "M-83", "M-87", "M-89", "M-91", "M-92", "M-102",
		"L-54", "L-55", "W-222", "W-262", "W-291", "W-293", "W-294", "W-295", "W-301", "W-302", "W-303", "W-304")
	seen := map[string]bool{}
	for _, m := range samples() {
		typ, subtype := m.Kind()
		kind := kindString(typ, subtype)
		if seen[kind] || strings.Contains(kind, "not_yet_known") {
			continue
		}
		seen[kind] = true
		t.Run(kind, func(t *testing.T) {
			shape, ok := shapes[kind]
			if !ok {
				t.Fatal("no shape written down")
			}
			always, all := words(shape)
			zero := newMessage(typ, subtype)
			full := newMessage(typ, subtype)
			fillAll(reflect.ValueOf(full).Elem())
			if r, ok := full.(*Result); ok {
				r.Subtype, r.IsError = Subtype(subtype), subtype != "success"
			}
			for _, c := range []struct {
				m    Message
				want []string
			}{{zero, always}, {full, all}} {
				line, err := Marshal(c.m)
				if err != nil {
					t.Fatal(err)
				}
				head := `{"type":"` + typ + `"`
				if subtype != "" {
					head += `,"subtype":"` + subtype + `"`
				}
				if !strings.HasPrefix(string(line), head) {
					t.Errorf("%s does not begin with %s", line, head)
				}
				if got := keysOf(t, line, "type", "subtype", "uuid", "session_id"); !slices.Equal(got, c.want) {
					t.Errorf("keys %q, want %q", got, c.want)
				}
				if c.m == full && typ != "keep_alive" && (rawjson.Member(line, "uuid") == nil || rawjson.Member(line, "session_id") == nil) {
					t.Errorf("no header in %s", line)
				}
			}
		})
	}
	for kind := range shapes {
		if !seen[kind] {
			t.Errorf("shape %s belongs to no message", kind)
		}
	}
}

func TestPartShapes(t *testing.T) {
	conform.Covers(t, "M-16", "M-25", "M-35", "M-53", "M-62", "M-63", "M-72", "M-87", "M-92", "M-93", "M-95",
		"W-269", "W-296")
	// Every struct inside a message is written down.
	var visit func(reflect.Type)
	visited := map[reflect.Type]bool{}
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(typ.Elem())
		case reflect.Struct:
			if visited[typ] || typ == blockType || typ == contentType {
				return
			}
			visited[typ] = true
			_, isMessage := reflect.New(typ).Interface().(Message)
			if _, ok := parts[typ]; !ok && !isMessage && typ != reflect.TypeFor[Header]() {
				t.Errorf("no shape written down for %s", typ)
			}
			for i := range typ.NumField() {
				visit(typ.Field(i).Type)
			}
		}
	}
	for _, m := range samples() {
		visit(reflect.TypeOf(m).Elem())
	}
	for typ, shape := range parts {
		always, all := words(shape)
		for _, full := range []bool{false, true} {
			v := reflect.New(typ)
			want := always
			if full {
				fillAll(v.Elem())
				want = all
			}
			line, err := marshalPart(v.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if got := keysOf(t, line); !slices.Equal(got, want) {
				t.Errorf("%s (full: %v): keys %q, want %q", typ, full, got, want)
			}
			if !full && strings.Contains(string(line), "null") {
				// null stands only where the contract has it.
				for k, raw := range rawjson.Members(line) {
					if rawjson.IsNull(raw) && !slices.Contains([]string{"stop_reason", "stop_sequence", "error_status"}, string(k)) {
						t.Errorf("%s: %s is null in the zero value", typ, k)
					}
				}
			}
		}
	}
}

// TestFieldNames checks that the Go name of a field and its JSON name are the
// same word, so that no two tags are swapped.
func TestFieldNames(t *testing.T) {
	differ := map[string]string{
		"Init.claude_code_version":                "Version",
		"CompactBoundary.compact_metadata":        "Metadata",
		"RateLimitEvent.rate_limit_info":          "Info",
		"CacheCreation.ephemeral_5m_input_tokens": "Ephemeral5m",
		"CacheCreation.ephemeral_1h_input_tokens": "Ephemeral1h",
	}
	check := func(typ reflect.Type) {
		for _, sf := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			if want, ok := differ[typ.Name()+"."+name]; ok {
				if sf.Name != want {
					t.Errorf("%s.%s has the name %s", typ.Name(), sf.Name, name)
				}
				continue
			}
			if !strings.EqualFold(strings.ReplaceAll(name, "_", ""), sf.Name) {
				t.Errorf("%s.%s has the name %s", typ.Name(), sf.Name, name)
			}
		}
	}
	for _, m := range samples() {
		check(reflect.TypeOf(m).Elem())
	}
	for typ := range parts {
		check(typ)
	}
}

// TestRequiredByTheClient checks the keys without which the official Python
// client raises, on messages with nothing but a header.
func TestRequiredByTheClient(t *testing.T) {
	conform.Covers(t, "W-400", "W-403", "W-404", "W-405", "W-406", "W-407", "W-409")
	head := Header{UUID: "u", SessionID: "s"}
	for _, c := range []struct {
		m    Message
		want string
	}{
		{&Result{Subtype: Success, Header: head}, "subtype duration_ms duration_api_ms is_error num_turns session_id"},
		{&Result{Subtype: ErrorMaxTurns, Header: head}, "subtype duration_ms duration_api_ms is_error num_turns session_id"},
		{&TaskStarted{Header: head}, "subtype task_id description uuid session_id"},
		{&TaskProgress{Header: head}, "subtype task_id description usage uuid session_id"},
		{&TaskNotification{Header: head}, "subtype task_id status output_file summary uuid session_id"},
		{&StreamEvent{Header: head}, "uuid session_id event"},
		{&RateLimitEvent{Header: head}, "rate_limit_info uuid session_id"},
		{&ConversationReset{Header: head}, "new_conversation_id uuid session_id"},
		{&TranscriptMirror{}, "filePath entries"},
	} {
		line, err := Marshal(c.m)
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq("type " + c.want) {
			if v := rawjson.Member(line, name); v == nil || rawjson.IsNull(v) {
				t.Errorf("%s lacks %s", line, name)
			}
		}
	}
	// A deferred_tool_use needs id, name and input.
	line, err := Marshal(&Result{Subtype: Success, DeferredToolUse: &ToolUse{}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		D map[string]any `json:"deferred_tool_use"`
	}
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"id": "", "name": "", "input": map[string]any{}}; !reflect.DeepEqual(got.D, want) {
		t.Errorf("deferred_tool_use %v, want %v", got.D, want)
	}
}
