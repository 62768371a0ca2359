// Package crash holds what the crash campaigns share: a scripted model that
// goes on after a crash as a careful one would, and the tests that end the
// process at every point of scripted sessions.
package crash
