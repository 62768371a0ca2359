package session_test

import (
	"testing"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/storetest"
)

func TestMemoryPair(t *testing.T) {
	storetest.RunPair(t, func(*testing.T) (a, b session.Store) {
		s := session.NewMemory()
		return s, s
	})
}

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) session.Store { return session.NewMemory() })
}
