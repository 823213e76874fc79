"""`tailrace topic …`: create, show, alter and delete topics."""

from concurrent.futures import Future
from typing import Annotated

import typer

from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, DEFAULT_BOOTSTRAP, Bootstrap, Json, admin, answer, asking
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.output import print_json, print_table, say
from tailrace.cli.topics.facts import TopicFacts, topic_facts
from tailrace.cli.usage import Command

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
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
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
    client = admin(bootstrap)
    from confluent_kafka.admin import NewTopic

    wanted = [NewTopic(name, partitions, replication_factor, config=settings) for name in names]
    with asking(bootstrap, "create topics"):
        answers = client.create_topics(wanted, request_timeout=ANSWER_TIMEOUT_S)
    _report(answers, bootstrap, "create", "created", "TOPIC_ALREADY_EXISTS" if if_not_exists else None)


@commands.command("list", cls=Command)
def list_(
    internal: Annotated[
        bool, typer.Option("--internal", help="Include internal topics, whose names start with __.")
    ] = False,
    json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List topics, one per line.

    \b
    Examples:
      tailrace topic list
      tailrace topic list --json | jq -r '.[] | select(.partitions > 1) | .name'
    """
    client = admin(bootstrap)
    with asking(bootstrap, "list topics"):
        topics = client.list_topics(timeout=ANSWER_TIMEOUT_S).topics
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
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Show the partitions, offsets and settings of topics. With --json: one list of topics.

    \b
    Examples:
      tailrace topic describe orders
      tailrace topic describe orders --json | jq '.[0].partitions[0].end_offset'
    """
    facts = [topic_facts(admin(bootstrap), name, bootstrap, all_settings=settings) for name in names]
    if json:
        print_json(facts)
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
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
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
    client = admin(bootstrap)
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType

    if changes:
        entries = [
            ConfigEntry(
                key, value, incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
            )
            for key, value in changes.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        with asking(bootstrap, f"change topic {name}"):
            (future,) = client.incremental_alter_configs([resource], request_timeout=ANSWER_TIMEOUT_S).values()
        answer(future, bootstrap, f"change topic {name}")
    if partitions is not None:
        with asking(bootstrap, f"add partitions to {name}"):
            grown = client.create_partitions([NewPartitions(name, partitions)], request_timeout=ANSWER_TIMEOUT_S)
        answer(grown[name], bootstrap, f"change {name} to {partitions} partitions")
    say(f"changed {name}")


@commands.command(cls=Command)
def delete(
    names: Names,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="No error if the topic does not exist.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete topics and all their messages.

    \b
    Example:
      tailrace topic delete orders payments
    """
    client = admin(bootstrap)
    with asking(bootstrap, "delete topics"):
        answers = client.delete_topics(names, request_timeout=ANSWER_TIMEOUT_S)
    _report(answers, bootstrap, "delete", "deleted", "UNKNOWN_TOPIC_OR_PART" if if_exists else None)


def _report(answers: "dict[str, Future[None]]", bootstrap: str, verb: str, done: str, ignored: str | None) -> None:
    """Print the result for each topic, and fail if any failed. `ignored` is the name of an error that is no failure."""
    failures = []
    for name, future in answers.items():
        error = future.exception(2 * ANSWER_TIMEOUT_S)
        if error is not None and ignored is not None and getattr(error.args[0], "name", str)() == ignored:
            say(f"{name}: nothing to do")
            continue
        try:
            answer(future, bootstrap, f"{verb} topic {name}")
        except Failed as failure:
            failures.append(str(failure))
        else:
            say(f"{done} {name}")
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
    print(f"{facts['name']}  id {facts['id']}")
    columns = ("partition", "leader", "replicas", "in sync", "first offset", "end offset")
    print_table(
        columns,
        [
            (
                one["partition"],
                one["leader"],
                _numbers(one["replicas"]),
                _numbers(one["in_sync"]),
                one["first_offset"],
                one["end_offset"],
            )
            for one in facts["partitions"]
        ],
    )
    if facts["settings"]:
        print_table(("setting", "value"), facts["settings"].items())


def _numbers(values: list[int]) -> str:
    return ",".join(map(str, values))
