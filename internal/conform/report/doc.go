// Package report makes docs/conformance.md: which requirement of docs/contract
// is proven by which test, and which later issue brings the rest.
//
// Three things are read: the contract's pages (ids, classes, statements), the
// sources of all tests in the repository (calls of conform.Covers, covers
// lines of scenario files) and internal/conform/letters.txt (id to issue).
// Nothing is run, so the page costs well under a second.
package report
