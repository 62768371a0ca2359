package hook

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

func TestMerge(t *testing.T) {
	conform.Covers(t, "H-45", "H-48", "H-50", "H-58", "H-59", "H-60", "H-61", "H-65", "H-66", "H-124", "W-157")
	r := func(done int, o Output) Result { return Result{Name: "n", Done: done, Output: o} }
	broken := Result{Name: "n", Failure: errors.New("broken"), Done: 9}
	for name, tt := range map[string]struct {
		ev   Event
		in   []Result
		want Merged
	}{
		"deny over defer":                {PreToolUse, []Result{r(1, Output{Permission: Defer}), r(2, Output{Permission: Deny, PermissionReason: "d"}), r(3, Output{Permission: Allow, PermissionReason: "a"})}, Merged{Permission: Deny, Reason: "d"}},
		"defer over ask":                 {PreToolUse, []Result{r(1, Output{Permission: Ask}), r(2, Output{Permission: Defer, UpdatedInput: []byte("{}")})}, Merged{Permission: Defer}},
		"ask over allow":                 {PreToolUse, []Result{r(1, Output{Permission: Allow, UpdatedInput: []byte(`{"a":1}`)}), r(2, Output{Permission: Ask, PermissionReason: "why"})}, Merged{Permission: Ask, Reason: "why", UpdatedInput: []byte(`{"a":1}`)}},
		"reasons in configuration order": {PreToolUse, []Result{r(2, Output{Permission: Deny, PermissionReason: "one"}), r(1, Output{Permission: Deny, PermissionReason: "two"}), r(3, Output{Permission: Deny, PermissionReason: "one"})}, Merged{Permission: Deny, Reason: "one\ntwo"}},
		"the last to finish":             {PreToolUse, []Result{r(2, Output{UpdatedInput: []byte(`{"late":1}`)}), r(1, Output{UpdatedInput: []byte(`{"early":1}`)})}, Merged{UpdatedInput: []byte(`{"late":1}`)}},
		"outputs too":                    {PostToolUse, []Result{r(2, Output{UpdatedOutput: []byte(`2`)}), r(1, Output{UpdatedOutput: []byte(`1`)})}, Merged{UpdatedOutput: []byte(`2`)}},
		"all contexts":                   {PostToolUse, []Result{r(2, Output{Context: "b"}), r(1, Output{Context: "a"})}, Merged{Contexts: []string{"b", "a"}}},
		"stop outranks":                  {PreToolUse, []Result{r(1, Output{Stop: true, StopReason: "s", Permission: Allow})}, Merged{Stop: true, StopReason: "s", Permission: Allow}},
		"failure denies":                 {PreToolUse, []Result{r(1, Output{Permission: Allow}), broken}, Merged{Permission: Deny, Reason: "n hook: broken", Failure: broken.Failure}},
		"an explicit denial is told":     {PreToolUse, []Result{broken, r(1, Output{Permission: Deny, PermissionReason: "d"})}, Merged{Permission: Deny, Reason: "d"}},
		"failure blocks a prompt":        {UserPromptSubmit, []Result{broken}, Merged{Block: true, Reason: "n hook: broken", Failure: broken.Failure}},
		"and nothing else":               {PostToolUse, []Result{broken}, Merged{Notices: []Notice{{Text: "n hook error\nbroken", Fault: true}}}},
		"fault":                          {PreToolUse, []Result{{Name: "n", Fault: errors.New("f")}}, Merged{Notices: []Notice{{Text: "n hook error\nf", Fault: true}}}},
		"lines have the name":            {Stop, []Result{r(1, Output{SystemMessage: "a\nb\n"})}, Merged{Notices: []Notice{{Text: "n: a\nn: b"}}}},
		"muted":                          {SessionEnd, []Result{r(1, Output{SystemMessage: "a", Stop: true}), broken}, Merged{}},
		"goes on":                        {TaskCreated, []Result{r(1, Output{SystemMessage: "a", Stop: true})}, Merged{Notices: []Notice{{Text: "n: a"}}}},
		"deny answers":                   {PermissionRequest, []Result{r(1, Output{Answer: &Answer{Allow: true}}), r(2, Output{Answer: &Answer{Message: "no"}}), r(3, Output{Answer: &Answer{Allow: true}})}, Merged{Answer: &Answer{Message: "no"}}},
		"a block has a reason":           {Stop, []Result{r(1, Output{Block: true})}, Merged{Block: true, Reason: noReason}},
	} {
		if got := Merge(tt.ev, tt.in); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", name, got, tt.want)
		}
	}
}

// TestEvents: the facts of the table in section 6 of the contract.
func TestEvents(t *testing.T) {
	conform.Covers(t, "H-39", "H-62", "H-124", "H-131", "H-133")
	if len(events) != 31 {
		t.Errorf("%d events", len(events))
	}
	var silent, muted, goesOn, context, start []string
	for ev, f := range events {
		for list, is := range map[*[]string]bool{&silent: f.silent, &muted: f.muted, &goesOn: f.goesOn, &context: f.context, &start: len(f.types) == 2} {
			if is {
				*list = append(*list, string(ev))
			}
		}
		table := Table{ev: {{Hooks: []Func{func(_ ctx, _ Input, _ string) (Output, error) { return Output{}, nil }}}}}
		if set, err := NewSet(Config{Callbacks: table}); err != nil || !set.Has(ev) {
			t.Errorf("%s takes no callbacks: %v", ev, err)
		}
	}
	for name, tt := range map[string]struct {
		got  []string
		want string
	}{
		"silent":  {silent, "Notification SessionEnd PreCompact PostCompact"},
		"muted":   {muted, "InstructionsLoaded MessageDisplay Notification PreCompact PostCompact SessionEnd Elicitation ElicitationResult WorktreeCreate WorktreeRemove ConfigChange StopFailure"},
		"goes on": {goesOn, "CwdChanged FileChanged DirectoryAdded TaskCreated"},
		"context": {context, "SessionStart UserPromptSubmit UserPromptExpansion"},
		"start":   {start, "SessionStart Setup"},
	} {
		want := strings.Fields(tt.want)
		if len(tt.got) != len(want) {
			t.Errorf("%s: %s", name, tt.got)
		}
		for _, w := range want {
			if !strings.Contains(" "+strings.Join(tt.got, " ")+" ", " "+w+" ") {
				t.Errorf("%s: no %s in %s", name, w, tt.got)
			}
		}
	}
	for ev, want := range map[Event]string{PreToolUse: "10m0s", UserPromptSubmit: "30s", MessageDisplay: "10s", SessionEnd: "1.5s"} {
		if got := ev.Timeout().String(); got != want {
			t.Errorf("%s: %s", ev, got)
		}
	}
}
