// Package leasetest tries with real processes what the leases of a store are
// for: writers on other machines, a writer that was paused while another took
// over, and one that was killed. The test binary plays the other processes.
package leasetest
