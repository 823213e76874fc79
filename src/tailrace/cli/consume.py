"""`tailrace consume`: read a topic's messages to standard output.

All partitions are read by assignment: no group is joined and no offset is committed, so looking disturbs nobody.
"""

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from tailrace.cli.client import Bootstrap, consumer, default_bootstrap
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.message_format import json_line, text_line
from tailrace.cli.reading import Reading, places


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
    bootstrap: Bootstrap = default_bootstrap,
) -> None:
    """Read messages, without a group, until Ctrl-C or as long as you say.

    With --max it is a failure (exit code 1) when --timeout or --to-end comes before so many messages.

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
        _print_all(reading, format, key_separator)
    finally:
        client.close()
    if not reading.complete:
        raise Failed(f"{reading.count} of {most} messages came.")


def _print_all(reading: Reading, format: Format, key_separator: str | None) -> None:
    out = sys.stdout.buffer
    try:
        for messages in reading.lists():
            for message in messages:
                out.write(json_line(message) if format is Format.json else text_line(message, key_separator))
            out.flush()
    except KeyboardInterrupt:
        raise typer.Exit(0) from None  # the usual way to end it
    except BrokenPipeError:
        # `… | head` has seen enough. What Python still holds for it must go nowhere, not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
