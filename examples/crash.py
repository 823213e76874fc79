"""Kill a broker in the middle of its work: every message it confirmed is there when it comes back."""

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tailrace.testing import Broker


def main() -> None:
    confirmed: list[Message] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is None:
            confirmed.append(message)

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "log_level": 0})
        while len(confirmed) < 1000:
            producer.produce("events", b"something happened", on_delivery=on_delivery)
            producer.poll(0 if len(producer) < 1000 else 0.1)
        broker.kill()
        producer.purge()
        print(f"killed the broker after it had confirmed {len(confirmed)} messages")

        broker.restart()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False})
        _, end = consumer.get_watermark_offsets(TopicPartition("events", 0), timeout=10)
        consumer.close()
        last = max(message.offset() or 0 for message in confirmed)
        assert end > last, f"the log ends at {end}, offset {last} was confirmed"
        print(f"it is back, and its log ends at {end}: nothing that was confirmed is lost")


if __name__ == "__main__":
    main()
