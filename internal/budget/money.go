package budget

import (
	"fmt"
	"math"
)

// nano is an amount of money in 10⁻⁹ USD.
type nano int64

// maxNano bounds every amount so that sums of a few cannot overflow.
const maxNano = nano(math.MaxInt64 / 8)

// toNano rounds usd to the nearest nano-USD. Amounts too large to count are
// the largest one; what is not a number or is negative is no amount.
func toNano(usd float64) (nano, error) {
	switch {
	case math.IsNaN(usd) || usd < 0:
		return 0, fmt.Errorf("budget: %v USD is no amount of money", usd)
	case usd >= float64(maxNano)/1e9:
		return maxNano, nil
	}
	return nano(math.Round(usd * 1e9)), nil
}

// usd returns the float64 nearest to n.
func (n nano) usd() float64 { return float64(n) / 1e9 }
