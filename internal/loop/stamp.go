package loop

import (
	"encoding/hex"
	"time"
)

// Stamp brings time and identity into a step. The ids of a step derive from
// UUID and a counter.
type Stamp struct {
	Time time.Time
	UUID [16]byte // random, one a step
}

// id returns the n-th id of the step: the UUID itself, then the UUID with n
// added to its last eight bytes, so that a step needs one random value.
func (s Stamp) id(n uint64) string {
	u := s.UUID
	for i := 15; i >= 8 && n > 0; i-- {
		n += uint64(u[i])
		u[i] = byte(n)
		n >>= 8
	}
	u[8] = u[8]&0x3f | 0x80 // keep the variant bits of RFC 9562
	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:36], u[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}
