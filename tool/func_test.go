package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

type weatherInput struct {
	City string   `json:"city" jsonschema:"city name"`
	Days int      `json:"days,omitempty"`
	Tags []string `json:"tags,omitzero"`
}

func call(t *testing.T, tl tool.Tool, input string) (*tool.Result, error) {
	t.Helper()
	r := registry(t, tl)
	name := r.Names()[0]
	in, err := r.Prepare(&tool.Env{}, name, json.RawMessage(input))
	if err != nil {
		return nil, err
	}
	return tl.Call(t.Context(), &tool.Call{ID: "id", Key: "key", Name: name, Input: in, Env: &tool.Env{}})
}

func mustFunc[In, Out any](t *testing.T, fn func(context.Context, In) (Out, error), opts ...tool.Option) tool.Tool {
	t.Helper()
	tl, err := tool.Func("weather", "Current weather of a city.", fn, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestFuncSpec(t *testing.T) {
	conform.Covers(t, "T-34", "L-132")
	fn := func(_ context.Context, in weatherInput) (string, error) { return in.City, nil }
	got := mustFunc(t, fn).Spec()
	want := `{"type":"object","properties":{"city":{"type":"string","description":"city name"},"days":{"type":"integer"},"tags":{"type":["null","array"],"items":{"type":"string"}}},"required":["city"],"additionalProperties":false}`
	if string(got.InputSchema) != want {
		t.Errorf("schema\n%s\nwant\n%s", got.InputSchema, want)
	}
	if got.Traits != (tool.Traits{}) || got.Timeout != 0 {
		t.Errorf("a plain tool has traits %+v, timeout %v", got.Traits, got.Timeout)
	}
	got = mustFunc(t, fn, tool.ReadOnly(), tool.Timeout(time.Second), tool.Alias("wetter"), tool.FieldDescription("days", "how many"), nil).Spec()
	if got.Traits != (tool.Traits{ReadOnly: true, Concurrent: true, Repeatable: true}) || got.Timeout != time.Second || got.Aliases[0] != "wetter" {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(string(got.InputSchema), `"days":{"type":"integer","description":"how many"}`) {
		t.Errorf("schema %s", got.InputSchema)
	}
	got = mustFunc(t, fn, tool.WithTraits(tool.Traits{Concurrent: true})).Spec()
	if got.Traits != (tool.Traits{Concurrent: true}) {
		t.Errorf("traits %+v", got.Traits)
	}
}

func TestFuncResults(t *testing.T) {
	conform.Covers(t, "L-234")
	text := func(s string) string { b, _ := json.Marshal([]message.Block{message.NewText(s)}); return string(b) }
	for name, test := range map[string]struct {
		tool       tool.Tool
		content    string
		structured string
	}{
		"string": {mustFunc(t, func(context.Context, weatherInput) (string, error) { return "<sunny> & warm", nil }), text("<sunny> & warm"), ""},
		"number": {mustFunc(t, func(context.Context, weatherInput) (float64, error) { return 21.5, nil }), text("21.5"), "21.5"},
		"struct": {mustFunc(t, func(context.Context, weatherInput) (struct {
			T int `json:"t"`
		}, error,
		) {
			return struct {
				T int `json:"t"`
			}{3}, nil
		}), text(`{"t":3}`), `{"t":3}`},
		"nil map":  {mustFunc(t, func(context.Context, weatherInput) (map[string]int, error) { return nil, nil }), text("null"), "null"},
		"any":      {mustFunc(t, func(context.Context, weatherInput) (any, error) { return []int{1}, nil }), text("[1]"), "[1]"},
		"any text": {mustFunc(t, func(context.Context, weatherInput) (any, error) { return "x", nil }), text("x"), ""},
		"blocks": {mustFunc(t, func(context.Context, weatherInput) ([]message.Block, error) {
			return []message.Block{message.NewText("b")}, nil
		}), text("b"), ""},
		"block":     {mustFunc(t, func(context.Context, weatherInput) (message.Block, error) { return message.NewText("b"), nil }), text("b"), ""},
		"result":    {mustFunc(t, func(context.Context, weatherInput) (*tool.Result, error) { return tool.Text("r"), nil }), text("r"), ""},
		"no result": {mustFunc(t, func(context.Context, weatherInput) (*tool.Result, error) { return nil, nil }), "null", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := call(t, test.tool, `{"city":"x"}`)
			if err != nil {
				t.Fatal(err)
			}
			content, _ := json.Marshal(r.Content)
			want := test.content
			if got := string(content); got != want && got != strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(want) {
				t.Errorf("content %s, want %s", content, want)
			}
			if string(r.Structured) != test.structured {
				t.Errorf("structured %s, want %s", r.Structured, test.structured)
			}
		})
	}
}

func TestFuncInput(t *testing.T) {
	conform.Covers(t, "T-180")
	ran := false
	tl := mustFunc(t, func(ctx context.Context, in weatherInput) (weatherInput, error) {
		ran = true
		if c, ok := tool.FromContext(ctx); !ok || c.Key != "key" {
			return in, errors.New("the call is not in the context")
		}
		return in, nil
	})
	r, err := call(t, tl, `{"city":"Berlin","days":"3"}`)
	if err != nil || string(r.Structured) != `{"city":"Berlin","days":3}` {
		t.Errorf("got %+v, %v", r, err)
	}
	ran = false
	for _, in := range []string{`{}`, `{"city":1}`, `{"city":"x","town":"y"}`} {
		if _, err := call(t, tl, in); err == nil || ran {
			t.Errorf("%s: error %v, ran %v", in, err, ran)
		}
	}
	open := mustFunc(t, func(_ context.Context, in map[string]any) (any, error) { return in, nil })
	if r, err := call(t, open, `{"whatever":[1]}`); err != nil || string(r.Structured) != `{"whatever":[1]}` {
		t.Errorf("map: got %+v, %v", r, err)
	}
	open = mustFunc(t, func(_ context.Context, in weatherInput) (any, error) { return in.City, nil }, tool.OpenInput())
	if r, err := call(t, open, `{"city":"x","more":1}`); err != nil || r.Content[0].Text() != "x" {
		t.Errorf("open: got %+v, %v", r, err)
	}
	raw := mustFunc(t, func(_ context.Context, in struct {
		V json.RawMessage `json:"v"`
		B []byte          `json:"b"`
	},
	) (string, error) {
		return string(in.V) + string(in.B), nil
	})
	if r, err := call(t, raw, `{"v":{"a":[]},"b":"aGk="}`); err != nil || r.Content[0].Text() != `{"a":[]}hi` {
		t.Errorf("raw: got %+v, %v", r, err)
	}
}

func TestFuncFailures(t *testing.T) {
	conform.Covers(t, "L-137", "T-182")
	boom := mustFunc(t, func(context.Context, weatherInput) (string, error) { return "", io.ErrUnexpectedEOF })
	if _, err := call(t, boom, `{"city":"x"}`); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	for name, value := range map[string]any{"text": "boom", "error": io.ErrClosedPipe} {
		tl := mustFunc(t, func(context.Context, weatherInput) (string, error) { panic(value) })
		_, err := call(t, tl, `{"city":"x"}`)
		var pe *tool.PanicError
		if !errors.As(err, &pe) || !strings.Contains(err.Error(), "weather") || len(pe.Stack) == 0 {
			t.Errorf("%s: got %v", name, err)
		}
		if e, ok := value.(error); ok && !errors.Is(err, e) {
			t.Errorf("%s: the panic's error is lost", name)
		}
	}
	unmarshalable := mustFunc(t, func(context.Context, weatherInput) (any, error) { return make(chan int), nil })
	if _, err := call(t, unmarshalable, `{"city":"x"}`); err == nil || !strings.Contains(err.Error(), "weather") {
		t.Errorf("got %v", err)
	}
}

func TestFuncErrors(t *testing.T) {
	type node struct {
		Next *node `json:"next"`
	}
	errs := map[string]func() error{
		"weather": func() error {
			_, err := tool.Func[string, string]("weather", "", func(context.Context, string) (string, error) { return "", nil })
			return err
		},
		"bad name": func() error {
			_, err := tool.Func("bad name", "", func(context.Context, weatherInput) (string, error) { return "", nil })
			return err
		},
		"cycle": func() error {
			_, err := tool.Func("cycle", "", func(context.Context, node) (string, error) { return "", nil })
			return err
		},
		"no-func": func() error {
			_, err := tool.Func[weatherInput, string]("no-func", "", nil)
			return err
		},
		"time": func() error {
			_, err := tool.Func("time", "", func(context.Context, time.Time) (string, error) { return "", nil })
			return err
		},
		"field": func() error {
			_, err := tool.Func("field", "", func(context.Context, weatherInput) (string, error) { return "", nil }, tool.FieldDescription("nope", "x"))
			return err
		},
		"negative": func() error {
			_, err := tool.Func("negative", "", func(context.Context, weatherInput) (string, error) { return "", nil }, tool.Timeout(-1))
			return err
		},
	}
	for name, f := range errs {
		if err := f(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
