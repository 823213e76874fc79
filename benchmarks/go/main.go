// Queues of other systems as their own Go clients use them: sending with confirmations, many in flight; and taking and
// acknowledging. The argument is a JSON object, and so is what is printed.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Work says what to do.
type Work struct {
	System     string `json:"system"` // rabbitmq or nats
	Kind       string `json:"kind"`   // send or take
	Host       string `json:"host"`
	Port       int    `json:"port"`
	Queue      string `json:"queue"`
	Messages   int    `json:"messages"`
	ValueBytes int    `json:"value_bytes"`
}

const (
	inFlight = 1000 // messages that are sent and not confirmed
	prefetch = 2000 // messages that are delivered and not acknowledged: what a partition of ours locks at a time
	together = 500  // messages that RabbitMQ gets one acknowledgement for
)

type queue interface {
	prepare() error // declare the queue, or begin to consume; not measured
	run() error
	close() error
}

func measured(work Work) (float64, error) {
	var one queue
	switch work.System {
	case "rabbitmq":
		one = &rabbit{work: work}
	case "nats":
		one = &nat{work: work}
	default:
		return 0, fmt.Errorf("no such system: %q", work.System)
	}
	if err := one.prepare(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := one.run(); err != nil {
		return 0, err
	}
	took := time.Since(began).Seconds()
	return took, one.close()
}

func main() {
	var work Work
	if err := json.Unmarshal([]byte(os.Args[1]), &work); err != nil {
		fail(err)
	}
	took, err := measured(work)
	if err != nil {
		fail(err)
	}
	fmt.Printf("{\"seconds\": %f}\n", took)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
