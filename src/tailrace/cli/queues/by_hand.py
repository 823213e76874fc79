"""`tailrace queue ack`, `release` and `reject`: settle one message by hand.

Only the member that has a message's lock can settle it, and a lock ends with the connection of its member. So these
commands take messages themselves, until they have the one that is named, and settle it. What they had to take before it
goes back, and has one delivery more. A message that a worker has, or that is processed, cannot be settled.
"""

from typing import Annotated, Final

import typer

from tailrace.cli.client.client_config import Access, Brokers, ClientConfig, access_of
from tailrace.cli.client.own_client import run_connected
from tailrace.cli.failure import Failed
from tailrace.cli.output import say
from tailrace.cli.queues.facts import partitions_of
from tailrace.cli.queues.message_commands import Group, Name, join
from tailrace.client.cluster import Cluster
from tailrace.client.queue import SHARING
from tailrace.client.share_consumer import ShareConsumer
from tailrace.client.shares.message import Message, Outcome
from tailrace.model.ids import PartitionName

IDLE_S: Final = 2.0  # without another message: the one that is named does not come

Offset = Annotated[int, typer.Argument(metavar="OFFSET", min=0, help="Offset of the message; `peek` shows it.")]
Partition = Annotated[int, typer.Option("--partition", "-p", min=0, help="Partition of the message.")]
Reach = Annotated[int, typer.Option("--reach", min=1, help="Take up to this many messages; the others are released.")]


def ack(
    name: Name,
    offset: Offset,
    partition: Partition = 0,
    reach: Reach = 1,
    group: Group = "",
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Accept one message by hand, so that no worker gets it.

    The message is taken first, so it must be among the next that the broker would deliver: by default the very next
    one, with --reach 100 one of the next hundred. Those before it are released, with one delivery more. It fails if a
    worker has the message at the moment, or it is processed already: a lock cannot be taken from a worker.

    \b
    Examples:
      tailrace queue ack mails 1200
      tailrace queue ack mails 1200 --partition 3 --reach 100
    """
    _settle(
        name, PartitionName(name, partition), offset, reach, group, access_of(bootstrap, client_config), Outcome.ACCEPT
    )


def release(
    name: Name,
    offset: Offset,
    partition: Partition = 0,
    reach: Reach = 1,
    group: Group = "",
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Take one message by hand and release it: that counts as one failed delivery. See `tailrace queue ack --help`.

    It does not end the lock of a worker: that ends by itself, or when the worker's connection does.

    \b
    Example:
      tailrace queue release mails 1200
    """
    _settle(
        name, PartitionName(name, partition), offset, reach, group, access_of(bootstrap, client_config), Outcome.RELEASE
    )


def reject(
    name: Name,
    offset: Offset,
    partition: Partition = 0,
    reach: Reach = 1,
    group: Group = "",
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Reject one message by hand: it is given up, and goes to the dead letters if the queue has any.

    Which messages can be rejected: see `tailrace queue ack --help`.

    \b
    Example:
      tailrace queue reject mails 1200 --reach 10
    """
    _settle(
        name, PartitionName(name, partition), offset, reach, group, access_of(bootstrap, client_config), Outcome.REJECT
    )


def _settle(
    topic: str, partition: PartitionName, offset: int, reach: int, group: str, access: Access, outcome: Outcome
) -> None:
    async def work(cluster: Cluster) -> tuple[bool, list[Message]]:
        known = await partitions_of(cluster, topic)
        if partition not in known:
            raise Failed(f"{topic} has no partition {partition.partition}: its partitions are 0 to {len(known) - 1}.")
        passed: list[Message] = []
        async with ShareConsumer(cluster, group or topic, [topic], SHARING) as consumer:
            await join(consumer, topic)
            while len(passed) < reach:
                messages = await consumer.poll(1, IDLE_S)
                if not messages:
                    break
                if (messages[0].partition, messages[0].offset) == (partition, offset):
                    await consumer.settle(messages[0], outcome)
                    return True, passed
                passed += messages
        return False, passed

    found, passed = run_connected(access, work)
    if passed:
        say(f"released {len(passed)} other {'message' if len(passed) == 1 else 'messages'}, with one delivery more")
    if not found:
        next_one = f" The next message is offset {passed[0].offset} of {passed[0].partition}." if passed else ""
        raise Failed(
            f"offset {offset} of {partition} is not among the next {reach} messages: a worker has it, it is processed, "
            f"or it comes later.{next_one}\nTake more with --reach, or see `tailrace queue peek {topic}`."
        )
    done = {Outcome.ACCEPT: "accepted", Outcome.RELEASE: "released", Outcome.REJECT: "rejected"}[outcome]
    say(f"{done} offset {offset} of {partition}")
