package main

import (
	"context"
	"fmt"
	"os/signal"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	"consumer":           kgo.StickyBalancer(), // what it asks the coordinator for is called uniform there
}

// holdings are the partitions that a member has; they are said whenever they change.
type holdings struct {
	sync.Mutex
	has map[int32]bool
}

func (own *holdings) change(topics map[string][]int32, here bool) {
	own.Lock()
	defer own.Unlock()
	for _, partitions := range topics {
		for _, one := range partitions {
			if here {
				own.has[one] = true
			} else {
				delete(own.has, one)
			}
		}
	}
	var said []string
	for one := range own.has {
		said = append(said, fmt.Sprint(one))
	}
	sort.Strings(said)
	fmt.Println("assigned", strings.Join(said, " "))
}

// member says what it has and what it reads, commits what it has read, and leaves at SIGTERM.
func member(arguments []string) error {
	running, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	own := &holdings{has: map[int32]bool{}}
	given := func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { own.change(topics, true) }
	taken := func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		if running.Err() == nil { // what it gives back when it leaves goes without saying
			own.change(topics, false)
		}
	}
	options := append(shared(strings.Split(arguments[0], ",")),
		kgo.ConsumeTopics(arguments[1]),
		kgo.ConsumerGroup(arguments[2]),
		kgo.Balancers(balancers[arguments[3]]),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(given),
		kgo.OnPartitionsRevoked(func(within context.Context, client *kgo.Client, topics map[string][]int32) {
			client.CommitMarkedOffsets(within)
			taken(within, client, topics)
		}),
		kgo.OnPartitionsLost(taken),
	)
	if arguments[4] != "" {
		options = append(options, kgo.InstanceID(arguments[4]))
	}
	if arguments[3] == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if strings.HasPrefix(arguments[1], "^") {
		options = append(options, kgo.ConsumeRegex())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	for running.Err() == nil {
		client.PollFetches(running).EachRecord(func(record *kgo.Record) {
			fmt.Println("got", record.Partition, record.Offset)
			client.MarkCommitRecords(record)
		})
	}
	client.CommitMarkedOffsets(context.Background())
	client.CloseAllowingRebalance()
	return nil
}
