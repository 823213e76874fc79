"""`tailrace transaction …`: show transactions, and abort hanging ones."""

from typing import Annotated

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, access_of
from tailrace.cli.client.kafka_client import Json
from tailrace.cli.output import print_json, print_table, say, show_each
from tailrace.cli.transactions.facts import TransactionFacts, abort, facts_of, listed
from tailrace.cli.usage import Command

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show transactions, and abort hanging ones.",
    epilog="Example: tailrace transaction list --state Ongoing",
)

Names = Annotated[list[str], typer.Argument(metavar="ID", help="One or more transactional ids.")]


@commands.command("list", cls=Command)
def list_(
    state: Annotated[
        list[str] | None,
        typer.Option("--state", "-s", help="Only this state: Empty, Ongoing, CompleteCommit, …; may be repeated."),
    ] = None,
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """List transactional ids and their states.

    \b
    Examples:
      tailrace transaction list
      tailrace transaction list --bootstrap broker.example:9093 --client-config client.properties
      tailrace transaction list --state Ongoing --json | jq -r '.[].transaction'
    """
    found = listed(access_of(bootstrap, client_config), state or [])
    if json:
        print_json(found)
    else:
        print_table(("transaction", "state", "producer"), [tuple(one.values()) for one in found])


@commands.command(cls=Command)
def describe(names: Names, json: Json = False, bootstrap: Brokers = "", client_config: ClientConfig = "") -> None:
    """Show the producer, open time and partitions of transactions. With --json: one list of transactions.

    \b
    Examples:
      tailrace transaction describe payments-1
      tailrace transaction describe payments-1 --json | jq '.[0].partitions'
    """
    access = access_of(bootstrap, client_config)
    show_each(names, lambda name: facts_of(access, name), _show, json=json)


@commands.command("abort", cls=Command)
def abort_(names: Names, bootstrap: Brokers = "", client_config: ClientConfig = "") -> None:
    """Fence the producers of transactional ids, and abort their open transactions.

    \b
    Example:
      tailrace transaction abort payments-1
    """
    access = access_of(bootstrap, client_config)
    for name in names:
        before = abort(access, name)
        say(f"aborted {name}" if before == "Ongoing" else f"fenced {name}, which had no open transaction ({before})")


def _show(one: TransactionFacts) -> None:
    producer = f"producer {one['producer_id']} in epoch {one['producer_epoch']}"
    print(f"{one['transaction']}  {one['state']}, {producer}, coordinated by broker {one['coordinator']}")
    if one["open_ms"] is not None:
        print(
            f"open for {one['open_ms'] / 1000:.1f} s (timeout {one['timeout_ms'] / 1000:g} s), "
            f"partitions {' '.join(one['partitions'])}"
        )
