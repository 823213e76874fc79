"""`tailrace bench`: measure the throughput and latency of any Kafka broker."""

import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Annotated, Any

import typer

from tailrace.cli.bench.latency import measure_latency
from tailrace.cli.bench.load import Case, Load, Progress, measure_consume, measure_produce
from tailrace.cli.client.client_config import Access, Brokers, ClientConfig, access_of
from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, Json, admin, answer, asking
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.messages.produce import Acks, AcksOption, Compression, CompressionOption
from tailrace.cli.output import print_json, print_table, progress


class Measure(StrEnum):
    produce = "produce"
    consume = "consume"
    latency = "latency"


def bench(
    messages: Annotated[int, typer.Option("--messages", "-n", min=1, help="Messages to send and to read.")] = 200_000,
    size: Annotated[int, typer.Option("--size", "-s", min=8, help="Bytes per message.")] = 1000,
    partitions: Annotated[int, typer.Option("--partitions", "-p", min=1, help="Partitions of the created topic.")] = 1,
    acks: AcksOption = Acks.all,
    compression: CompressionOption = Compression.none,
    rate: Annotated[int, typer.Option("--rate", "-r", min=1, help="Latency: messages per second.")] = 1000,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="Latency: duration of the measurement.")] = 5.0,
    only: Annotated[
        list[Measure] | None, typer.Option("--only", help="Run only this measurement; may be repeated.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", "-t", help="An existing topic. Without it, a topic is created and deleted at the end."),
    ] = None,
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Measure a broker: produce throughput, consume throughput, and the latency of single messages.

    \b
    Examples:
      tailrace bench
      tailrace bench --bootstrap broker.example:9093 --client-config client.properties
      tailrace bench --size 100 --messages 1000000 --acks 1 --only produce --only consume
      tailrace bench --only latency --rate 2000 --seconds 10 --json
    """
    wanted = list(dict.fromkeys(only or Measure))
    if Measure.consume in wanted and Measure.produce not in wanted and topic is None:
        raise Misused(
            "--only consume has no messages to read: add --only produce, or name a filled topic with --topic."
        )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as for Ctrl-C, delete the topic before the end
    access = access_of(bootstrap, client_config)
    with _topic(access, topic, partitions) as name:
        load = Load(
            access=access,
            topic=name,
            messages=messages,
            size=size,
            acks=acks.value,
            compression=compression.value,
            rate=rate,
            seconds=seconds,
        )
        cases = [_measure(one, load) for one in wanted]
    if json:
        for case in cases:
            print_json(case)
    else:
        _show(cases)


def _measure(measure: Measure, load: Load) -> Case:
    calls: dict[Measure, Callable[[Load, Progress], Case]] = {
        Measure.produce: measure_produce,
        Measure.consume: measure_consume,
        Measure.latency: measure_latency,
    }
    total = load.rate * load.seconds if measure is Measure.latency else load.messages
    with progress() as bar:
        task = bar.add_task(measure.value, total=total)
        return calls[measure](load, lambda done: bar.update(task, completed=done))


@contextmanager
def _topic(access: Access, given: str | None, partitions: int) -> Iterator[str]:
    """The topic to use: the given one, or a new one that is deleted at the end."""
    client = admin(access)
    if given is not None:
        with asking(access, f"find topic {given}"):
            exists = given in client.list_topics(timeout=ANSWER_TIMEOUT_S).topics  # a request by name could create it
        if not exists:
            raise Failed(f"there is no topic {given}.\n`tailrace topic list` lists the topics.")
        yield given
        return
    from confluent_kafka.admin import NewTopic

    name = f"tailrace-bench-{secrets.token_hex(4)}"
    try:
        with asking(access, f"create topic {name}"):
            created = client.create_topics([NewTopic(name, partitions, -1)], request_timeout=ANSWER_TIMEOUT_S)
        answer(created[name], access, f"create topic {name}")
        yield name
    finally:
        with suppress(Failed):  # a failed deletion must not hide why the measurement failed
            answer(client.delete_topics([name], request_timeout=ANSWER_TIMEOUT_S)[name], access, f"delete {name}")


def _show(cases: list[Case]) -> None:
    throughput = [one for one in cases if "mb_per_s" in one]
    if throughput:
        columns = ("", "messages", "size", "seconds", "messages/s", "MB/s")
        keys = ("name", "messages", "size", "seconds", "messages_per_s", "mb_per_s")
        print_table(columns, [[one[key] for key in keys] for one in throughput])
    for one in cases:
        if one["name"] == "latency":
            print_table((f"at {one['rate']} messages/s, ms", "p50", "p99", "p99.9", "max"), _latency_rows(one))


def _latency_rows(case: dict[str, Any]) -> list[list[object]]:
    spans = (("until acknowledged", "confirmed_ms"), ("until consumed", "end_to_end_ms"))
    return [[label, *(case[key][name] for name in ("p50", "p99", "p999", "max"))] for label, key in spans]
