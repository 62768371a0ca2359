package agenttest

import "time"

// Point is a place in an event stream: a number is that many events sent, and
// AfterBlocks gives the place after a number of finished blocks. The events of
// an answer are message_start, the pings of Pings, then for each block
// content_block_start, its deltas and content_block_stop, then message_delta
// and message_stop. A Point past the end is the end.
type Point int

// AfterBlocks is the Point after the content_block_stop of the nth block
// (from 1). AfterBlocks(0) is the Point after message_start and its pings.
func AfterBlocks(n int) Point { return Point(-n - 1) }

// Delay waits before the headers are sent.
func Delay(s Step, d time.Duration) Step {
	s.delay = d
	return s
}

// DelayEach waits before each event. Each event is sent by itself.
func DelayEach(s Step, d time.Duration) Step {
	s.each = d
	return s
}

// Never sends nothing, not even headers, until the client leaves.
func Never() Step { return Step{never: true} }

// Hold sends the events up to at and then nothing, with the connection open,
// until the client leaves.
func Hold(s Step, at Point) Step {
	s.hold = &at
	return s
}

// HoldPinging is Hold with a ping event every d.
func HoldPinging(s Step, at Point, d time.Duration) Step {
	s.hold, s.holdPing = &at, d
	return s
}

// Pings sends n ping events after message_start.
func Pings(s Step, n int) Step {
	s.pings = n
	return s
}

// DeltaSize sets how many bytes of text or tool input go into one delta (whole
// characters); n <= 0 sends each block's content in a single delta. Without it
// a block comes in up to four deltas.
func DeltaSize(s Step, n int) Step {
	s.deltaSize = n
	if n <= 0 {
		s.deltaSize = -1
	}
	return s
}

// Chunk writes the body in pieces of n bytes, each flushed by itself.
func Chunk(s Step, n int) Step {
	s.chunk = n
	return s
}

// StreamError sends an error event at the Point and ends the stream, with
// status 200 as the API does. Without streaming it is an HTTP error whose
// status follows from the type.
func StreamError(s Step, at Point, errorType, message string) Step {
	s.fault, s.faultAt = &apiError{Type: errorType, Message: message}, at
	return s
}

// CutAt closes the connection after n bytes of the body; a negative n counts
// from its end. Body gives the bytes that there are.
func CutAt(s Step, n int) Step {
	s.cutByte = &n
	return s
}

// CutAfterEvent closes the connection at the Point.
func CutAfterEvent(s Step, at Point) Step {
	s.cutEvent = &at
	return s
}

// EndWithout ends the stream politely before the last event of this type:
// "message_stop" leaves only that out, "message_delta" both,
// "content_block_stop" leaves the last block open.
func EndWithout(s Step, eventType string) Step {
	s.endless = eventType
	return s
}

// Framing is the spelling of an event stream. All spellings mean the same.
type Framing struct {
	CRLF          bool // lines end with CR LF
	NoSpace       bool // no space after the colon
	Comments      bool // a comment line before each event
	SplitData     bool // each event's data on two data lines
	DataOnly      bool // no event: lines
	NoFinalBlank  bool // the last event without its blank line
	UnknownEvents bool // events of a type that does not exist, between the others
}

// Frame sets the spelling of the event stream.
func Frame(s Step, f Framing) Step {
	s.framing = f
	return s
}
