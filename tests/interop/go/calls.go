package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const deadline = 15 * time.Second

// An asked call holds every argument that any call takes.
type asked struct {
	Call          string
	Topic         string
	Group         string
	Partition     int32
	Compression   string
	Acks          string
	Idempotent    bool
	MaxBytes      *int32 `json:"max_bytes"`
	Messages      []message
	Start         int64
	WaitMs        int32  `json:"wait_ms"`
	FetchBytes    *int32 `json:"fetch_bytes"`
	Reset         string
	CommittedOnly bool `json:"committed_only"`
	Reader        int
	Count         int
	Partitions    int32
	Replication   int16
	Settings      map[string]*string
	ValidateOnly  bool `json:"validate_only"`
	Total         int
	Offsets       map[int32]int64
	Offset        int64
	Outcome       string
	Records       [][2]int64
}

type session struct {
	bootstrap []string
	admin     *kadm.Client
	readers   map[int]*reader
}

type call func(*session, context.Context, asked) (any, error)

var calls = map[string]call{
	"produce":              produce,
	"open":                 open,
	"take":                 take,
	"close":                closeReader,
	"watermarks":           watermarks,
	"create_topic":         createTopic,
	"delete_topic":         deleteTopic,
	"list_topics":          listTopics,
	"describe_topic":       describeTopic,
	"create_partitions":    createPartitions,
	"list_groups":          listGroups,
	"describe_group":       describeGroup,
	"committed":            committed,
	"commit":               commit,
	"delete_group":         deleteGroup,
	"list_share_groups":    listShareGroups,
	"describe_share_group": describeShareGroup,
	"share_offsets":        shareOffsets,
	"alter_share_offsets":  alterShareOffsets,
	"delete_share_offsets": deleteShareOffsets,
	"delete_share_group":   deleteGroup,
}

// serve takes calls. A new admin client for each: it remembers metadata for a while.
func serve(bootstrap []string) error {
	own := &session{bootstrap: bootstrap, readers: map[int]*reader{}}
	return answerCalls(func(within context.Context, wanted asked) (any, error) {
		client, err := kgo.NewClient(shared(bootstrap)...)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		own.admin = kadm.NewClient(client)
		return calls[wanted.Call](own, within, wanted)
	})
}

// answerCalls takes a call as a line of JSON on standard input, and answers it with a line.
// A broker's refusal comes back as the code that the protocol gives it.
func answerCalls(answer func(context.Context, asked) (any, error)) error {
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var wanted asked
		if err := json.Unmarshal(line, &wanted); err != nil {
			return err
		}
		within, done := context.WithTimeout(context.Background(), deadline)
		result, err := answer(within, wanted)
		done()
		if err := answers.Encode(answerLine(result, err)); err != nil {
			return err
		}
	}
}

// answerLine is what is written of a call's result.
func answerLine(result any, err error) map[string]any {
	var refusal *kerr.Error
	switch {
	case errors.As(err, &refusal):
		return map[string]any{"refused": refusal.Code, "text": err.Error()}
	case err != nil:
		return map[string]any{"failed": -1, "text": err.Error()}
	}
	return map[string]any{"result": result}
}
