package message_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/turnwright/turnwright/message"
)

func ExampleDecode() {
	lines := []string{
		`{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text","text":"Fixed."}]}}`,
		`{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Fixed."}`,
		`{"type":"something_new","x":1}`,
	}
	for _, line := range lines {
		m, err := message.Decode([]byte(line))
		if err != nil {
			fmt.Println(err)
			continue
		}
		switch m := m.(type) {
		case *message.Assistant:
			fmt.Println("assistant:", m.Text())
		case *message.Result:
			fmt.Println("result:", m.Subtype, m.Text())
		default:
			typ, _ := m.Kind()
			fmt.Println("something else:", typ)
		}
	}
	// Output:
	// assistant: Fixed.
	// result: success Fixed.
	// something else: something_new
}

func ExampleMarshal() {
	line, err := message.Marshal(&message.LocalCommandOutput{
		Content: "a < b",
		Header:  message.Header{UUID: "u1", SessionID: "s1"},
	})
	fmt.Println(string(line), err)
	// Output:
	// {"type":"system","subtype":"local_command_output","content":"a < b","uuid":"u1","session_id":"s1"} <nil>
}

// foreign embeds a message: it has the methods, but is no message itself.
type foreign struct {
	message.Assistant
	Extra int
}

type value struct{ *message.Header }

func (value) Kind() (typ, subtype string) { return "user", "" }

func TestForeignTypesAreRefused(t *testing.T) {
	for _, m := range []message.Message{&foreign{}, value{&message.Header{}}} {
		_, err := message.Marshal(m)
		var ee *message.EncodeError
		if !errors.As(err, &ee) {
			t.Errorf("Marshal(%T): %v", m, err)
		}
	}
}
