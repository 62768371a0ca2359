package agenttest

import (
	"encoding/json"
	"fmt"
	"regexp"
)

var (
	toolUseID    = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`) // a tool's name too, up to maxToolName
	propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)
	datedType    = regexp.MustCompile(`^[a-z0-9_]+_20[0-9]{6}$`)
)

// Lengths of names, in bytes. They are not in the expressions, where repetitions
// make compiling slow.
const (
	maxToolName     = 128
	maxPropertyName = 64
)

// toolNamePattern is how the API writes it.
const toolNamePattern = "^[a-zA-Z0-9_-]{1,128}$"

func isToolName(s string) bool { return len(s) <= maxToolName && toolUseID.MatchString(s) }

func (v *validator) tools(top object) *InvalidError {
	if !top.present("tools") {
		return nil
	}
	list, ok := asList(top["tools"])
	if !ok {
		return invalid("tools", "Input should be a valid list")
	}
	v.toolNames = map[string]bool{}
	for i, raw := range list {
		path := fmt.Sprintf("tools.%d", i)
		t, ok := asObject(raw)
		if !ok {
			return invalid(path, "Input should be a valid dictionary")
		}
		if err := v.tool(path, t); err != nil {
			return err
		}
		if err := v.mark(path, t, true); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) tool(path string, t object) *InvalidError {
	kind, isTyped := asString(t["type"])
	if t.present("type") && !isTyped {
		return invalid(path+".type", "Input should be a valid string")
	}
	if isTyped && kind != "custom" {
		if !datedType.MatchString(kind) && v.betas == "" {
			return invalid(path, "Input tag '%s' found using 'type' does not match any of the expected tags", kind)
		}
		if name, ok := asString(t["name"]); ok {
			return v.uniqueName(name)
		}
		return nil
	}
	path += ".custom"
	if err := extra(path, t, []string{
		"type", "name", "description", "input_schema", "cache_control", "strict", "defer_loading", "allowed_callers",
		"input_examples", "eager_input_streaming",
	}); err != nil {
		return err
	}
	name, ok := asString(t["name"])
	switch {
	case !ok:
		return invalid(path+".name", "Field required")
	case !isToolName(name):
		return invalid(path+".name", "String should match pattern '%s'", toolNamePattern)
	}
	if _, ok := asString(t["description"]); t.present("description") && !ok {
		return invalid(path+".description", "Input should be a valid string")
	}
	if err := checkSchema(path+".input_schema", t["input_schema"]); err != nil {
		return err
	}
	return v.uniqueName(name)
}

func (v *validator) uniqueName(name string) *InvalidError {
	if v.toolNames[name] {
		return invalid("tools", "Tool names must be unique. Found %q twice.", name)
	}
	v.toolNames[name] = true
	return nil
}

func checkSchema(path string, raw json.RawMessage) *InvalidError {
	if raw == nil {
		return invalid(path, "Field required")
	}
	s, ok := asObject(raw)
	if !ok {
		return invalid(path, "Input should be a valid dictionary")
	}
	kind, ok := asString(s["type"])
	switch {
	case s["type"] == nil:
		return invalid(path+".type", "Field required")
	case !ok || kind != "object":
		return invalid(path+".type", "Input should be 'object'")
	}
	for _, key := range []string{"oneOf", "allOf", "anyOf"} {
		if _, ok := s[key]; ok {
			return invalid(path, "input_schema does not support oneOf, allOf, or anyOf at the top level")
		}
	}
	if raw, ok := s["properties"]; ok {
		props, ok := asObject(raw)
		if !ok {
			return invalid(path+".properties", "Input should be a valid dictionary")
		}
		for _, key := range sortedKeys(props) {
			if len(key) > maxPropertyName || !propertyName.MatchString(key) {
				return invalid(path+".properties", "Property keys should match pattern '%s', not %q", "^[a-zA-Z0-9_.-]{1,64}$", key)
			}
			if p := string(props[key]); !isObject(props[key]) && p != "true" && p != "false" {
				return invalid(path, "JSON schema is invalid: property %q is no schema", key)
			}
		}
	}
	if raw, ok := s["required"]; ok {
		var names []string
		if json.Unmarshal(raw, &names) != nil || names == nil {
			return invalid(path, "JSON schema is invalid: required is no list of strings")
		}
	}
	return nil
}

func (v *validator) toolChoice(top object) *InvalidError {
	if !top.present("tool_choice") {
		return nil
	}
	c, ok := asObject(top["tool_choice"])
	if !ok {
		return invalid("tool_choice", "Input should be a valid dictionary")
	}
	kind, _ := asString(c["type"])
	allowed := map[string][]string{
		"auto": {"type", "disable_parallel_tool_use"}, "any": {"type", "disable_parallel_tool_use"},
		"tool": {"type", "name", "disable_parallel_tool_use"}, "none": {"type"},
	}[kind]
	if allowed == nil {
		return invalid("tool_choice.type", "Input should be 'auto', 'any', 'tool' or 'none'")
	}
	if err := extra("tool_choice."+kind, c, allowed); err != nil {
		return err
	}
	if raw, ok := c["disable_parallel_tool_use"]; ok && string(raw) != "true" && string(raw) != "false" {
		return invalid("tool_choice."+kind+".disable_parallel_tool_use", "Input should be a valid boolean")
	}
	if len(v.toolNames) == 0 && !top.present("mcp_servers") {
		return invalid("tool_choice", "tool_choice may only be specified while providing tools")
	}
	if kind == "tool" {
		name, ok := asString(c["name"])
		switch {
		case !ok:
			return invalid("tool_choice.tool.name", "Field required")
		case !v.toolNames[name]:
			return invalid("tool_choice", "Tool '%s' not found in provided tools", name)
		}
	}
	if v.thinking == "enabled" && (kind == "any" || kind == "tool") {
		return invalid("", "Thinking may not be enabled when tool_choice forces tool use.")
	}
	return nil
}
