// Package explain says why a session's runs stopped, from its journal alone: which
// way each user turn ended, the value that decided it, the responses and calls that
// led there with their cost and time, and what to do next.
//
// It is a pure function of the lines. Sessions of other programs have no lines of
// ours; of them it tells what the messages say.
package explain
