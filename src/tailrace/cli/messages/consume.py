"""`tailrace consume`: print the messages of a topic to standard output.

Partitions are assigned directly: no group is joined and no offset is committed, so other consumers are not affected.
"""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, access_of
from tailrace.cli.client.kafka_client import consumer
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.messages.message_format import json_line, text_line
from tailrace.cli.messages.reading import Reading, places

if TYPE_CHECKING:
    from confluent_kafka import Consumer

PARTITIONS_SHOWN_MAX: Final = 5  # partitions that an error message names


class Format(StrEnum):
    text = "text"
    json = "json"


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic to read.")],
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the first message, not at the end.")
    ] = False,
    partition: Annotated[int | None, typer.Option("--partition", "-p", min=0, help="Only this partition.")] = None,
    offset: Annotated[
        int | None, typer.Option("--offset", "-o", help="First offset to read; -5 is five before the end.")
    ] = None,
    most: Annotated[int | None, typer.Option("--max", "-n", min=0, help="Stop after this many messages.")] = None,
    to_end: Annotated[bool, typer.Option("--to-end", "-e", help="Stop at the end of the topic.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", min=0, metavar="SECONDS", help="Stop after this long without a message."),
    ] = None,
    format: Annotated[
        Format, typer.Option("--format", "-f", help="Print values, or one JSON object per line.")
    ] = Format.text,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-k", metavar="TEXT", help="Text format: print the key and this first."),
    ] = None,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Print messages until Ctrl-C, --max, --to-end or --timeout. No group is joined.

    With --max or --to-end the exit code is 1 if reading stops before that many messages, or before the end.
    With --to-end reading stops if no message arrives for 10 s, or for the time given by --timeout.

    \b
    Examples:
      tailrace consume orders --from-beginning
      tailrace consume orders --bootstrap broker.example:9093 --client-config client.properties
      tailrace consume orders --offset -10 --to-end
      tailrace consume orders --partition 2 --offset 1200 --max 5 --format json
      tailrace consume orders --from-beginning --max 1 --timeout 5 || echo empty
    """
    if from_beginning and offset is not None:
        raise Misused("--from-beginning and --offset both set the first offset: give only one of them.")
    access = access_of(bootstrap, client_config)
    client = consumer(access, {"enable.partition.eof": True})
    try:
        wanted = places(client, topic, access, partition=partition, from_beginning=from_beginning, offset=offset)
        client.assign(wanted)
        numbers = [one.partition for one in wanted]
        reading = Reading(client, numbers, most=most, timeout_s=timeout, to_end=to_end)
        interrupted = _print_all(reading, format, key_separator)
        if reading.partitions_before_end:
            raise Failed(_end_not_reached_error(client, topic, reading, interrupted=interrupted))
    finally:
        client.close()
    if not reading.complete:
        raise Failed(f"only {reading.count} of {most} messages were received.")


def _end_not_reached_error(client: "Consumer", topic: str, reading: Reading, *, interrupted: bool) -> str:
    from tailrace.cli.messages.end_not_reached import describe_position

    partitions = reading.partitions_before_end
    shown = partitions[:PARTITIONS_SHOWN_MAX]
    positions = [describe_position(client, topic, one, reading.next_offsets.get(one)) for one in shown]
    if len(partitions) > len(shown):
        positions.append(f"and {len(partitions) - len(shown)} more partitions")
    if interrupted:
        return f"interrupted before the end: {'; '.join(positions)}."
    return (
        f"no message for {reading.idle_max_s:g} s before the end: {'; '.join(positions)}.\n"
        "The broker's log may say why."
    )


def _print_all(reading: Reading, format: Format, key_separator: str | None) -> bool:
    """Print the messages; return whether Ctrl-C ended that, as it usually does."""
    out = sys.stdout.buffer
    try:
        for messages in reading.lists():
            for message in messages:
                out.write(json_line(message) if format is Format.json else text_line(message, key_separator))
            out.flush()
    except KeyboardInterrupt:
        return True
    return False
