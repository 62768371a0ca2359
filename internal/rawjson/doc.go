// Package rawjson walks and writes JSON as bytes, without reflection and with
// few allocations, where the loop does so for every event and every line. What
// it walks must be valid JSON; json.Valid tells. Unlike encoding/json it
// compares keys exactly: "Type" is an unknown key, not "type".
package rawjson
