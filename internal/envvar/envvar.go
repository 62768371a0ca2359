// Package envvar says what the values of environment variables mean.
package envvar

import "strings"

// On reports whether a switch is on: 1, true, yes or on, in any case.
func On(v string) bool {
	switch strings.ToLower(v) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
