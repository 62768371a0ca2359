package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/model/anthropic"
)

// A request with all its attempts, against a server that speaks the Messages
// API. With os.Getenv the environment decides where it goes.
func ExampleFromEnv() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","id":"msg_1","model":"claude-sonnet-5-5","content":[{"type":"text","text":"Four."}],"stop_reason":"end_turn","usage":{"input_tokens":12,"output_tokens":4}}`)
	}))
	defer srv.Close()
	env := map[string]string{"ANTHROPIC_BASE_URL": srv.URL, "ANTHROPIC_API_KEY": "a-key"}

	cfg, err := anthropic.FromEnv(func(name string) string { return env[name] })
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := anthropic.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	prices := model.DefaultCatalog()
	resp, err := model.Call(context.Background(), client, &model.Request{
		Model:     prices.Resolve("sonnet"),
		MaxTokens: 1000,
		Messages:  []model.Message{{Role: message.RoleUser, Blocks: []message.Block{message.NewText("Two and two?")}}},
	}, model.CallOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	info, _ := prices.Lookup(resp.Model)
	fmt.Printf("%s (%s, $%.6f)\n", resp.Blocks[0].Text(), resp.StopReason, info.Price.Cost(resp.Usage))
	// Output: Four. (end_turn, $0.000064)
}
