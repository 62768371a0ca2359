//go:build race

package anthropic

// underRace says that the race detector runs. It costs ten times and more,
// and the largest inputs prove nothing about races.
const underRace = true
