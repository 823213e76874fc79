package main

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// rabbit sends to a quorum queue, or takes from it.
type rabbit struct {
	work       Work
	connection *amqp.Connection
	channel    *amqp.Channel
	deliveries <-chan amqp.Delivery
	confirmed  chan amqp.Confirmation
}

func (one *rabbit) prepare() (err error) {
	work := one.work
	if one.connection, err = amqp.Dial(fmt.Sprintf("amqp://guest:guest@%s:%d/", work.Host, work.Port)); err != nil {
		return err
	}
	if one.channel, err = one.connection.Channel(); err != nil {
		return err
	}
	quorum := amqp.Table{"x-queue-type": "quorum"}
	if _, err = one.channel.QueueDeclare(work.Queue, true, false, false, false, quorum); err != nil {
		return err
	}
	if work.Kind == "send" {
		one.confirmed = one.channel.NotifyPublish(make(chan amqp.Confirmation, inFlight))
		return one.channel.Confirm(false)
	}
	return one.channel.Qos(prefetch, 0, false)
}

func (one *rabbit) run() error {
	if one.work.Kind == "send" {
		return one.send()
	}
	return one.take()
}

func (one *rabbit) send() error {
	message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: make([]byte, one.work.ValueBytes)}
	room, refused := make(chan struct{}, inFlight), make(chan error, 1)
	go func() {
		for range one.work.Messages {
			if confirmation := <-one.confirmed; !confirmation.Ack {
				refused <- errors.New("RabbitMQ did not accept a message")
				return
			}
			<-room
		}
		refused <- nil
	}()
	for range one.work.Messages {
		room <- struct{}{}
		if err := one.channel.PublishWithContext(context.Background(), "", one.work.Queue, false, false, message); err != nil {
			return err
		}
	}
	return <-refused
}

func (one *rabbit) take() (err error) {
	if one.deliveries, err = one.channel.Consume(one.work.Queue, "", false, true, false, false, nil); err != nil {
		return err
	}
	for number := 1; number <= one.work.Messages; number++ {
		delivery, open := <-one.deliveries
		if !open {
			return errors.New("RabbitMQ closed the channel")
		}
		if number%together == 0 || number == one.work.Messages {
			if err := delivery.Ack(true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (one *rabbit) close() error {
	if one.work.Kind == "take" {
		if _, err := one.channel.QueueDelete(one.work.Queue, false, false, false); err != nil {
			return err
		}
	}
	return one.connection.Close()
}
