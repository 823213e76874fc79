// Program interop drives franz-go for the tests of this folder: with one argument it takes calls,
// with five (BOOTSTRAP TOPIC GROUP STRATEGY INSTANCE) it is a member of a group,
// with four (BOOTSTRAP TOPIC GROUP MODE) a member of a share group.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	run := func() error { return serve(strings.Split(os.Args[1], ",")) }
	switch len(os.Args) {
	case 6:
		run = func() error { return member(os.Args[1:]) }
	case 5:
		run = func() error { return share(os.Args[1:]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// shared is what every client is told. Waits are short: brokers are near.
func shared(bootstrap []string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(bootstrap...),
		kgo.ClientID("interop-franz-go"),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.MetadataMinAge(20 * time.Millisecond),
	}
}
