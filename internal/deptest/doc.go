// Package deptest holds the import layers of docs/design.md ("Packages") and
// the list of dependencies. It is tests only: a rule says which package may
// import what, and why, and the test prints that reason when it is broken.
//
// A new package needs a line in rules_test.go; without one the test fails, so
// that somebody thinks about where it belongs.
package deptest
