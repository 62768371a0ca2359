package agenttest

import "encoding/json"

// maxMarks is how many blocks of a request may carry a cache_control.
const maxMarks = 4

// mark checks the cache_control of one tool, system or content block, in the
// order in which the API reads them: tools, system, messages.
func (v *validator) mark(path string, o object, allowed bool) *InvalidError {
	if !o.present("cache_control") {
		return nil
	}
	path += ".cache_control"
	if !allowed {
		return invalid(path, "Extra inputs are not permitted")
	}
	long, err := readMark(path, o["cache_control"])
	if err != nil {
		return err
	}
	if long && v.shortMark {
		return invalid(path+".ttl", "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "+
			"Note that blocks are processed in the following order: `tools`, `system`, `messages`.")
	}
	v.shortMark = v.shortMark || !long
	v.marks++
	return v.countMarks()
}

func (v *validator) countMarks() *InvalidError {
	if v.marks > maxMarks {
		return invalid("", "A maximum of %d blocks with cache_control may be provided. Found %d.", maxMarks, v.marks)
	}
	return nil
}

// topMark checks the mark that the API itself puts on the last block.
func (v *validator) topMark(top object) *InvalidError {
	if !top.present("cache_control") {
		return nil
	}
	long, err := readMark("cache_control", top["cache_control"])
	if err != nil {
		return err
	}
	if long && v.shortMark {
		return invalid("cache_control.ttl", "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.")
	}
	v.marks++
	return v.countMarks()
}

func readMark(path string, raw json.RawMessage) (long bool, err *InvalidError) {
	m, ok := asObject(raw)
	if !ok {
		return false, invalid(path, "Input should be a valid dictionary")
	}
	if err := extra(path, m, []string{"type", "ttl"}); err != nil {
		return false, err
	}
	if kind, _ := asString(m["type"]); kind != "ephemeral" {
		return false, invalid(path+".type", "Input should be 'ephemeral'")
	}
	if !m.present("ttl") {
		return false, nil
	}
	ttl, _ := asString(m["ttl"])
	if ttl != "5m" && ttl != "1h" {
		return false, invalid(path+".ttl", "Input should be '5m' or '1h'")
	}
	return ttl == "1h", nil
}
