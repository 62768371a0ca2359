package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Result is what one handler of an event came to.
type Result struct {
	// Name is what users know the hook by: the event, and where it has one the
	// field that matchers look at, as in "PreToolUse:Bash".
	Name string
	Output
	// Fault is a failure that decides nothing; the user is told (H-45, H-46).
	Fault error
	// Failure is a callback that failed or took too long: at some events it
	// stops what was about to happen (H-65, H-66).
	Failure error
	// Done numbers the results in the order in which they came (H-60).
	Done int
}

// Name returns what users know the hooks of an event by.
func Name(in Input) string {
	if s := in.Subject(); s != "" && events[in.Event()].subject {
		return string(in.Event()) + ":" + s
	}
	return string(in.Event())
}

// Exit is a command that has ended.
type Exit struct {
	Code           int
	Stdout, Stderr []byte
}

// noReason is told where a hook blocks without a word.
const noReason = "A hook blocked it and gave no reason."

// FromCommand reads what a command said (H-41 to H-46). log is what goes to the
// debug log.
func FromCommand(ev Event, x Exit) (o Output, log string, fault error) {
	stderr := strings.TrimSpace(string(x.Stderr))
	stdout := bytes.TrimSpace(x.Stdout)
	isJSON := bytes.HasPrefix(stdout, []byte("{")) && json.Valid(stdout)
	var bad error
	if isJSON {
		o, bad = ParseOutput(ev, stdout)
	}
	log = stderr
	f := events[ev]
	switch {
	case x.Code == 2 && f.exit2 != never && f.exit2 != everything:
		return exit2(ev, o, stderr), log, nil
	case x.Code != 0 && f.exit2 == everything:
		return Output{}, log, failed(x.Code, stderr)
	case bad != nil:
		return Output{}, log, bad
	case isJSON:
		return o, log, nil
	case x.Code != 0:
		return Output{}, log, failed(x.Code, stderr)
	case f.context:
		o.Context = string(stdout)
	case len(stdout) > 0:
		log = strings.TrimSpace(string(stdout) + "\n" + log)
	}
	return o, log, nil
}

// failed is the fault of an exit code that decides nothing (H-45).
func failed(code int, stderr string) error {
	first, _, _ := strings.Cut(stderr, "\n")
	if first == "" {
		first = fmt.Sprintf("exit code %d, and nothing on standard error", code)
	}
	return errors.New("Failed with non-blocking status code: " + first)
}

// exit2 blocks, whatever the JSON says (H-43, H-44): its own reason is told when
// it blocks too.
func exit2(ev Event, o Output, stderr string) Output {
	if stderr == "" {
		stderr = noReason
	}
	switch events[ev].exit2 {
	case denies:
		if o.Permission != Deny || o.PermissionReason == "" {
			o.PermissionReason = stderr
		}
		o.Permission = Deny
	case declines:
		o.Action, o.Content = "decline", nil
	case told:
		o.SystemMessage = strings.TrimSpace(o.SystemMessage + "\n" + stderr)
	default:
		if !o.Block || o.Reason == "" {
			o.Reason = stderr
		}
		o.Block = true
	}
	return o
}
