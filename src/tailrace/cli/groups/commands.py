"""`tailrace group …`: show consumer groups and their lag, reset their offsets, delete them."""

import time
from typing import Annotated

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, access_of
from tailrace.cli.client.kafka_client import Json
from tailrace.cli.client.own_client import ask, connected, sentence
from tailrace.cli.failure import Failed
from tailrace.cli.groups.facts import GroupFacts, group_facts, words
from tailrace.cli.groups.reset import OffsetChange, ResetTarget, plan
from tailrace.cli.output import print_json, print_table, say, show_each
from tailrace.cli.usage import Command
from tailrace.client.cluster import Cluster
from tailrace.client.faults import Refused
from tailrace.client.group_admin import delete_groups, list_groups
from tailrace.client.offsets import commit_offsets
from tailrace.model.ids import PartitionName
from tailrace.wire.errors import Error

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show consumer groups and their lag, reset their offsets, delete them.",
    epilog="Example: tailrace group describe billing",
)

Name = Annotated[str, typer.Argument(metavar="GROUP", help="Group id.")]
Names = Annotated[list[str], typer.Argument(metavar="GROUP", help="One or more group ids.")]


@commands.command("list", cls=Command)
def list_(json: Json = False, bootstrap: Brokers = "", client_config: ClientConfig = "") -> None:
    """List groups, one per line.

    \b
    Examples:
      tailrace group list
      tailrace group list --bootstrap broker.example:9093 --client-config client.properties
      tailrace group list --json | jq -r '.[] | select(.state == "stable") | .group'
    """
    with connected(access_of(bootstrap, client_config)) as cluster:
        found = ask(list_groups(cluster))
    groups = [(one.group_id, one.group_type.lower() or "classic", words(one.group_state)) for one in found]
    if json:
        print_json([{"group": name, "type": kind, "state": state} for name, kind, state in groups])
        return
    for name, *_ in groups:
        print(name)


@commands.command(cls=Command)
def describe(names: Names, json: Json = False, bootstrap: Brokers = "", client_config: ClientConfig = "") -> None:
    """Show the members, committed offsets and lag of groups. With --json: one list of groups.

    \b
    Examples:
      tailrace group describe billing
      tailrace group describe billing --json | jq '[.[0].offsets[].lag] | add'
    """
    with connected(access_of(bootstrap, client_config)) as cluster:
        show_each(names, lambda name: ask(group_facts(cluster, name)), _show, json=json)


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
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Set the committed offsets of a group without members. Shows the changes; --execute makes them.

    \b
    Examples:
      tailrace group reset-offsets billing --back 2h
      tailrace group reset-offsets billing --topic orders --to-earliest --execute
    """
    target = ResetTarget(to_earliest, to_latest, to_offset, to_time, back)
    with connected(access_of(bootstrap, client_config)) as cluster:
        changes = ask(plan(cluster, name, topic or (), target, int(time.time() * 1000)))
        if execute:
            _commit(cluster, name, changes)
    if json:
        print_json([change._asdict() for change in changes])
    else:
        rows = [(one.topic, one.partition, "-" if one.before is None else one.before, one.after) for one in changes]
        print_table(("topic", "partition", "before", "after"), rows)
    say(f"reset {name}" if execute else "nothing was changed; add --execute to commit these offsets")


@commands.command(cls=Command)
def delete(names: Names, bootstrap: Brokers = "", client_config: ClientConfig = "") -> None:
    """Delete groups without members, and their committed offsets.

    \b
    Example:
      tailrace group delete billing
    """
    with connected(access_of(bootstrap, client_config)) as cluster:
        results = ask(delete_groups(cluster, names))
    failures = []
    for name, refused in results.items():
        if refused is None:
            say(f"deleted {name}")
        else:
            hint = f"\n{_stop_members(name)}" if refused.error is Error.NON_EMPTY_GROUP else ""
            failures.append(f"{sentence(refused)}{hint}")
    if failures:
        raise Failed("\n".join(failures))


def _commit(cluster: Cluster, group: str, changes: list[OffsetChange]) -> None:
    try:
        ask(commit_offsets(cluster, group, {PartitionName(one.topic, one.partition): one.after for one in changes}))
    except Refused as refused:
        raise Failed(
            f"{sentence(refused)}\nOnly members can commit while the group has any. {_stop_members(group)}"
        ) from None


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
