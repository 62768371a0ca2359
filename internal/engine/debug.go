package engine

import (
	"fmt"
	"time"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

func (s *Session) debugRequest(id string, r *model.Request) {
	if s.cfg.Debug != nil {
		s.cfg.Debug("api", fmt.Sprintf("request %s: model %s, %d messages, %d tools, max_tokens %d", id, r.Model, len(r.Messages), len(r.Tools), r.MaxTokens))
	}
}

func (s *Session) debugResponse(id string, resp *model.Response, err error, start time.Time) {
	switch {
	case s.cfg.Debug == nil:
	case err != nil:
		s.cfg.Debug("api", fmt.Sprintf("request %s failed after %v: %v", id, s.since(start), err))
	case resp != nil:
		s.cfg.Debug("api", fmt.Sprintf("request %s was answered after %v: stop reason %q, cost so far $%.6f", id, s.since(start), resp.StopReason, s.cfg.Ledger.Total().USD))
	}
}

// debugMessage writes a message of the stream, shortened.
func (s *Session) debugMessage(m message.Message) {
	const most = 4000
	raw, err := message.Marshal(m)
	if err != nil {
		raw = []byte(err.Error())
	}
	text := string(raw)
	if len(text) > most {
		text = text[:most] + "…"
	}
	s.cfg.Debug("stream", text)
}
