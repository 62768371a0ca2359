package main

import (
	"slices"
	"testing"
)

func TestSetupCommands(t *testing.T) {
	const fence = "```"
	for name, tc := range map[string]struct {
		readme string
		want   []string
		fault  string
	}{
		"two in one fence": {
			"# X\n" + fence + "\ngo version\n" + fence + "\n## Set-up\n\n" + fence + "sh\ngo run ./cmd/turnwright demo\ngo test ./...\ngo vet ./...\n" + fence + "\n",
			[]string{"go run ./cmd/turnwright demo", "go test ./..."},
			"",
		},
		"two fences, prompts, comments, clone": {
			"## Set-up\n" + fence + "\ngit clone https://example.com/x\ncd x\n$ go run ./a   # shows it\n" + fence + "\ntext\n" + fence + "\n# all tests\n$ go test ./...\n" + fence,
			[]string{"go run ./a", "go test ./..."},
			"",
		},
		"comment line is no heading": {
			"## Set-up\n" + fence + "\n# Use\ngo a\ngo b\n" + fence,
			[]string{"go a", "go b"},
			"",
		},
		"next section does not count": {
			"## Set-up\n" + fence + "\ngo a\n" + fence + "\n## Use\n" + fence + "\ngo b\n" + fence,
			nil, "README.md has no two commands in fenced code below \"## Set-up\"",
		},
		"only go commands": {
			"## Set-up\n" + fence + "\nrm -r x\n" + fence,
			nil, `README.md, Set-up: "rm -r x" is no go command`,
		},
		"none": {"# X\n", nil, "README.md has no two commands in fenced code below \"## Set-up\""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := setupCommands(tc.readme)
			if !slices.Equal(got, tc.want) || (err == nil) != (tc.fault == "") || err != nil && err.Error() != tc.fault {
				t.Errorf("got %q, %v, want %q, %q", got, err, tc.want, tc.fault)
			}
		})
	}
}
