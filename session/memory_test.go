package session_test

import (
	"testing"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) session.Store { return session.NewMemory() })
}
