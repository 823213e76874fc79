"""`tailrace consume`: read a topic's messages to standard output.

All partitions are read by assignment: no group is joined and no offset is committed, so looking disturbs nobody.
"""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tailrace.cli.client.kafka_client import DEFAULT_BOOTSTRAP, Bootstrap, consumer
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.messages.message_format import json_line, text_line
from tailrace.cli.messages.reading import Reading, places

if TYPE_CHECKING:
    from confluent_kafka import Consumer

TOLD_MAX: Final = 5  # partitions that a message names


class Format(StrEnum):
    text = "text"
    json = "json"


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="What to read.")],
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="Not only what comes from now on.")] = False,
    partition: Annotated[int | None, typer.Option("--partition", "-p", min=0, help="Only this one.")] = None,
    offset: Annotated[
        int | None, typer.Option("--offset", "-o", help="Where to begin; -5: five before the end.")
    ] = None,
    most: Annotated[int | None, typer.Option("--max", "-n", min=0, help="Stop after so many messages.")] = None,
    to_end: Annotated[bool, typer.Option("--to-end", "-e", help="Stop at the end of the topic.")] = False,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0, metavar="SECONDS", help="Stop after so long without a message.")
    ] = None,
    format: Annotated[Format, typer.Option("--format", "-f", help="Values, or a JSON object a line.")] = Format.text,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-k", metavar="TEXT", help="In text: print the key too, and this.")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Read messages until Ctrl-C, or as long as you say. No group is joined.

    With --max or --to-end it is a failure (exit code 1) when the reading ends before so many messages, or
    before the end. With --to-end it ends when nothing comes for 10 s, or for as long as --timeout says.

    \b
    Examples:
      tailrace consume orders --from-beginning
      tailrace consume orders --offset -10 --to-end
      tailrace consume orders --partition 2 --offset 1200 --max 5 --format json
      tailrace consume orders --from-beginning --max 1 --timeout 5 || echo nothing there
    """
    if from_beginning and offset is not None:
        raise Misused("--from-beginning and --offset both say where to begin: give one of them.")
    client = consumer(bootstrap, {"enable.partition.eof": True})
    try:
        wanted = places(client, topic, bootstrap, partition=partition, from_beginning=from_beginning, offset=offset)
        client.assign(wanted)
        numbers = [one.partition for one in wanted]
        reading = Reading(client, numbers, most=most, timeout_s=timeout, to_end=to_end)
        interrupted = _print_all(reading, format, key_separator)
        if reading.short_of_end:
            raise Failed(_why_not_to_end(client, topic, reading, interrupted=interrupted))
    finally:
        client.close()
    if not reading.complete:
        raise Failed(f"{reading.count} of {most} messages came.")


def _why_not_to_end(client: "Consumer", topic: str, reading: Reading, *, interrupted: bool) -> str:
    from tailrace.cli.messages.short_of_end import where_it_stands

    partitions = reading.short_of_end
    told = [where_it_stands(client, topic, one, reading.next_offsets.get(one)) for one in partitions[:TOLD_MAX]]
    if len(partitions) > TOLD_MAX:
        told.append(f"so it is with {len(partitions) - TOLD_MAX} more partitions")
    if interrupted:
        return f"interrupted before the end: {'; '.join(told)}."
    return (
        f"nothing came for {reading.quiet_max_s:g} s before the end: {'; '.join(told)}.\nThe broker's log may say why."
    )


def _print_all(reading: Reading, format: Format, key_separator: str | None) -> bool:
    """Whether Ctrl-C ended it, which is the usual way."""
    out = sys.stdout.buffer
    try:
        for messages in reading.lists():
            for message in messages:
                out.write(json_line(message) if format is Format.json else text_line(message, key_separator))
            out.flush()
    except KeyboardInterrupt:
        return True
    return False
