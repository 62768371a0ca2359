// Package hookrun runs the hooks of an event, callbacks, commands, requests and
// questions to a model: all that match at the same time, each within its time
// limit, and brings together what they say (section 5 of docs/contract/hooks.md).
// Processes that hooks start do not outlive the session.
package hookrun
