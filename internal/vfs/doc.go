// Package vfs is the small file system that the file store of sessions works
// on. All its disk access goes through FS, so that tests can make every single
// write, sync and rename fail or tear, and can take the power away.
//
// OS is the real disk. Mem keeps files in memory and remembers what was
// synced: Crash gives the file system that a machine would find after a power
// loss. WithFaults wraps either of them with injected errors.
package vfs
