package demo

import (
	"fmt"
	"os"
	"path/filepath"
)

// The project: an auth module in shell whose test fails, since the comparison
// of the expiry time is the wrong way round.
const (
	authFile = "auth.sh"
	testFile = "auth_test.sh"

	authText = `# Tokens look like "user:expiry", expiry in seconds.

# token_user TOKEN: prints the user of the token.
token_user() {
	echo "${1%%:*}"
}

# token_valid TOKEN NOW: succeeds while the token has not expired.
token_valid() {
	expiry=${1##*:}
	[ "$2" -gt "$expiry" ]
}
`
	brokenLine = `	[ "$2" -gt "$expiry" ]`
	fixedLine  = `	[ "$2" -lt "$expiry" ]`

	testText = `. ./auth.sh
failed=0
check() { # check NAME EXPECTED ACTUAL
	if [ "$2" = "$3" ]; then echo "ok   $1"; else echo "FAIL $1: want $2, got $3"; failed=1; fi
}
answer() { if "$@"; then echo yes; else echo no; fi; }
check "user of a token" ada "$(token_user ada:200)"
check "fresh token is valid" yes "$(answer token_valid ada:200 100)"
check "old token is refused" no "$(answer token_valid ada:200 300)"
if [ "$failed" = 0 ]; then echo "all tests passed"; else echo "tests failed"; exit 1; fi
`
)

// layOut writes the project into dir.
func layOut(dir string) error {
	for name, text := range map[string]string{authFile: authText, testFile: testText} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("demo project: %w", err)
		}
	}
	return nil
}
