// Package permfile keeps changes of permissions in settings files: it edits the
// key "permissions" and leaves everything else as it stands, with its order and
// its layout.
package permfile
