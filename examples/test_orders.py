"""Tests against a real broker: installing tailrace gives pytest the fixture `tailrace_broker`."""

from confluent_kafka import Consumer, Producer, TopicPartition

from tailrace.testing import Broker


def place_order(bootstrap: str, customer: str, order: str) -> None:
    """Stands for the code that you want to test."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", key=customer, value=order)
    producer.flush()


def test_an_order_reaches_the_topic(tailrace_broker: Broker) -> None:
    place_order(tailrace_broker.bootstrap, "ann", "3 apples")

    settings = {"bootstrap.servers": tailrace_broker.bootstrap, "group.id": "test", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("orders", 0, 0)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    assert (message.key(), message.value()) == (b"ann", b"3 apples")
