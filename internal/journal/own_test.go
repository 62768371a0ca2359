package journal_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// TestOwnLinesByHand: the lines that are written by hand are those that
// encoding/json makes of the same structs.
func TestOwnLinesByHand(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, e loop.Entry) {
		got, err := writer().Encode(e)
		want, werr := writer().Reflected(e)
		if err != nil || werr != nil || !bytes.Equal(got, want) {
			t.Fatalf("wrote %v\n%s\nwant %v\n%s", err, got, werr, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		e := anyEntry(rt)
		if e.Kind == loop.KindCall || e.Kind == loop.KindTurn {
			check(rt, e)
		}
	})
	// Every field, also one that is new and that nobody draws above: all set,
	// and each of them alone.
	for _, e := range []loop.Entry{
		{Kind: loop.KindCall, Call: &loop.CallEntry{Calls: make([]loop.Call, 2)}},
		{Kind: loop.KindTurn, Turn: new(loop.TurnEntry)},
	} {
		check(t, e)
		var v reflect.Value
		if e.Call != nil {
			v = reflect.ValueOf(&e.Call.Calls[1]).Elem()
		} else {
			v = reflect.ValueOf(&e.Turn.Turn).Elem()
		}
		for i := range v.NumField() {
			v.SetZero()
			fill(t, v.Field(i))
			check(t, e)
		}
		fill(t, v)
		check(t, e)
	}
}

// fill sets everything in v to something that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 2, 3, 4, 5, 6, 7000, time.FixedZone("x", 3600))))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`[{"a": "\u2028"}]`))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("a <\"\u2028\xff")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(-7)
	case reflect.Float64:
		v.SetFloat(1e-7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		elem := reflect.New(v.Type().Elem()).Elem()
		v.SetMapIndex(reflect.ValueOf("z"), elem)
		fill(t, elem)
		v.SetMapIndex(reflect.ValueOf("a\u2028"), elem)
	case reflect.Uint8:
		v.SetUint('x')
	default:
		t.Fatalf("no value for a %s", v.Type())
	}
}

func TestCostWithoutJSON(t *testing.T) {
	for _, s := range []loop.Spend{
		{USD: math.NaN()},
		{Models: map[string]message.ModelUsage{"m": {CostUSD: math.Inf(1)}}},
	} {
		if line, err := writer().Encode(loop.Entry{Kind: loop.KindTurn, Turn: &loop.TurnEntry{Turn: loop.Turn{Spend: s}}}); err == nil {
			t.Errorf("%v: %s", s, line)
		}
	}
}
