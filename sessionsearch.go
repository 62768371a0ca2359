package turnwright

import (
	"bytes"
	"context"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/session"
)

// SearchOptions bound a search. The zero value finds all sessions, with up to
// three places of each.
type SearchOptions struct {
	Limit  int // sessions; 0: no limit
	Places int // of each session; 0: three. A session is read no further than that
}

// FoundSession is a session in which a search found something.
type FoundSession struct {
	SessionInfo
	Places []FoundPlace // at least one
}

// FoundPlace is where a search found something.
type FoundPlace struct {
	In   string // "title", "tag", "user", "assistant" or, for results of calls, "tool"
	UUID string // of the message; "" for title and tag
	Text string // on one line: the place with what stands around it
}

// Search yields the sessions that contain the text, whatever its case, the last
// changed first: in their title, their tag, prompts, answers, inputs and results
// of calls, also in messages that a compaction replaced or a branch left behind.
// Sessions are read a line at a time, so memory is that of the longest line. A
// session that cannot be read is left out. A text without any character is an
// *OptionError.
func (s Sessions) Search(ctx context.Context, text string, o SearchOptions) iter.Seq2[FoundSession, error] {
	return func(yield func(FoundSession, error) bool) {
		k, err := s.keeper()
		if err == nil {
			err = o.check(text)
		}
		if err != nil {
			yield(FoundSession{}, err)
			return
		}
		if o.Places == 0 {
			o.Places = 3
		}
		q := newQuery(text)
		n := 0
		for found, err := range s.list(ctx, k) {
			if err != nil {
				yield(FoundSession{}, err)
				return
			}
			places := q.in(ctx, k, found, o.Places)
			if err := ctx.Err(); err != nil {
				yield(FoundSession{}, err)
				return
			}
			if len(places) == 0 {
				continue
			}
			if n++; !yield(FoundSession{found.SessionInfo, places}, nil) || n == o.Limit {
				return
			}
		}
	}
}

func (o SearchOptions) check(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return &OptionError{Option: "text", Value: strconv.Quote(text), Reason: "has nothing to search for"}
	case o.Limit < 0:
		return &OptionError{Option: "SearchOptions.Limit", Value: strconv.Itoa(o.Limit), Reason: "must be 0 (no limit) or more"}
	case o.Places < 0:
		return &OptionError{Option: "SearchOptions.Places", Value: strconv.Itoa(o.Places), Reason: "must be 0 (three) or more"}
	}
	return nil
}

// query is a text that is searched for.
type query struct {
	form  *regexp.Regexp
	plain []byte // in lower case, when it stands in JSON as it is; nil: lines must be decoded
}

func newQuery(text string) query {
	q := query{form: regexp.MustCompile("(?i)" + regexp.QuoteMeta(text))}
	if !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r > '~' || strings.ContainsRune(`"\/<>&'`, r) // others may be escaped
	}) {
		q.plain = []byte(strings.ToLower(text))
	}
	return q
}

// in returns the first places in a session.
func (q query) in(ctx context.Context, k session.Keeper, s located, most int) (places []FoundPlace) {
	look := func(in, uuid, text string) {
		if at := q.form.FindStringIndex(text); at != nil && len(places) < most {
			places = append(places, FoundPlace{In: in, UUID: uuid, Text: around(text, at[0], at[1])})
		}
	}
	look("title", "", s.CustomTitle)
	look("tag", "", s.Tag)
	for line, err := range k.Read(ctx, s.at) {
		if len(places) >= most {
			break
		}
		if err != nil || q.plain != nil && !bytes.Contains(bytes.ToLower(line), q.plain) {
			continue // an error that ends the reading is the last one that is yielded
		}
		role, uuid, texts, ok := journal.Texts(line)
		if !ok {
			continue
		}
		for _, text := range texts {
			look(role, uuid, text)
		}
	}
	return places
}

// around cuts a text to the place and some of what stands around it.
func around(text string, from, to int) string {
	const before, after = 40, 80 // characters
	start, end := from, to
	for n := 0; n < before && start > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	for n := 0; n < after && end < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	out := strings.Join(strings.Fields(text[start:end]), " ")
	if start > 0 {
		out = "…" + out
	}
	if end < len(text) {
		out += "…"
	}
	return out
}
