// Package agenttest is a scripted Messages API server for tests of agent
// loops: no key, no network beyond loopback, the real protocol.
//
//	srv := agenttest.NewServer(t, agenttest.Script(
//		agenttest.Call("Bash", `{"command":"npm test"}`),
//		agenttest.Text("All green."),
//	))
//	// point the client at srv.URL(), with any API key
//
// A Step is one answer. Constructors such as Text, Call and HTTPError make
// one; modifiers such as Usage, StopReason, CutAt and Hold take a Step and
// return a changed copy. A Source chooses the Step of each request: Script in
// order, Forever the same, Respond by a function, ByTurn and Conversations for
// many sessions on one server.
//
// Every request is recorded and, unless NoValidate is given, checked by
// Validate against the rules of the public Messages API. A request that the
// API would refuse is refused with the API's status and error body, and fails
// the test.
//
// The package does not import testing, so that a command can use it: see Start.
package agenttest
