package turnwright

// Swept waits until old sessions were removed in the background.
func (s *Session) Swept() {
	if s.old != nil {
		<-s.old.done
	}
}
