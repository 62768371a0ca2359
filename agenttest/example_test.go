package agenttest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/turnwright/turnwright/agenttest"
)

// A server outside of a test, as a command uses it. In a test, NewServer(t, …)
// closes by itself and fails the test on a request that the API would refuse.
func ExampleStart() {
	srv, err := agenttest.Start(
		agenttest.HTTPError(529, "overloaded_error", "Overloaded", "retry-after", "1"),
		agenttest.ID(agenttest.Text("All green."), "msg_1"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	for range 3 {
		req, err := http.NewRequest(http.MethodPost, srv.URL()+"/v1/messages", strings.NewReader(
			`{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"Run the tests."}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("x-api-key", "any")
		req.Header.Set("anthropic-version", "2026-10-21")
		req.Header.Set("content-type", "application/json")
		res, err := srv.Client().Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Println(res.StatusCode, string(body), err)
	}
	fmt.Println(srv.Problems())
	fmt.Println(srv.Last().UserText())
	// Output:
	// 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_010000000000000000000001"} <nil>
	// 200 {"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"All green."}],"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}} <nil>
	// 400 {"type":"error","error":{"type":"invalid_request_error","message":"agenttest: request 3 has no answer: the script is at its end"},"request_id":"req_010000000000000000000003"} <nil>
	// agenttest: request 3 has no answer: the script is at its end (last user text "Run the tests.")
	// Run the tests.
}
