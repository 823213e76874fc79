"""`tailrace group …`: show consumer groups and their lag, reset their offsets, delete them."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, DEFAULT_BOOTSTRAP, Bootstrap, Json, admin, answer, asking
from tailrace.cli.failure import Failed
from tailrace.cli.groups.facts import GroupFacts, group_facts, words
from tailrace.cli.groups.reset import OffsetChange, ResetTarget, plan
from tailrace.cli.output import print_json, print_table, say, show_each
from tailrace.cli.usage import Command

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show consumer groups and their lag, reset their offsets, delete them.",
    epilog="Example: tailrace group describe billing",
)

Name = Annotated[str, typer.Argument(metavar="GROUP", help="Group id.")]
Names = Annotated[list[str], typer.Argument(metavar="GROUP", help="One or more group ids.")]


@commands.command("list", cls=Command)
def list_(json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """List groups, one per line.

    \b
    Examples:
      tailrace group list
      tailrace group list --json | jq -r '.[] | select(.state == "stable") | .group'
    """
    client = admin(bootstrap)
    with asking(bootstrap, "list groups"):
        found = client.list_consumer_groups(request_timeout=ANSWER_TIMEOUT_S).result(2 * ANSWER_TIMEOUT_S)
    if found.errors:
        raise Failed(f"cannot list groups: not every broker answered: {found.errors[0]}.")
    groups = sorted((one.group_id, one.type.name.lower(), words(one.state.name)) for one in found.valid)
    if json:
        print_json([{"group": name, "type": kind, "state": state} for name, kind, state in groups])
        return
    for name, *_ in groups:
        print(name)


@commands.command(cls=Command)
def describe(names: Names, json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Show the members, committed offsets and lag of groups. With --json: one list of groups.

    \b
    Examples:
      tailrace group describe billing
      tailrace group describe billing --json | jq '[.[0].offsets[].lag] | add'
    """
    client = admin(bootstrap)
    show_each(names, lambda name: group_facts(client, name, bootstrap), _show, json=json)


@commands.command("reset-offsets", cls=Command)
def reset_offsets(
    name: Name,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", help="Only this topic; may be repeated. Default: all with committed offsets."),
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first offset of each partition.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end of each partition.")] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", help="To this offset, or the nearest that exists.")
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option("--to-time", metavar="TIME", help="To 2026-03-01T12:00:00, local time unless it has a zone."),
    ] = None,
    back: Annotated[
        str | None, typer.Option("--back", metavar="DURATION", help="To the offsets of so long ago: 90m, 2h, 7d.")
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Commit the new offsets; without it they are only shown.")
    ] = False,
    json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Set the committed offsets of a group without members. Shows the changes; --execute makes them.

    \b
    Examples:
      tailrace group reset-offsets billing --back 2h
      tailrace group reset-offsets billing --topic orders --to-earliest --execute
    """
    client = admin(bootstrap)
    target = ResetTarget(to_earliest, to_latest, to_offset, to_time, back)
    changes = plan(client, name, topic or (), target, int(time.time() * 1000), bootstrap)
    if execute:
        _commit(client, name, changes, bootstrap)
    if json:
        print_json([change._asdict() for change in changes])
    else:
        rows = [(one.topic, one.partition, "-" if one.before is None else one.before, one.after) for one in changes]
        print_table(("topic", "partition", "before", "after"), rows)
    say(f"reset {name}" if execute else "nothing was changed; add --execute to commit these offsets")


@commands.command(cls=Command)
def delete(names: Names, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Delete groups without members, and their committed offsets.

    \b
    Example:
      tailrace group delete billing
    """
    client = admin(bootstrap)
    with asking(bootstrap, "delete groups"):
        answers = client.delete_consumer_groups(names, request_timeout=ANSWER_TIMEOUT_S)
    failures = []
    for name, future in answers.items():
        try:
            answer(future, bootstrap, f"delete group {name}")
            say(f"deleted {name}")
        except Failed as failure:
            hint = f"\n{_stop_members(name)}" if "NON_EMPTY_GROUP" in str(failure) else ""
            failures.append(f"{failure}{hint}")
    if failures:
        raise Failed("\n".join(failures))


def _commit(client: "AdminClient", group: str, changes: list[OffsetChange], bootstrap: str) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    what = f"reset group {group}"
    wanted = [TopicPartition(one.topic, one.partition, one.after) for one in changes]
    with asking(bootstrap, what):
        (future,) = client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=ANSWER_TIMEOUT_S
        ).values()
    for one in answer(future, bootstrap, what).topic_partitions:
        if one.error is not None:
            problem = f"{one.topic}-{one.partition}: {one.error.str()}"
            raise Failed(
                f"cannot {what}: {problem}.\nOnly members can commit while the group has any. {_stop_members(group)}"
            )


def _stop_members(group: str) -> str:
    return f"Stop its members first: `tailrace group describe {group}` lists them."


def _show(facts: GroupFacts) -> None:
    print(f"{facts['group']}  {facts['type']}, {facts['state']}, coordinated by broker {facts['coordinator']}")
    if facts["members"]:
        rows = [(one["member"], one["client"], one["host"], " ".join(one["partitions"])) for one in facts["members"]]
        print_table(("member", "client", "host", "partitions"), rows)
    if facts["offsets"]:
        columns = ("topic", "partition", "committed", "end", "lag", "owner")
        print_table(columns, [tuple("-" if one is None else one for one in row.values()) for row in facts["offsets"]])
