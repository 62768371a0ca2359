// Package message holds every message of the typed stream and the content
// blocks inside them, with their exact JSON names.
//
// A value decoded from JSON keeps its original form: unknown types, unknown
// keys and unknown enum values survive a round trip byte for byte
// (docs/contract/messages.md, M-2, M-107). Values made in Go are encoded in the
// canonical form: compact JSON in plain UTF-8, with U+0085, U+2028 and U+2029
// escaped and invalid UTF-8 replaced.
package message
