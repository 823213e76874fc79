package main

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// nat sends to a work queue stream of JetStream, or takes from it with a pull consumer.
type nat struct {
	work       Work
	connection *nats.Conn
	stream     jetstream.JetStream
	messages   jetstream.MessagesContext
}

func (one *nat) prepare() (err error) {
	work, ctx := one.work, context.Background()
	if one.connection, err = nats.Connect(fmt.Sprintf("nats://%s:%d", work.Host, work.Port)); err != nil {
		return err
	}
	if one.stream, err = jetstream.New(one.connection, jetstream.WithPublishAsyncMaxPending(inFlight)); err != nil {
		return err
	}
	stream, err := one.stream.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: work.Queue, Subjects: []string{work.Queue}, Retention: jetstream.WorkQueuePolicy,
		Storage: jetstream.FileStorage,
	})
	if err != nil || work.Kind == "send" {
		return err
	}
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: prefetch,
	})
	if err != nil {
		return err
	}
	one.messages, err = consumer.Messages(jetstream.PullMaxMessages(together))
	return err
}

func (one *nat) run() error {
	if one.work.Kind == "send" {
		return one.send()
	}
	return one.take()
}

func (one *nat) send() error {
	value := make([]byte, one.work.ValueBytes)
	for range one.work.Messages {
		if _, err := one.stream.PublishAsync(one.work.Queue, value); err != nil {
			return err
		}
	}
	<-one.stream.PublishAsyncComplete()
	return nil
}

func (one *nat) take() error {
	for range one.work.Messages {
		message, err := one.messages.Next()
		if err != nil {
			return err
		}
		if err := message.Ack(); err != nil {
			return err
		}
	}
	return one.connection.Flush() // the server has all acknowledgements
}

func (one *nat) close() error {
	if one.work.Kind == "take" {
		one.messages.Stop()
		if err := one.stream.DeleteStream(context.Background(), one.work.Queue); err != nil {
			return err
		}
	}
	one.connection.Close()
	return nil
}
