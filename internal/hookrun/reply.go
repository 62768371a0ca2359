package hookrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/turnwright/turnwright/hook"
)

// reply runs a handler that gets its answer from elsewhere. said is what came
// back, as far as it did. A failure, also that of the time limit, decides nothing
// (H-33, H-64).
func (r *Runner) reply(ctx context.Context, in hook.Input, do func() (said []byte, o hook.Output, err error)) hook.Result {
	life := r.begin(in, false)
	said, o, err := do()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	out := &captured{}
	out.addStdout(said)
	life.finish(out, nil, err)
	if err != nil {
		r.debug(in, err.Error())
		return hook.Result{Fault: err}
	}
	r.debug(in, strings.TrimSpace(text(said)))
	r.bound(&o)
	return hook.Result{Output: o}
}

// post sends the event to a server (H-32, H-33).
func (r *Runner) post(ctx context.Context, h *hook.HTTP, ev hook.Event, event []byte) (said []byte, o hook.Output, err error) {
	if r.cfg.Client == nil {
		return nil, o, errors.New("this session sends no requests")
	}
	client, err := r.cfg.Client()
	if err != nil {
		return nil, o, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(event))
	if err != nil {
		return nil, o, err
	}
	req.Header = h.Header(r.getenv)
	resp, err := client.Do(req)
	if err != nil {
		var of *url.Error // with the URL, which may hold a password
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, o, fmt.Errorf("the server %s could not be asked: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	said, err = io.ReadAll(io.LimitReader(resp.Body, maxCapture+1))
	switch {
	case err != nil:
		return said, o, fmt.Errorf("the answer of %s broke off: %w", req.URL.Host, err)
	case len(said) > maxCapture:
		return said[:maxCapture], o, fmt.Errorf("the answer of %s is longer than %d MiB", req.URL.Host, maxCapture>>20)
	}
	o, err = hook.FromHTTP(ev, resp.StatusCode, said)
	return said, o, err
}

// getenv reads the environment that commands get. Of several values the last
// counts, as it does for them.
func (r *Runner) getenv(name string) (value string) {
	if r.cfg.Environ == nil {
		return ""
	}
	for _, v := range r.cfg.Environ() {
		if after, ok := strings.CutPrefix(v, name+"="); ok {
			value = after
		}
	}
	return value
}

// ask puts a prompt with the event to a model (H-36).
func (r *Runner) ask(ctx context.Context, p *hook.Prompt, ev hook.Event, event []byte) (said []byte, o hook.Output, err error) {
	if r.cfg.Ask == nil {
		return nil, o, errors.New("this session asks no model for hooks")
	}
	answer, err := r.cfg.Ask(ctx, Question{Model: p.Model, Text: p.Question(event), Agent: p.Agent})
	if err != nil {
		return nil, o, err
	}
	o, err = hook.FromPrompt(ev, p, answer)
	return []byte(answer), o, err
}
