package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const end = -1

type message struct {
	Key         []byte
	Value       []byte
	Headers     []header
	TimestampMs *int64 `json:"timestamp_ms"`
}

// A header travels as a pair of its name and its value, which may be null.
type header kgo.RecordHeader

func (own *header) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&own.Key, &own.Value})
}

func (own header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{own.Key, own.Value})
}

type received struct {
	Offset      int64    `json:"offset"`
	Key         []byte   `json:"key"`
	Value       []byte   `json:"value"`
	Headers     []header `json:"headers"`
	TimestampMs int64    `json:"timestamp_ms"`
	AppendTime  bool     `json:"append_time"`
}

type reader struct {
	client  *kgo.Client
	waiting []received
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

func produce(own *session, within context.Context, wanted asked) (any, error) {
	options := append(shared(own.bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[wanted.Compression]),
		kgo.RequiredAcks(acks[wanted.Acks]),
		kgo.AllowAutoTopicCreation(),
	)
	if !wanted.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if wanted.MaxBytes != nil {
		options = append(options, kgo.ProducerBatchMaxBytes(*wanted.MaxBytes))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, one := range wanted.Messages {
		record := &kgo.Record{Topic: wanted.Topic, Partition: wanted.Partition, Key: one.Key, Value: one.Value}
		for _, header := range one.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader(header))
		}
		if one.TimestampMs != nil {
			record.Timestamp = time.UnixMilli(*one.TimestampMs)
		}
		records = append(records, record)
	}
	offsets := []int64{}
	for _, stored := range client.ProduceSync(within, records...) {
		if stored.Err != nil {
			return nil, stored.Err
		}
		if wanted.Acks != "0" {
			offsets = append(offsets, stored.Record.Offset)
		}
	}
	return offsets, nil
}

func open(own *session, within context.Context, wanted asked) (any, error) {
	first := kgo.NewOffset().At(wanted.Start)
	if wanted.Start == end {
		ends, err := own.admin.ListEndOffsets(within, wanted.Topic)
		if err != nil {
			return nil, err
		}
		found, _ := ends.Lookup(wanted.Topic, wanted.Partition)
		first = kgo.NewOffset().At(found.Offset)
	}
	reset := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(), "none": kgo.NoResetOffset(),
	}
	options := append(shared(own.bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{wanted.Topic: {wanted.Partition: first}}),
		kgo.ConsumeResetOffset(reset[wanted.Reset]),
		kgo.FetchMaxWait(time.Duration(wanted.WaitMs)*time.Millisecond),
	)
	if wanted.CommittedOnly {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if wanted.FetchBytes != nil {
		options = append(options, kgo.FetchMaxPartitionBytes(*wanted.FetchBytes))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	number := len(own.readers) + 1
	own.readers[number] = &reader{client: client}
	return number, nil
}

func take(own *session, within context.Context, wanted asked) (any, error) {
	reader := own.readers[wanted.Reader]
	for len(reader.waiting) < wanted.Count {
		fetches := reader.client.PollFetches(within)
		if within.Err() != nil {
			return nil, fmt.Errorf("%d of %d records in time", len(reader.waiting), wanted.Count)
		}
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) { reader.waiting = append(reader.waiting, told(record)) })
	}
	taken := reader.waiting[:wanted.Count]
	reader.waiting = reader.waiting[wanted.Count:]
	return taken, nil
}

func told(record *kgo.Record) received {
	headers := []header{}
	for _, one := range record.Headers {
		headers = append(headers, header(one))
	}
	return received{
		Offset:      record.Offset,
		Key:         record.Key,
		Value:       record.Value,
		Headers:     headers,
		TimestampMs: record.Timestamp.UnixMilli(),
		AppendTime:  record.Attrs.TimestampType() == 1,
	}
}

func closeReader(own *session, _ context.Context, wanted asked) (any, error) {
	own.readers[wanted.Reader].client.Close()
	return nil, nil
}

func watermarks(own *session, within context.Context, wanted asked) (any, error) {
	starts, err := own.admin.ListStartOffsets(within, wanted.Topic)
	if err != nil {
		return nil, err
	}
	ends, err := own.admin.ListEndOffsets(within, wanted.Topic)
	if err != nil {
		return nil, err
	}
	first, _ := starts.Lookup(wanted.Topic, wanted.Partition)
	next, _ := ends.Lookup(wanted.Topic, wanted.Partition)
	return []int64{first.Offset, next.Offset}, nil
}
