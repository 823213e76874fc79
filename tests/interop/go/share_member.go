package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var outcomes = map[string]kgo.AckStatus{
	"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject,
}

type place struct {
	partition int32
	offset    int64
}

// A shareMember holds the records of its last poll, and what it was told of acknowledgements.
type shareMember struct {
	client   *kgo.Client
	implicit bool
	held     map[place]*kgo.Record
	sync.Mutex
	told []int16
}

// share is a member of a share group: BOOTSTRAP TOPIC GROUP MODE. It takes calls.
func share(arguments []string) error {
	own := &shareMember{implicit: arguments[3] == "implicit"}
	options := append(shared(strings.Split(arguments[0], ",")),
		kgo.ConsumeTopics(arguments[1]),
		kgo.ShareGroup(arguments[2]),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) { own.hear(results) }),
		kgo.FetchMaxWait(200*time.Millisecond),
		kgo.MetadataMaxAge(500*time.Millisecond),
	)
	if !own.implicit { // no more than a poll asks for
		options = append(options, kgo.MaxConcurrentFetches(0))
	}
	if arguments[3] == "single" {
		options = append(options, kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	own.client = client
	return answerCalls(own.answer)
}

func (own *shareMember) hear(results kgo.ShareAckResults) {
	own.Lock()
	defer own.Unlock()
	for _, one := range results {
		var refusal *kerr.Error
		code := int16(0)
		if errors.As(one.Err, &refusal) {
			code = refusal.Code
		} else if one.Err != nil {
			code = -1
		}
		own.told = append(own.told, code)
	}
}

func (own *shareMember) answer(within context.Context, wanted asked) (any, error) {
	switch wanted.Call {
	case "poll":
		return own.poll(within, time.Duration(wanted.WaitMs)*time.Millisecond), nil
	case "acknowledge":
		own.held[place{wanted.Partition, wanted.Offset}].Ack(outcomes[wanted.Outcome])
		return nil, nil
	case "renew":
		for _, one := range wanted.Records {
			own.held[place{int32(one[0]), one[1]}].Ack(kgo.AckRenew)
		}
		return nil, own.commit(within)
	case "commit":
		return nil, own.commit(within)
	case "commit_later": // it sends acknowledgements by itself, a little later
		return nil, nil
	case "told":
		own.Lock()
		defer own.Unlock()
		return append([]int16{}, own.told...), nil
	case "leave":
		own.client.Close()
		return nil, nil
	}
	return nil, fmt.Errorf("there is no call %s", wanted.Call)
}

func (own *shareMember) poll(within context.Context, wait time.Duration) any {
	waiting, done := context.WithTimeout(within, wait)
	defer done()
	own.held = map[place]*kgo.Record{}
	found := [][]any{}
	own.client.PollFetches(waiting).EachRecord(func(one *kgo.Record) {
		own.held[place{one.Partition, one.Offset}] = one
		found = append(found, []any{one.Partition, one.Offset, one.DeliveryCount(), string(one.Value)})
	})
	return found
}

// commit, if nothing was said of the last poll's records, accepts them. It waits until all acknowledgements are there, and returns the first refusal.
func (own *shareMember) commit(within context.Context) error {
	own.Lock()
	before := len(own.told)
	own.Unlock()
	if own.implicit {
		own.client.MarkAcks(kgo.AckAccept)
	}
	if err := own.client.FlushAcks(within); err != nil {
		return err
	}
	own.Lock()
	defer own.Unlock()
	for _, code := range own.told[before:] {
		if err := kerr.ErrorForCode(code); err != nil {
			return err
		}
	}
	return nil
}
