package turnwright_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// onePixel is a whole PNG.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func parsed(t testing.TB, raw string) turnwright.Block {
	t.Helper()
	b, err := message.ParseBlock([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAttachmentsPoisonNothing: whatever one message brings along, this turn and
// every later one get their answer, also after a resume, and the transcript has
// what was sent. The server judges each request as the API does.
func TestAttachmentsPoisonNothing(t *testing.T) {
	conform.Covers(t, "L-200", "L-203", "K-466")
	for name, raw := range map[string]string{
		"surrogate":        `{"type":"text","text":"a\ud83db"}`,
		"unknown key":      `{"type":"text","text":"a","name":"b"}`,
		"unknown type":     `{"type":"hologram"}`,
		"no source":        `{"type":"image"}`,
		"string source":    `{"type":"image","source":"a.png"}`,
		"empty source":     `{"type":"image","source":{}}`,
		"no base64":        `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%"}}`,
		"no image":         `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}}`,
		"other media type": `{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"` + onePixel + `"}}`,
		"data of a number": `{"type":"image","source":{"type":"base64","media_type":"image/png","data":5}}`,
		"document":         `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"?"}}`,
		"empty url":        `{"type":"document","source":{"type":"url","url":""}}`,
		"foreign result":   `{"type":"tool_result","tool_use_id":"toolu_none","content":"x"}`,
		"call":             `{"type":"tool_use","id":"a","name":"b","input":{}}`,
	} {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/alone %v", name, alone), func(t *testing.T) {
				o := onDisk(t, agenttest.NewServer(t, agenttest.Forever(agenttest.Text("fine"))))
				s := start(t, o)
				answers := []string{"fine", "fine"}
				if alone && name == "foreign result" {
					answers[0] = "The message was only a tool result that belongs to no call, so nothing was sent to the model."
				}
				in := turnwright.Input{Blocks: []turnwright.Block{parsed(t, raw)}}
				if !alone {
					in.Text = "look"
				}
				if _, err := s.Send(t.Context(), in); err != nil {
					t.Fatal(err)
				}
				send(t, s, "go on")
				out := readAll(t, s)
				for i, r := range out.results() {
					if want := answers[i]; r.IsError || *r.Result != want {
						t.Errorf("turn %d: %+v, want %q", i+1, r, want)
					}
				}
				if len(out.results()) != 2 {
					t.Fatal(out.shape())
				}
				o.Resume = s.ID()
				if r := query(t, "and on", o).result; r.IsError || *r.Result != "fine" {
					t.Errorf("resumed: %+v", r)
				}
				lines, err := os.ReadFile(transcript(t, o, s.ID()))
				if err != nil || !bytes.Contains(lines, []byte(raw)) && answers[0] == "fine" {
					t.Errorf("the transcript has not what was sent: %v", err)
				}
			})
		}
	}
}

// TestRefusedAttachmentIsWithdrawn: an attachment that only the API can find bad
// fails its own turn and no other, also after a resume.
func TestRefusedAttachmentIsWithdrawn(t *testing.T) {
	conform.Covers(t, "L-200", "L-203", "L-101")
	large := strings.Repeat("0123456789abcdef", (agenttest.MaxRequestBytes+1<<20)/16)
	for name, tt := range map[string]struct {
		block  turnwright.Block
		refuse func(body []byte) (agenttest.Step, bool)
		told   string
	}{
		"image": {
			parsed(t, `{"type":"image","source":{"type":"url","url":"https://example.com/broken.png"}}`), func(body []byte) (agenttest.Step, bool) {
				if !bytes.Contains(body, []byte("broken.png")) {
					return agenttest.Step{}, false
				}
				return agenttest.HTTPError(400, "invalid_request_error", "Could not process image"), true
			}, "An image was attached; the API refused the request with it",
		},
		"document": {
			parsed(t, `{"type":"document","source":{"type":"file","file_id":"file_gone"}}`), func(body []byte) (agenttest.Step, bool) {
				if !bytes.Contains(body, []byte("file_gone")) {
					return agenttest.Step{}, false
				}
				return agenttest.HTTPError(400, "invalid_request_error", "messages.0.content.1.document.source.file.file_id: File not found"), true
			}, "A document was attached; the API refused the request with it",
		},
		"download": {
			parsed(t, `{"type":"image","source":{"type":"url","url":"https://example.com/broken.png"}}`), func(body []byte) (agenttest.Step, bool) {
				return agenttest.HTTPError(400, "invalid_request_error", "Unable to download the file. Please verify the URL and try again."), bytes.Contains(body, []byte("broken.png"))
			}, "An image was attached; the API refused the request with it",
		},
		"window": {
			message.NewText(strings.Repeat("word ", 50_000)), func(body []byte) (agenttest.Step, bool) {
				return agenttest.HTTPError(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"), len(body) > 200_000
			}, "the API refused the request with it",
		},
		"size": {message.NewText(large), func(body []byte) (agenttest.Step, bool) {
			return agenttest.HTTPError(413, "request_too_large", "Request exceeds the maximum size"), len(body) > agenttest.MaxRequestBytes
		}, "the API refused the request with it"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "size" && testing.Short() {
				t.Skip("34 MB through every layer")
			}
			// NoValidate: a request that is too large is what this is about.
			srv := agenttest.NewServer(t, agenttest.NoValidate(), agenttest.KeepRequests(1), agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
				if step, refused := tt.refuse(r.Body); refused {
					return step
				}
				if err := agenttest.Validate(r.Body, r.Header); err != nil {
					t.Error(err)
				}
				return agenttest.Text("fine")
			}))
			o := onDisk(t, srv)
			s := start(t, o)
			if _, err := s.Send(t.Context(), turnwright.Input{Text: "look", Blocks: []turnwright.Block{tt.block}}); err != nil {
				t.Fatal(err)
			}
			send(t, s, "go on")
			out := readAll(t, s)
			results := out.results()
			if len(results) != 2 || !results[0].IsError || results[1].IsError || *results[1].Result != "fine" {
				t.Fatalf("%d results, %+v", len(results), results)
			}
			if text := said(srv.Last()); !strings.Contains(text, tt.told) || !strings.Contains(text, "look") || len(text) > 10_000 {
				t.Errorf("the model is told %.1000s", text)
			}
			o.Resume = s.ID()
			if r := query(t, "and on", o).result; r.IsError || !strings.Contains(said(srv.Last()), tt.told) {
				t.Errorf("resumed: %+v", r)
			}
		})
	}
}

// TestAddressThatDies: a URL that the API could read once and cannot any more is
// withdrawn from where it stands in the history.
func TestAddressThatDies(t *testing.T) {
	conform.Covers(t, "L-200", "L-203")
	const address = "https://example.com/a.png"
	dead := false
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if dead && bytes.Contains(r.Body, []byte(address)) {
			return agenttest.HTTPError(400, "invalid_request_error", "messages.0.content.1.image.source.url: Unable to download the file")
		}
		return agenttest.Text("fine")
	}))
	o := onDisk(t, srv)
	s := start(t, o)
	if _, err := s.Send(t.Context(), turnwright.Input{Text: "look", Blocks: []turnwright.Block{parsed(t, `{"type":"image","source":{"type":"url","url":"`+address+`"}}`)}}); err != nil {
		t.Fatal(err)
	}
	first := readTurn(t, s)
	if !bytes.Contains(srv.Last().Body, []byte(address)) {
		t.Error("the image was not sent")
	}
	dead = true
	send(t, s, "two")
	send(t, s, "three")
	out := readAll(t, s)
	results := out.results()
	if first.result.IsError || len(results) != 2 || !results[0].IsError || results[1].IsError {
		t.Errorf("%s", out.shape())
	}
	o.Resume = s.ID()
	if r := query(t, "four", o).result; r.IsError || !strings.Contains(said(srv.Last()), "An image was attached") {
		t.Errorf("%+v: %s", r, said(srv.Last()))
	}
}

// TestRequestTooLargeIsNotRepeated: of a body above the API's size the answer is
// often lost, since the server closes before it has read it; it is not sent again.
func TestRequestTooLargeIsNotRepeated(t *testing.T) {
	conform.Covers(t, "L-101", "L-203")
	if testing.Short() {
		t.Skip("34 MB through every layer")
	}
	srv := agenttest.NewServer(t, agenttest.KeepRequests(1), agenttest.Forever(agenttest.Text("fine")))
	behind, err := url.Parse(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	var cut atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > agenttest.MaxRequestBytes {
			cut.Add(1)
			panic(http.ErrAbortHandler) // the connection is closed without an answer
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	o := onDisk(t, srv)
	o.Env["ANTHROPIC_BASE_URL"] = front.URL
	s := start(t, o)
	send(t, s, strings.Repeat("0123456789abcdef", (agenttest.MaxRequestBytes+1<<20)/16))
	send(t, s, "go on")
	out := readAll(t, s)
	results := out.results()
	if len(results) != 2 || !results[0].IsError || results[0].APIErrorStatus == nil || *results[0].APIErrorStatus != 413 || results[1].IsError || cut.Load() != 1 {
		t.Errorf("%s, sent %d times", out.shape(), cut.Load())
	}
}

// TestToolBringsBadImage: a tool's image that the API would refuse is replaced,
// too.
func TestToolBringsBadImage(t *testing.T) {
	conform.Covers(t, "L-200", "B-110")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("camera", `{}`)), agenttest.Forever(agenttest.Text("fine")))
	o := base(t, srv)
	o.CustomTools = []turnwright.Tool{turnwright.NewTool("camera", "Takes two pictures.", func(context.Context, struct{}) (*turnwright.ToolResult, error) {
		return &turnwright.ToolResult{Content: []turnwright.Block{message.NewImage("image/png", onePixel), message.NewImage("image/tiff", "aGk=")}}, nil
	})}
	o.AllowedTools = []string{"camera"}
	s := start(t, o)
	send(t, s, "go")
	send(t, s, "again")
	out := readAll(t, s)
	for i, r := range out.results() {
		if r.IsError || *r.Result != "fine" {
			t.Errorf("turn %d: %+v", i+1, r)
		}
	}
	if all := string(srv.Last().Body); !strings.Contains(all, "cannot be processed") || !strings.Contains(all, onePixel) {
		t.Errorf("sent: %.2000s", all)
	}
}
