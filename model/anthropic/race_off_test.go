//go:build !race

package anthropic

const underRace = false
