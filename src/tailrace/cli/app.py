"""The typer application: all commands except `serve`, which `main` runs without typer."""

from collections.abc import Sequence
from typing import Annotated

import typer

from tailrace import __version__
from tailrace.cli import doctor, settings, simulate
from tailrace.cli.bench.command import bench
from tailrace.cli.cluster import commands as cluster
from tailrace.cli.demo.command import demo
from tailrace.cli.doors.command import doors
from tailrace.cli.failure import Failed
from tailrace.cli.groups import commands as groups
from tailrace.cli.log import commands as log
from tailrace.cli.messages.consume import consume
from tailrace.cli.messages.produce import produce
from tailrace.cli.pipeline import commands as pipeline
from tailrace.cli.queues import commands as queues
from tailrace.cli.topics import commands as topics
from tailrace.cli.transactions import commands as transactions
from tailrace.cli.usage import Command

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Start with: tailrace demo",
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"tailrace {__version__}")
        raise typer.Exit


@app.callback()
def tailrace(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Tailrace: a distributed message queue that any Kafka client can use."""


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def serve(context: typer.Context) -> None:
    """Run one broker until Ctrl-C."""
    from tailrace.cli.serve.command import serve as run_serve

    raise typer.Exit(run_serve(context.args))


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def gateway(context: typer.Context) -> None:
    """Serve HTTP, gRPC or DMQP clients in front of any Kafka cluster."""
    from tailrace.cli.gateway.command import gateway as run_gateway

    raise typer.Exit(run_gateway(context.args))


app.command(cls=Command)(demo)
app.add_typer(cluster.commands, name="cluster")
app.add_typer(topics.commands, name="topic")
app.add_typer(groups.commands, name="group")
app.add_typer(queues.commands, name="queue")
app.add_typer(transactions.commands, name="transaction")
app.command(cls=Command)(produce)
app.command(cls=Command)(consume)
app.add_typer(log.commands, name="log")
app.add_typer(pipeline.commands, name="pipeline")
app.command(cls=Command)(doors)
app.command(cls=Command)(bench)
app.command(cls=Command)(simulate.simulate)
app.command(cls=Command)(settings.settings)
app.command(cls=Command)(doctor.doctor)


def run(words: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    try:
        app(words, prog_name="tailrace")
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # typer and rich turn it into exit code 1
            raise ended.__context__ from None
        return ended.code if isinstance(ended.code, int) else 0
    raise Failed(f"internal error: `tailrace {' '.join(words)}` returned without an exit code.")
