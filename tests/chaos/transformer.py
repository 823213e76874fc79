"""A program that consumes, transforms and produces, exactly once: `BOOTSTRAP SOURCE TARGET GROUP NAME`.

Each batch that it reads goes in one transaction, together with the offsets read; a value says, after a slash, in which.
It prints what becomes of each: `begin NAME PARTITION=VALUE …`, then `committed NAME` or `aborted NAME`; now and then it
aborts on purpose. It ends when it is fenced, or told so by its client; whoever runs it starts it again.
"""

import os
import sys
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

BATCH_MAX = 20
ABORT_EVERY = 5
POLL_S = 0.1
PATIENCE_S = 10.0
TRANSACTION_TIMEOUT_MS = 2000
SESSION_TIMEOUT_MS = 2000
# librdkafka 2.16 waits for ever for a group's coordinator that it forgot when it bootstrapped anew.
PATIENT = {"reconnect.backoff.max.ms": 200, "metadata.recovery.strategy": "none"}


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def until_done(call: Callable[[], object]) -> None:
    """What can be asked again, is."""
    while True:
        try:
            call()
            return
        except KafkaException as exception:
            if not exception.args[0].retriable():
                raise


class Transformer:
    def __init__(self, bootstrap: str, source: str, target: str, group: str, name: str) -> None:
        self._target = target
        self._name = f"{name}-{os.getpid()}"
        self._number = 0
        common = {"bootstrap.servers": bootstrap, "log_level": 0, **PATIENT}
        self._producer = Producer(
            {**common, "transactional.id": name, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS, "linger.ms": 0}
        )
        self._consumer = Consumer(
            {
                **common,
                "group.id": group,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": 300,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        until_done(lambda: self._producer.init_transactions(PATIENCE_S))
        self._consumer.subscribe([source])

    def run(self) -> None:
        while True:
            got = [one for one in self._consumer.consume(BATCH_MAX, POLL_S) if one.error() is None]
            if got:
                self._transact(got)

    def _transact(self, messages: Sequence[Message]) -> None:
        self._number += 1
        name = f"{self._name}-{self._number}"
        made = [(one.partition() or 0, f"{(one.value() or b'').decode()}/{name}") for one in messages]
        say("begin", name, *(f"{partition}={value}" for partition, value in made))
        self._producer.begin_transaction()
        try:
            for partition, value in made:
                self._producer.produce(self._target, value, partition=partition)
            self._send_offsets(messages)
            if self._number % ABORT_EVERY == 0:
                self._abort(name)
            else:
                until_done(lambda: self._producer.commit_transaction(PATIENCE_S))
                say("committed", name)
        except KafkaException as exception:
            if not exception.args[0].txn_requires_abort():
                raise
            self._abort(name)

    def _abort(self, name: str) -> None:
        until_done(lambda: self._producer.abort_transaction(PATIENCE_S))
        say("aborted", name)
        self._go_back()

    def _send_offsets(self, messages: Sequence[Message]) -> None:
        ends = {(one.topic() or "", one.partition() or 0): (one.offset() or 0) + 1 for one in messages}
        offsets = [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]
        member = self._consumer.consumer_group_metadata()
        until_done(lambda: self._producer.send_offsets_to_transaction(offsets, member, PATIENCE_S))

    def _go_back(self) -> None:
        """Read again what was not committed, of what is still its own."""
        for one in self._consumer.committed(self._consumer.assignment(), PATIENCE_S):
            self._consumer.seek(TopicPartition(one.topic, one.partition, max(0, one.offset)))


if __name__ == "__main__":
    try:
        Transformer(*sys.argv[1:6]).run()
    except KafkaException as exception:
        sys.exit(str(exception))
