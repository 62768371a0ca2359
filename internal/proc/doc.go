// Package proc starts commands, knows every process that came of one, and ends
// them all.
//
// A command gets a session of its own, and with it a process group: one signal
// reaches what stays in it. What leaves it ("setsid", a daemon that forks
// twice) must be found another way, without taking the children of the program
// that this package runs in: it is a library, so it cannot become the reaper of
// all orphans.
//
// On Linux every process of a command carries a mark: the soft limit
// RLIMIT_LOCKS, which no kernel since 2.4.25 enforces. A limit is passed on by
// fork and exec, whatever a program does to its environment, descriptors,
// session or user id, and one cheap system call reads it. A mark is a random
// number and never given twice, so a number that the kernel uses again cannot
// be mistaken for it. Processes of a session with a marked process in it, and
// children of marked ones, count too. Where limits cannot be set, a variable in
// the environment does the same for programs that keep it. Not found is a process
// that sets this very limit anew and has left its session and its parent.
//
// On other Unix systems a command is its process group; on Windows what
// taskkill /T finds. There a process that leaves its group is not found.
package proc
