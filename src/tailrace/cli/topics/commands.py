"""`tailrace topic …`: create, show, alter and delete topics."""

from typing import Annotated

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, access_of
from tailrace.cli.client.kafka_client import Json
from tailrace.cli.client.own_client import ask, connected, sentence
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.output import print_json, print_table, say
from tailrace.cli.usage import Command
from tailrace.client.admin import (
    Results,
    change_topic_settings,
    create_partitions,
    create_topics,
    delete_topics,
    list_topics,
)
from tailrace.client.topic_facts import TopicFacts, topic_facts
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Create, show, alter and delete topics.",
    epilog="Example: tailrace topic create orders --partitions 4",
)

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="Topic name.")]
Names = Annotated[list[str], typer.Argument(metavar="TOPIC", help="One or more topic names.")]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config", "-c", metavar="NAME=VALUE", help="Topic setting such as retention.ms=60000; may be repeated."
    ),
]


@commands.command(cls=Command)
def create(
    names: Names,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="Number of partitions; -1: the broker's default.")
    ] = -1,
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", help="Replicas of each partition; -1: the broker's default.")
    ] = -1,
    config: Config = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="No error if the topic exists already.")
    ] = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Create topics.

    \b
    Examples:
      tailrace topic create orders
      tailrace topic create orders payments --partitions 4 --config retention.ms=3600000
    """
    settings = _pairs(config)
    for name in names:
        if names.count(name) > 1:
            raise Misused(f"topic {name} is named twice: name each topic once. Nothing was created.")
    configs = tuple(NewTopicConfig(name=key, value=value) for key, value in settings.items())
    wanted = [
        NewTopic(name=name, num_partitions=partitions, replication_factor=replication_factor, configs=configs)
        for name in names
    ]
    with connected(access_of(bootstrap, client_config)) as cluster:
        results = ask(create_topics(cluster, wanted))
    _report(results, "created", Error.TOPIC_ALREADY_EXISTS if if_not_exists else None)


@commands.command("list", cls=Command)
def list_(
    internal: Annotated[
        bool, typer.Option("--internal", help="Include internal topics, whose names start with __.")
    ] = False,
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """List topics, one per line.

    \b
    Examples:
      tailrace topic list
      tailrace topic list --bootstrap broker.example:9093 --client-config client.properties
      tailrace topic list --json | jq -r '.[] | select(.partitions > 1) | .name'
    """
    with connected(access_of(bootstrap, client_config)) as cluster:
        topics = {one.name: one for one in ask(list_topics(cluster)) if one.name is not None}
    found = sorted(name for name in topics if internal or not name.startswith("__"))
    if json:
        print_json([{"name": name, "partitions": len(topics[name].partitions)} for name in found])
        return
    for name in found:
        print(name)


@commands.command(cls=Command)
def describe(
    names: Names,
    settings: Annotated[
        bool, typer.Option("--settings", help="Show all settings, not only those set on the topic.")
    ] = False,
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Show the partitions, offsets and settings of topics. With --json: one list of topics.

    \b
    Examples:
      tailrace topic describe orders
      tailrace topic describe orders --json | jq '.[0].partitions[0].end_offset'
    """
    with connected(access_of(bootstrap, client_config)) as cluster:
        facts = [ask(topic_facts(cluster, name, all_settings=settings)) for name in names]
    if json:
        print_json([one._asdict() | {"partitions": [part._asdict() for part in one.partitions]} for one in facts])
        return
    for one in facts:
        _show(one)


@commands.command(cls=Command)
def alter(
    name: Name,
    config: Config = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", "-u", metavar="NAME", help="Reset a setting to its default; may be repeated."),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", help="New number of partitions; it can only grow.")
    ] = None,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Change the settings of a topic, or add partitions.

    \b
    Examples:
      tailrace topic alter orders --config retention.ms=60000 --unset segment.bytes
      tailrace topic alter orders --partitions 8
    """
    changes: dict[str, str | None] = {**_pairs(config), **dict.fromkeys(unset or ())}
    if not changes and partitions is None:
        raise Misused("nothing to change: give --config, --unset or --partitions.")
    with connected(access_of(bootstrap, client_config)) as cluster:
        if changes:
            ask(change_topic_settings(cluster, name, changes))
        if partitions is not None:
            ask(create_partitions(cluster, name, partitions))
    say(f"changed {name}")


@commands.command(cls=Command)
def delete(
    names: Names,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="No error if the topic does not exist.")] = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Delete topics and all their messages.

    \b
    Example:
      tailrace topic delete orders payments
    """
    with connected(access_of(bootstrap, client_config)) as cluster:
        results = ask(delete_topics(cluster, names))
    _report(results, "deleted", Error.UNKNOWN_TOPIC_OR_PARTITION if if_exists else None)


def _report(results: Results, done: str, ignored: Error | None) -> None:
    """Print the result for each topic, and fail if any failed. `ignored` is an error that is no failure."""
    failures = []
    for name, refused in results.items():
        if refused is None:
            say(f"{done} {name}")
        elif refused.error is ignored:
            say(f"{name}: nothing to do")
        else:
            failures.append(sentence(refused))
    if failures:
        raise Failed("\n".join(failures))


def _pairs(texts: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise Misused(f"--config {text}: it must be NAME=VALUE, such as retention.ms=60000.")
        pairs[name.strip()] = value
    return pairs


def _show(facts: TopicFacts) -> None:
    print(f"{facts.name}  id {facts.id}")
    columns = ("partition", "leader", "replicas", "in sync", "first offset", "end offset")
    print_table(
        columns,
        [
            (one.partition, one.leader, _numbers(one.replicas), _numbers(one.in_sync), one.first_offset, one.end_offset)
            for one in facts.partitions
        ],
    )
    if facts.settings:
        print_table(("setting", "value"), facts.settings.items())


def _numbers(values: list[int]) -> str:
    return ",".join(map(str, values))
