// Package hook is what hooks are told and what they answer: the events with
// their inputs, the outputs of callbacks and commands, the matchers, the hooks
// of settings files, and what several answers mean together
// (docs/contract/hooks.md). It starts nothing: running hooks is the engine's
// job.
package hook
