// Package session keeps sessions: the Store interface that a place for
// sessions implements, and the memory store. The file store in the layout of
// the official clients is session/file.
//
// A store keeps lines. What they mean is the business of internal/journal;
// a store never looks inside.
package session
