// Package storetest holds every session.Store to the same promises. A store of
// your own is tested with
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) session.Store { return mystore.New(t.TempDir()) })
//	}
package storetest
