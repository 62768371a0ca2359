package builtin

import (
	"path"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/envvar"
	"github.com/turnwright/turnwright/tool"
)

// quietVars keep programs that look for a person from waiting for one (B-106),
// where the user has not set them: git asks for no password, opens no editor
// and no pager; nor do the programs that ask EDITOR and PAGER. "true" is an
// editor that leaves the text as it is.
var quietVars = [][2]string{
	{"GIT_TERMINAL_PROMPT", "0"},
	{"GIT_EDITOR", "true"},
	{"EDITOR", "true"},
	{"VISUAL", "true"},
	{"PAGER", "cat"},
	{"GIT_PAGER", "cat"},
	{"MANPAGER", "cat"},
}

// secretVars are the credentials of model providers and clouds that
// CLAUDE_CODE_SUBPROCESS_ENV_SCRUB=1 keeps from commands (T-124), as patterns
// of path.Match.
var secretVars = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_*_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN",
	"CLAUDE_CODE_*_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_BEARER_TOKEN_*",
	"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN*", "AWS_CONTAINER_CREDENTIALS_*",
	"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "CLOUDSDK_AUTH_*",
	"AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_*", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_PASSWORD", "AZURE_*_KEY",
}

func secret(name string) bool {
	return slices.ContainsFunc(secretVars, func(p string) bool {
		ok, _ := path.Match(p, name) // the patterns are right
		return ok
	})
}

// childEnv is the environment of a command (T-122).
func childEnv(c *tool.Call, dir string) []string {
	var inherited []string
	if c.Env.Environ != nil {
		inherited = c.Env.Environ()
	}
	scrub := envvar.On(getenv(c.Env, "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"))
	env := make([]string, 0, len(inherited)+len(quietVars)+6)
	set := map[string]bool{}
	for _, v := range inherited {
		name, _, _ := strings.Cut(v, "=")
		if scrub && secret(name) {
			continue
		}
		set[name] = true
		env = append(env, v)
	}
	for _, v := range quietVars {
		if !set[v[0]] && !(v[0] == "VISUAL" && set["EDITOR"]) {
			env = append(env, v[0]+"="+v[1])
		}
	}
	return append(env,
		"CLAUDECODE=1",
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_SESSION_ID="+c.Env.SessionID,
		callKeyVar+"="+c.Key,
		"PWD="+dir,
	)
}

// callKeyVar is the variable with the idempotency key of the call.
const callKeyVar = "TURNWRIGHT_TOOL_CALL_KEY"
