"""`tailrace queue redrive`: send dead letters back to the topic that they come from.

The dead letter topic is read as a queue, by the share group GROUP-redrive, so several runs never send a dead letter
back twice. If a run is interrupted, at most the message that was under way is sent twice. A header counts how often a
message was redriven: at the limit it stays where it is, else a message that can never be processed would be sent
back for ever.
"""

from typing import Annotated, Final

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, access_of
from tailrace.cli.client.own_client import run_connected
from tailrace.cli.failure import Failed
from tailrace.cli.output import say
from tailrace.cli.queues.facts import DEAD_LETTERS, RESET, partitions_of, queue_facts
from tailrace.cli.queues.message_commands import Group, Name, join
from tailrace.client.admin import change_group_settings
from tailrace.client.cluster import Cluster
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.client.queue import Queue, QueueEmpty, QueueOptions
from tailrace.client.shares.message import Message, Outcome
from tailrace.records.record import Headers

ORIGINAL_TOPIC: Final = "__dlq.errors.topic"
ADDED: Final = ("__dlq.errors.", "tailrace.dlq.")  # headers that the broker added to the dead letter
COUNT: Final = "tailrace.redriven"
IDLE_S: Final = 2.0  # without another message: that was all


def redrive(
    name: Name,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="TOPIC", help="The dead letter topic.", show_default="that of the group"),
    ] = None,
    most: Annotated[int | None, typer.Option("--max", "-n", min=1, help="Stop after this many messages.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Leave messages that were redriven this often already.")
    ] = 3,
    group: Group = "",
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Send dead letters back to the queue, with their key, value and headers. They stay in the dead letter topic.

    Only those that were not redriven before: the group QUEUE-redrive keeps track. A message that comes from another
    topic, by its headers, goes there. Messages at the limit are left, and the exit code is 1.

    \b
    Examples:
      tailrace queue redrive mails --max 10
      tailrace queue redrive mails --from mails-dead --limit 5
    """

    async def work(cluster: Cluster) -> tuple[int, int]:
        letters = source or (await queue_facts(cluster, name, group or name))["settings"].get(DEAD_LETTERS)
        if not letters:
            raise Failed(f"{name} has no dead letter topic: name one with --from.")
        await partitions_of(cluster, letters)
        keeper = f"{group or name}-redrive"
        await change_group_settings(cluster, keeper, {RESET: "earliest"})
        async with (
            Queue(cluster, letters, QueueOptions(group=keeper)) as queue,
            Producer(cluster, ProducerOptions(creates_topics=False)) as producer,
        ):
            await join(queue, letters)
            return await _redrive_all(queue, producer, name, most, limit)

    sent, left = run_connected(access_of(bootstrap, client_config), work)
    say(f"redrove {sent} {'message' if sent == 1 else 'messages'} of {name}")
    if left:
        raise Failed(
            f"{left} messages were left: they were redriven {limit} times already. Raise --limit to send them."
        )


async def _redrive_all(queue: Queue, producer: Producer, topic: str, most: int | None, limit: int) -> tuple[int, int]:
    sent = left = 0
    while most is None or sent < most:
        try:
            message = await queue.receive(IDLE_S)
        except QueueEmpty:
            break
        count = _redriven(message)
        if count >= limit:
            left += 1  # locked until the end, and then released
            continue
        target = (message.header(ORIGINAL_TOPIC) or topic.encode()).decode()
        headers = (*_original(message), (COUNT, b"%d" % (count + 1)))
        await (await producer.send(target, message.value, key=message.key, headers=headers))
        await queue.settle(message, Outcome.ACCEPT)
        sent += 1
    return sent, left


def _original(message: Message) -> Headers:
    return tuple((name, value) for name, value in message.headers if name != COUNT and not name.startswith(ADDED))


def _redriven(message: Message) -> int:
    count = message.header(COUNT) or b"0"
    return int(count) if count.isdigit() else 0
