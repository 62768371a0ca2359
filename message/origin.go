package message

// Origin says who caused a user message (M-95). Kind is one of the Origin
// constants or a value that this version does not know.
type Origin struct {
	Kind         string `json:"kind"`
	Server       string `json:"server,omitempty"`
	Subkind      string `json:"subkind,omitempty"`
	From         string `json:"from,omitempty"`
	FromMode     string `json:"fromMode,omitempty"`
	Name         string `json:"name,omitempty"`
	FromSession  string `json:"fromSession,omitempty"`
	SenderTaskID string `json:"senderTaskId,omitempty"`
	Body         string `json:"body,omitempty"`
}

// Injected reports whether the session made the message itself: the
// notification of a task (L-211), or the first message of a hook (H-122).
func (o *Origin) Injected() bool {
	return o != nil && (o.Kind == OriginTaskNotification || o.Kind == OriginAutoContinuation)
}

// The kinds of Origin.
const (
	OriginHuman            = "human"
	OriginChannel          = "channel"
	OriginPeer             = "peer"
	OriginTaskNotification = "task-notification"
	OriginCoordinator      = "coordinator"
	OriginAutoContinuation = "auto-continuation"
	OriginUnclassified     = "unclassified"
)
