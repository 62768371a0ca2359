// Package budget is the ledger of one tree of agents (docs/design.md,
// decision 5): what was spent, what requests under way may still cost, and who
// waits for room under the cap.
//
// Money is counted in whole nano-USD. Integers make sums exact and independent
// of the order in which agents finish, so the costs of the models add up to the
// total, comparisons with the cap have no rounding of their own, and a total
// such as 0.1 + 0.2 is printed as 0.3. One price of 0.001 USD for a million
// tokens is still one nano-USD a token; each response is rounded once.
package budget
