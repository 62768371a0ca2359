// Package sdkgo holds tests in which the official Go SDK of the Messages API
// meets this project: it talks to agenttest as a stranger would, and it reads
// the requests that model/anthropic sends. The package itself is empty; it is
// a module of its own so that the SDK is no dependency of the project.
package sdkgo
