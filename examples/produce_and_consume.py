"""Send a few messages and read them back: nothing here knows that the broker is not Apache Kafka."""

import sys

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def main(bootstrap: str) -> None:
    topic = "weather"
    AdminClient({"bootstrap.servers": bootstrap}).create_topics([NewTopic(topic, num_partitions=1)])

    arrived: list[Message] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for city, degrees in (("Oslo", -3), ("Lisbon", 17), ("Nairobi", 24)):
        producer.produce(topic, key=city, value=str(degrees), on_delivery=lambda _, message: arrived.append(message))
    producer.flush()

    first = arrived[0].offset()
    assert first is not None
    # Reading by assignment, from an offset we know, needs no consumer group and commits nothing.
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "example", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, first)])
    for message in consumer.consume(len(arrived), timeout=10):
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        print(f"{key.decode()}: {value.decode()} °C (offset {message.offset()})")
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092")
