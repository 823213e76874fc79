"""`tailrace queue …`: set queues up and look at them. A queue is a topic and the share group that reads it."""

import re
from typing import Annotated, Final

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, access_of
from tailrace.cli.client.kafka_client import Json
from tailrace.cli.client.own_client import ask, connected, run_connected, sentence
from tailrace.cli.failure import Failed, Misused, NotFound
from tailrace.cli.output import print_json, print_table, say, show_each
from tailrace.cli.queues.by_hand import ack, reject, release
from tailrace.cli.queues.facts import DEAD_LETTERS, RESET, QueueFacts, queue_facts, queue_names, queue_stats
from tailrace.cli.queues.message_commands import Group, Name, peek, send, take
from tailrace.cli.queues.purging import purge_waiting
from tailrace.cli.queues.redriving import redrive
from tailrace.cli.usage import Command
from tailrace.client.admin import change_group_settings, create_topics
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Queues: send messages, take them one by one, look at what waits. Needs a broker with share groups.",
    epilog="Example: tailrace queue create mails; tailrace queue send mails hello; tailrace queue take mails --max 1",
)
Names = Annotated[list[str], typer.Argument(metavar="QUEUE", help="One or more queues.")]
UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@commands.command(cls=Command)
def create(
    name: Name,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="Number of partitions; -1: the broker's default.")
    ] = -1,
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", help="Replicas of each partition; -1: the broker's default.")
    ] = -1,
    lock: Annotated[
        str | None, typer.Option("--lock", metavar="DURATION", help="How long a message is locked for a worker: 45s.")
    ] = None,
    delivery_limit: Annotated[
        int | None, typer.Option("--delivery-limit", min=1, help="Give a message up after so many deliveries.")
    ] = None,
    dead_letters: Annotated[
        str | None,
        typer.Option("--dead-letters", metavar="TOPIC", help="Topic for messages that are given up; it is created."),
    ] = None,
    backoff: Annotated[
        str | None, typer.Option("--backoff", metavar="DURATION", help="Pause before a message is delivered again: 1s.")
    ] = None,
    backoff_max: Annotated[
        str | None, typer.Option("--backoff-max", metavar="DURATION", help="The longest such pause: 5m.")
    ] = None,
    backoff_multiplier: Annotated[
        float | None, typer.Option("--backoff-multiplier", min=1, help="How much longer each next pause is.")
    ] = None,
    group: Group = "",
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="No error if the topic exists.")] = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Create a queue: its topic, and the settings of its share group, which begins with the first message.

    With a topic that exists and --if-not-exists, only the settings are changed. --dead-letters and --backoff need a
    broker that has them: Tailrace.

    \b
    Examples:
      tailrace queue create mails
      tailrace queue create mails --partitions 4 --lock 2m --delivery-limit 8
      tailrace queue create mails --dead-letters mails-dead --backoff 1s --backoff-max 5m
    """
    wanted = {
        RESET: "earliest",
        "share.record.lock.duration.ms": _duration_ms("--lock", lock),
        "share.delivery.count.limit": None if delivery_limit is None else str(delivery_limit),
        "share.retry.backoff.ms": _duration_ms("--backoff", backoff),
        "share.retry.backoff.max.ms": _duration_ms("--backoff-max", backoff_max),
        "share.retry.backoff.multiplier": None if backoff_multiplier is None else f"{backoff_multiplier:g}",
        DEAD_LETTERS: dead_letters,
    }
    if dead_letters == name:
        raise Misused(f"--dead-letters {name}: a queue cannot be its own dead letter topic.")
    topics = [NewTopic(name=name, num_partitions=partitions, replication_factor=replication_factor)]
    if dead_letters is not None:
        topics.append(NewTopic(name=dead_letters, num_partitions=-1, replication_factor=replication_factor))
    with connected(access_of(bootstrap, client_config)) as cluster:
        # The settings first: if the broker does not have one of them, nothing is created.
        ask(change_group_settings(cluster, group or name, {key: value for key, value in wanted.items() if value}))
        results = ask(create_topics(cluster, topics))
    allowed = [name for name, refused in results.items() if refused and refused.error is Error.TOPIC_ALREADY_EXISTS]
    if not if_not_exists and name in allowed:
        allowed.remove(name)
    failures = [sentence(refused) for topic, refused in results.items() if refused is not None and topic not in allowed]
    if failures:
        raise Failed("\n".join(failures))
    say(f"{'changed' if name in allowed else 'created'} {name}")


@commands.command("list", cls=Command)
def list_(json: Json = False, bootstrap: Brokers = "", client_config: ClientConfig = "") -> None:
    """List queues, one per line: share groups, and those that are set up and not in use yet.

    \b
    Examples:
      tailrace queue list
      tailrace queue list --json | jq -r '.[].queue'
    """
    with connected(access_of(bootstrap, client_config)) as cluster:
        names = ask(queue_names(cluster))
    if json:
        print_json([{"queue": name} for name in names])
        return
    for name in names:
        print(name)


@commands.command(cls=Command)
def describe(
    names: Names, group: Group = "", json: Json = False, bootstrap: Brokers = "", client_config: ClientConfig = ""
) -> None:
    """Show the partitions, workers and settings of queues. With --json: one list of queues.

    Everything before "start" is processed. "waiting" counts what is not, also what workers have at the moment.

    \b
    Examples:
      tailrace queue describe mails
      tailrace queue describe mails --group audit
      tailrace queue describe mails --json | jq '.[0].settings'
    """
    with connected(access_of(bootstrap, client_config)) as cluster:
        show_each(names, lambda name: ask(queue_facts(cluster, name, group or name)), _show, json=json)


@commands.command(cls=Command)
def stats(
    names: Annotated[list[str] | None, typer.Argument(metavar="QUEUE", help="Queues; all if none is named.")] = None,
    group: Group = "",
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Show how many messages wait in queues, how many workers they have, and how many dead letters there are.

    \b
    Examples:
      tailrace queue stats
      tailrace queue stats mails --json | jq '.[0].waiting'
    """
    with connected(access_of(bootstrap, client_config)) as cluster:
        found = []
        for name in names or ask(queue_names(cluster)):
            try:
                found.append(ask(queue_stats(cluster, name, group or name)))
            except NotFound:
                if names:
                    raise  # else it is a share group that reads topics of other names
    if json:
        print_json(found)
        return
    rows = [
        (one["queue"], one["waiting"], one["workers"], "-" if one["dead"] is None else one["dead"]) for one in found
    ]
    print_table(("queue", "waiting", "workers", "dead letters"), rows)


@commands.command(cls=Command)
def purge(
    name: Name,
    group: Group = "",
    execute: Annotated[
        bool, typer.Option("--execute", help="Skip them; without it their number is only shown.")
    ] = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Skip all messages that wait, for a group without workers. They stay in the topic: other groups are not affected.

    \b
    Examples:
      tailrace queue purge mails
      tailrace queue purge mails --execute
    """
    waiting = run_connected(
        access_of(bootstrap, client_config),
        lambda cluster: purge_waiting(cluster, name, group or name, execute=execute),
    )
    if execute:
        say(f"skipped {waiting} {'message' if waiting == 1 else 'messages'} of {name}")
    else:
        say(f"{waiting} messages of {name} wait; nothing was changed; add --execute to skip them")


for command in (send, take, peek, ack, release, reject, redrive):
    commands.command(cls=Command)(command)


def _duration_ms(option: str, text: str | None) -> str | None:
    if text is None:
        return None
    amount = re.fullmatch(r"(\d{1,12})(ms|s|m|h|d)", text)
    if amount is None:
        raise Misused(f"{option} {text}: it must be a number and ms, s, m, h or d, such as 30s.")
    return str(int(amount[1]) * UNITS_MS[amount[2]])


def _show(facts: QueueFacts) -> None:
    group = "" if facts["group"] == facts["queue"] else f", group {facts['group']}"
    print(f"{facts['queue']}  {facts['state']}{group}, {facts['waiting']} waiting, {len(facts['members'])} workers")
    rows = [
        (one["partition"], "-" if one["start"] is None else one["start"], one["end"], one["waiting"])
        for one in facts["partitions"]
    ]
    print_table(("partition", "start", "end", "waiting"), rows)
    if facts["settings"]:
        print_table(("setting", "value"), facts["settings"].items())
