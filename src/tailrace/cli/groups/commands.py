"""`tailrace group …`: show consumer groups and their lag, set them back, delete them."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, DEFAULT_BOOTSTRAP, Bootstrap, Json, admin, answer, asking
from tailrace.cli.failure import Failed, looked_up
from tailrace.cli.groups.facts import GroupFacts, group_facts, words
from tailrace.cli.groups.reset import Step, Wish, plan
from tailrace.cli.output import print_json, print_table, say
from tailrace.cli.usage import Command

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show, set back and delete consumer groups.")

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]
Names = Annotated[list[str], typer.Argument(metavar="GROUP", help="One or more.")]


@commands.command("list", cls=Command)
def list_(json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """List groups, one a line.

    \b
    Examples:
      tailrace group list
      tailrace group list --json | jq -r '.[] | select(.state == "stable") | .group'
    """
    client = admin(bootstrap)
    with asking(bootstrap, "list groups"):
        found = client.list_consumer_groups(request_timeout=ANSWER_TIMEOUT_S).result(2 * ANSWER_TIMEOUT_S)
    if found.errors:
        raise Failed(f"not all brokers said which groups they have: {found.errors[0]}.")
    groups = sorted((one.group_id, one.type.name.lower(), words(one.state.name)) for one in found.valid)
    if json:
        print_json([{"group": name, "type": kind, "state": state} for name, kind, state in groups])
        return
    for name, *_ in groups:
        print(name)


@commands.command(cls=Command)
def describe(names: Names, json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Show groups: their members, how far they have read, and how far they lag behind. JSON is a list.

    \b
    Examples:
      tailrace group describe billing
      tailrace group describe billing --json | jq '[.[0].offsets[].lag] | add'
    """
    client = admin(bootstrap)
    facts, missing = looked_up(names, lambda name: group_facts(client, name, bootstrap))
    if json and facts:
        print_json(facts)
    for one in [] if json else facts:
        _show(one)
    if missing is not None:
        raise missing


@commands.command("reset-offsets", cls=Command)
def reset_offsets(
    name: Name,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", "-t", help="Only these; else all that the group has read.")
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To what is there still.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end: only what comes.")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", help="Or to the nearest there is.")] = None,
    to_time: Annotated[str | None, typer.Option("--to-time", metavar="TIME", help="Local, or with a zone.")] = None,
    back: Annotated[str | None, typer.Option("--back", metavar="DURATION", help="So long ago: 90m, 2h, 7d.")] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without, it is only shown.")] = False,
    json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Let a group that nobody is in go on elsewhere. Shows what would change; --execute changes it.

    \b
    Examples:
      tailrace group reset-offsets billing --back 2h
      tailrace group reset-offsets billing --topic orders --to-earliest --execute
    """
    client = admin(bootstrap)
    wish = Wish(to_earliest, to_latest, to_offset, to_time, back)
    steps = plan(client, name, topic or (), wish, int(time.time() * 1000), bootstrap)
    if execute:
        _commit(client, name, steps, bootstrap)
    if json:
        print_json([step._asdict() for step in steps])
    else:
        rows = [(one.topic, one.partition, "-" if one.before is None else one.before, one.after) for one in steps]
        print_table(("topic", "partition", "before", "after"), rows)
    say(f"reset {name}" if execute else "nothing was changed; --execute does it")


@commands.command(cls=Command)
def delete(names: Names, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Forget groups that nobody is in, and how far they have read.

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


def _commit(client: "AdminClient", group: str, steps: list[Step], bootstrap: str) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    what = f"reset group {group}"
    wanted = [TopicPartition(one.topic, one.partition, one.after) for one in steps]
    with asking(bootstrap, what):
        (future,) = client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=ANSWER_TIMEOUT_S
        ).values()
    for one in answer(future, bootstrap, what).topic_partitions:
        if one.error is not None:
            problem = f"{one.topic}-{one.partition}: {one.error.str()}"
            raise Failed(f"cannot {what}: {problem}.\nWhile it has members only they can. {_stop_members(group)}")


def _stop_members(group: str) -> str:
    return f"Stop them first: `tailrace group describe {group}` shows who they are."


def _show(facts: GroupFacts) -> None:
    print(f"{facts['group']}  {facts['type']}, {facts['state']}, coordinated by broker {facts['coordinator']}")
    if facts["members"]:
        rows = [(one["member"], one["client"], one["host"], " ".join(one["partitions"])) for one in facts["members"]]
        print_table(("member", "client", "host", "partitions"), rows)
    if facts["offsets"]:
        columns = ("topic", "partition", "committed", "end", "lag", "owner")
        print_table(columns, [tuple("-" if one is None else one for one in row.values()) for row in facts["offsets"]])
