// Package pdf counts the pages of a PDF and copies some of them into a smaller
// one. It reads no more of a document than that takes, and knows nothing of
// how a page looks. The libraries that can do the same add a third to the size
// of the program.
package pdf
