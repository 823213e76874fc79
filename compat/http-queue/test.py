"""The system test of the HTTP queue.

    python test.py p [BROKERS]    5 producers write the messages of T-1, T-2 and T-3, 993 each
    python test.py c [BROKERS]    3 consumers read all, and write them to Consumer_1.txt, Consumer_2.txt, Consumer_3.txt

BROKERS is one address or several, with commas: 127.0.0.1:8001 by default. Exits with 1 if a count is not exact.
`--lines N` lets each producer write N messages instead of 993.
"""

import argparse
import sys
import threading

from consumer_client import MyConsumer, MyConsumerError
from producer_client import MyProducer

PRODUCERS = 5
CONSUMERS = 3
LINES = 993
SHARES = {"T-1": 1821, "T-2": 2317, "T-3": 827}  # of 5 x 993 messages


def topic_of(number, total):
    """The topic of a message, by its number among all: each topic gets its share."""
    place = number * sum(SHARES.values()) // total
    for topic, share in SHARES.items():
        if place < share:
            return topic
        place -= share
    raise AssertionError(number)


def counts(lines):
    total = PRODUCERS * lines
    found = dict.fromkeys(SHARES, 0)
    for number in range(total):
        found[topic_of(number, total)] += 1
    return found


def turned(brokers, number):
    """The same brokers, another one first: every broker takes every request."""
    first = number % len(brokers)
    return brokers[first:] + brokers[:first]


def produce(number, lines, brokers, failures):
    try:
        producer = MyProducer(list(SHARES), turned(brokers, number))
        for line in range(lines):
            topic = topic_of(line * PRODUCERS + number, PRODUCERS * lines)
            producer.Enqueue(topic, f"P-{number + 1} {topic} line {line + 1}")
    except Exception as error:
        failures.append(f"producer {number + 1}: {error!r}")


def consume(number, lines, brokers, failures):
    try:
        consumer = MyConsumer(list(SHARES), turned(brokers, number + 1))
        with open(f"Consumer_{number + 1}.txt", "w", encoding="utf-8") as out:
            for topic, expected in counts(lines).items():
                found = []
                while len(found) < expected:
                    found.append(consumer.Dequeue(topic))
                    out.write(f"{topic}: {found[-1]}\n")
                check(consumer, topic, found, failures, number)
    except Exception as error:
        failures.append(f"consumer {number + 1}: {error!r}")


def check(consumer, topic, found, failures, number):
    if len(set(found)) != len(found):
        failures.append(f"consumer {number + 1}: {len(found) - len(set(found))} messages of {topic} came twice")
    if consumer.Size(topic) != 0:
        failures.append(f"consumer {number + 1}: {consumer.Size(topic)} messages of {topic} too many")
    try:
        failures.append(f"consumer {number + 1}: {topic} has another message: {consumer.Dequeue(topic)}")
    except MyConsumerError as error:
        if "No new message" not in error.message:
            raise
    print(f"consumer {number + 1}: {len(found)} messages of {topic}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("p", "c"))
    parser.add_argument("brokers", nargs="?", default="127.0.0.1:8001")
    parser.add_argument("--lines", type=int, default=LINES)
    given = parser.parse_args()
    work, count = (produce, PRODUCERS) if given.part == "p" else (consume, CONSUMERS)
    failures = []
    brokers = given.brokers.split(",")
    threads = [threading.Thread(target=work, args=(n, given.lines, brokers, failures)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        print(failure, file=sys.stderr)
    if given.part == "p" and not failures:
        print(", ".join(f"{topic}: {number}" for topic, number in counts(given.lines).items()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
