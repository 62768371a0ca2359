// Package tool says what a tool is: its specification, its traits, what a call
// gets and what it returns; and keeps a registry of tools with their compiled
// input schemas.
package tool
