// Package apiblock knows what the Messages API takes in the content blocks that
// people and tools bring. The API refuses a whole request for one block, and a
// block stays in the history, so one bad block would end its session for good: it
// is mended where that is possible, and else a text says what stood there (L-200,
// K-466).
//
// What is checked is what the API documents and what its error messages say of
// each field; a block that passes may still be refused for what is inside it, an
// image that cannot be decoded for one (see [Withdraw]).
package apiblock
