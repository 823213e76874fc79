"""`tailrace queue send`, `take` and `peek`."""

import sys
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, access_of
from tailrace.cli.client.own_client import run_connected
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.output import say
from tailrace.cli.queues.facts import partitions_of
from tailrace.cli.queues.shown import Format, line
from tailrace.cli.queues.taking import Taking, Work
from tailrace.client.cluster import Cluster
from tailrace.client.consumer import Consumer, ConsumerOptions
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.client.queue import Queue, QueueOptions
from tailrace.client.share_admin import share_group_offsets
from tailrace.client.share_consumer import ShareConsumer

Name = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue: its topic.")]
Group = Annotated[str, typer.Option("--group", "-g", help="The share group.", show_default="the queue's name")]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="Print values, or one JSON object per line.")]
JOIN_S: Final = 30.0  # Kafka takes some seconds for the first member of a group
UNACKNOWLEDGED_MAX: Final = 1000  # messages that were sent and are not known to be written


def send(
    name: Name,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="VALUE", help="Messages; lines of standard input if there are none.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="Key of all messages.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="Header of every message; may be repeated."),
    ] = None,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Send messages to a queue, and wait until they are written.

    \b
    Examples:
      tailrace queue send mails "Dear Ann" "Dear Bob"
      tailrace queue send mails --header source=import < mails.txt
    """
    headers = tuple(_header(text) for text in header or ())
    encoded = None if key is None else key.encode()

    async def work(cluster: Cluster) -> int:
        await partitions_of(cluster, name)  # which says what to do if there is no such queue
        count = 0
        async with Producer(cluster, ProducerOptions(creates_topics=False)) as producer:
            written = []
            for value in _values(values):
                written.append(await producer.send(name, value, key=encoded, headers=headers))
                count += 1
                if len(written) >= UNACKNOWLEDGED_MAX:
                    await written.pop(0)
            for one in written:
                await one
        return count

    count = run_connected(access_of(bootstrap, client_config), work)
    say(f"sent {count} {'message' if count == 1 else 'messages'} to {name}")


def take(
    name: Name,
    most: Annotated[int | None, typer.Option("--max", "-n", min=1, help="Stop after this many messages.")] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", min=0, metavar="SECONDS", help="Stop after this long without a message."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec", "-x", metavar="CMD", help="Run this shell command for each message, its value on stdin."
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, help="Messages that are handled at once.")] = 1,
    no_ack: Annotated[
        bool, typer.Option("--no-ack", help="Print messages and keep their locks until this command ends.")
    ] = False,
    format: FormatOption = Format.text,
    group: Group = "",
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Take messages: print each, or run a command for each, until Ctrl-C, --max or --timeout.

    A printed message is accepted: no worker gets it again. With --exec the exit code of the command decides: 0 accepts
    the message, 75 releases it for another try; any other code is a failed try: it is reported, and the message is
    delivered again until the delivery limit. The lock is renewed while the command runs. Its environment has
    MESSAGE_TOPIC, MESSAGE_PARTITION, MESSAGE_OFFSET, MESSAGE_DELIVERY_COUNT, MESSAGE_TIMESTAMP, MESSAGE_KEY and
    MESSAGE_HEADERS (JSON). With --no-ack nothing is accepted: other workers do not get the messages while this command
    runs, and get them afterwards, with one delivery more.

    The exit code is 1 if fewer than --max messages came, or a try failed.

    \b
    Examples:
      tailrace queue take mails --max 1 --timeout 5
      tailrace queue take mails --exec 'sendmail -t' --workers 4
      tailrace queue take mails --no-ack --format json
    """
    if command is not None and no_ack:
        raise Misused("--exec and --no-ack exclude each other: the exit code of the command decides.")
    if workers > 1 and command is None:
        raise Misused("--workers is for --exec: without a command, messages are printed one by one.")
    work = Work(command=command, format=format, most=most, timeout_s=timeout, workers=workers, holds=no_ack)

    async def run(cluster: Cluster) -> Taking:
        await partitions_of(cluster, name)
        async with Queue(cluster, name, QueueOptions(group=group or None)) as queue:
            await join(queue, name)
            taking = Taking(queue, work)
            await taking.run()
            return taking

    taking = run_connected(access_of(bootstrap, client_config), run)
    if taking.failed:
        raise Failed(f"{taking.failed} of {taking.taken} deliveries failed.")
    if most is not None and taking.taken < most:
        raise Failed(f"only {taking.taken} of {most} messages came.")


def peek(
    name: Name,
    most: Annotated[int, typer.Option("--max", "-n", min=1, help="How many messages.")] = 10,
    format: FormatOption = Format.text,
    group: Group = "",
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Print the next messages of a queue without taking them: nothing changes for workers, and no delivery is counted.

    From the stored start offset of each partition on, so messages that are being processed, were processed before
    their turn, or were processed just now, may be shown, too.

    \b
    Examples:
      tailrace queue peek mails
      tailrace queue peek mails --max 1 --format json
    """

    async def work(cluster: Cluster) -> None:
        partitions = await partitions_of(cluster, name)
        known = await share_group_offsets(cluster, group or name)
        first = await offsets_at(cluster, dict.fromkeys(partitions, EARLIEST))
        end = await offsets_at(cluster, dict.fromkeys(partitions, LATEST))
        start = {one: max(first[one], known[one].start or 0 if one in known else 0) for one in partitions}
        left = most
        async with Consumer(cluster, ConsumerOptions(reads_committed=False, reset="earliest")) as consumer:
            consumer.assign({one: start[one] for one in partitions if start[one] < end[one]})
            while left and any(offset < end[one] for one, offset in consumer.positions.items()):
                for message in await consumer.poll(left):
                    sys.stdout.buffer.write(line(message, format))
                    left -= 1
        sys.stdout.buffer.flush()

    run_connected(access_of(bootstrap, client_config), work)


async def join(member: Queue | ShareConsumer, name: str) -> None:
    if not await member.join(JOIN_S):
        raise Failed(
            f"the group of {name} did not assign partitions within {JOIN_S:g} s; the broker's log may say why."
        )


def _values(given: list[str] | None) -> Iterator[bytes]:
    if given:
        yield from (value.encode() for value in given)
        return
    if sys.stdin.isatty():
        say("Type messages, one per line; Ctrl-D ends.")
    for one in sys.stdin.buffer:
        yield one.removesuffix(b"\n").removesuffix(b"\r")


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Misused(f"--header {text}: it must be NAME=VALUE, such as source=import.")
    return name, value.encode()
