package agenttest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkServe is the server's own part of a request, without a socket: what
// a benchmark of a client has to leave out of its figures.
func BenchmarkServe(b *testing.B) {
	history := []string{hello}
	for range 500 {
		history = append(history, assistant(textBlock(strings.Repeat("word ", 60))), user(textBlock(strings.Repeat("word ", 60))))
	}
	body := streaming(conv(history...))
	for name, options := range map[string][]Option{
		"cheap":     {NoValidate(), KeepRequests(0), Forever(Text("ok"))},
		"cheapTurn": {NoValidate(), KeepRequests(0), Respond(func(r *Request) Step { _ = r.Turn(); return Text("ok") })},
		"validated": {KeepRequests(0), Forever(Text("ok"))},
	} {
		b.Run(name, func(b *testing.B) {
			s, err := Start(append(options, InMemory())...)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
				req.Header = goodHeader()
				w := httptest.NewRecorder()
				s.ServeHTTP(w, req)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body.String())
				}
				_, _ = io.Copy(io.Discard, w.Body)
			}
		})
	}
}
