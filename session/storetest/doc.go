// Package storetest holds every session.Store to the same promises. A store of
// your own is tested with
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) session.Store { return mystore.New(t.TempDir()) })
//	}
//
// and one that several processes can use at once also with RunPair. What belongs
// to the optional session.Finder and session.Tailer is skipped where a store does
// not have it.
package storetest
