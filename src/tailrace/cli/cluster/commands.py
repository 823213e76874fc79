"""`tailrace cluster …`: several brokers on this machine; how any cluster is doing, and the raise after an upgrade."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, access_of
from tailrace.cli.client.kafka_client import Json
from tailrace.cli.usage import Command
from tailrace.local.places import BROKERS_DEFAULT, BROKERS_MAX, PORT_MAX

commands = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Run several brokers on this machine; show a cluster's state."
)


class Fsync(StrEnum):
    always = "always"
    interval = "interval"
    never = "never"


BasePort = Annotated[
    int | None,
    typer.Option(
        "--base-port",
        min=0,
        max=PORT_MAX,
        metavar="PORT",
        help="Clients at PORT, PORT+1, …, peers at PORT+100, …; 0: at free ports. Default: 9092 where that is free.",
    ),
]


def door_option(flag: str, title: str) -> Any:
    return typer.Option(
        flag, min=0, max=PORT_MAX, metavar="PORT", help=f"{title} at PORT of broker 1, PORT+1 of broker 2, …; 0: any."
    )


HttpPort = Annotated[int | None, door_option("--http-port", "HTTP clients")]
GrpcPort = Annotated[int | None, door_option("--grpc-port", "gRPC clients")]
DmqpPort = Annotated[int | None, door_option("--dmqp-port", "DMQP clients")]


@commands.command(cls=Command)
def up(
    brokers: Annotated[
        int | None,
        typer.Option(
            "--brokers", "-n", min=1, max=BROKERS_MAX, help=f"How many. Default: as DIR has, or {BROKERS_DEFAULT}."
        ),
    ] = None,
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIR", help="Their data, in DIR/broker-1 and so on; kept.")
    ] = Path("tailrace-cluster"),
    base_port: BasePort = None,
    fsync: Annotated[
        Fsync | None, typer.Option("--fsync", help="When bytes are forced to the disk. Default: always.")
    ] = None,
    http_port: HttpPort = None,
    grpc_port: GrpcPort = None,
    dmqp_port: DmqpPort = None,
) -> None:
    """Run a cluster on this machine until Ctrl-C.

    Standard output gets one line, "ready kafka=HOST:PORT,HOST:PORT,...", when all brokers have joined and the cluster
    has a controller; "http=…" and so on follow for other doors. Logs go to standard error. A broker that dies is
    reported and not started again.
    Brokers have the defaults of `tailrace serve`; variables such as TAILRACE_NUM_PARTITIONS set all of them, also
    those of TLS: docs/tls.md.

    \b
    Examples:
      tailrace cluster up
      tailrace cluster up --brokers 5 --data-dir /tmp/five --base-port 19092
      tailrace cluster up --fsync never 2>cluster.log
      tailrace cluster up --http-port 8001
    """
    from tailrace.cli.cluster.up import run_cluster

    doors = {"http_port": http_port, "grpc_port": grpc_port, "dmqp_port": dmqp_port}
    run_cluster(brokers, data_dir, base_port, {"fsync": fsync.value if fsync is not None else None, **doors})


@commands.command(cls=Command)
def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Once a second, until Ctrl-C.")] = False,
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Show the brokers of a cluster, and the partitions that are offline or under-replicated.

    \b
    Examples:
      tailrace cluster status
      tailrace cluster status --watch --bootstrap 127.0.0.1:19092
      tailrace cluster status --bootstrap broker.example:9093 --client-config client.properties
      tailrace cluster status --json | jq '.under_replicated | length'
    """
    from tailrace.cli.cluster.status import show_status

    show_status(access_of(bootstrap, client_config), watch=watch, as_json=json)


@commands.command(cls=Command)
def upgrade(
    yes: Annotated[
        bool, typer.Option("--yes", help="Raise the levels. Without this it is a dry run, which changes nothing.")
    ] = False,
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Raise the cluster's feature levels after every broker was restarted with a new release.

    Until then the cluster uses only what the older release knows, and brokers may go back to it. The dry run says
    which levels would be raised, or which brokers are not ready and why. A raise cannot be undone: brokers of
    earlier releases are refused from then on. docs/upgrading.md has the whole procedure.

    \b
    Examples:
      tailrace cluster upgrade
      tailrace cluster upgrade --yes --bootstrap 127.0.0.1:19092
    """
    from tailrace.cli.cluster.upgrade import run_upgrade

    run_upgrade(access_of(bootstrap, client_config), yes=yes, as_json=json)


@commands.command(cls=Command)
def health(
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Show when brokers, and producers and consumers of the HTTP queue, were last seen.

    The doors write these times every few seconds while they are used; before that there are none. What the HTTP
    door shows at /health is the same.

    \b
    Examples:
      tailrace cluster health
      tailrace cluster health --json | jq '.[] | select(.kind == "consumer")'
    """
    from tailrace.cli.cluster.health import show_health

    show_health(access_of(bootstrap, client_config), as_json=json)
