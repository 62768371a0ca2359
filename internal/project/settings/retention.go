package settings

import (
	"strconv"

	"github.com/turnwright/turnwright/permission"
)

// Days until sessions are removed that nobody has changed (S-32).
const defaultCleanupDays = 30

// CleanupDays is after how many days without a change sessions are removed. Files
// of a project have no say: they would decide on the sessions of all others.
// named tells that some source says it.
func (s *Settings) CleanupDays() (days int, named bool) {
	days = defaultCleanupDays
	for _, l := range s.Layers {
		if l.Source == permission.SourceProject || l.Source == permission.SourceLocal {
			continue
		}
		if n := l.root.get("cleanupPeriodDays"); n != nil {
			if d, err := strconv.Atoi(string(n.raw)); err == nil && d >= 1 {
				days, named = d, true
			}
		}
	}
	return days, named
}
