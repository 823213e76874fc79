"""`tailrace log …`: inspect a data directory without a broker. Only `repair --yes` changes anything in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tailrace.cli.client.kafka_client import Json
from tailrace.cli.failure import Failed
from tailrace.cli.output import print_json, print_table, say
from tailrace.cli.usage import Command

if TYPE_CHECKING:
    from tailrace.cli.log.folders import PartitionFolder
    from tailrace.cli.log.rows import Row
    from tailrace.ports import Disk

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Inspect, verify and repair a data directory; no broker is needed.",
    epilog="Example: tailrace log verify --data-dir ./tailrace-data",
)

TABLE_ROWS_MAX: Final = 1000  # a table is laid out in memory; JSON is streamed
COLUMNS_IN_ORDER: Final = (
    "base_offset", "last_offset", "offset", "records", "bytes", "time", "key", "key_base64", "value", "value_base64",
    "compression", "kind", "epoch", "producer_id", "sequence", "headers", "file", "position", "problem",
)  # fmt: skip
NULLABLE_COLUMNS: Final = ("key", "value")
WIDE_COLUMNS: Final = ("epoch", "producer_id", "sequence", "headers", "kind", "compression")
TRANSACTIONAL_KINDS: Final = ("transactional", "commit", "abort")  # narrow tables, too, show the producer of these

What = Annotated[
    str | None,
    typer.Argument(metavar="WHAT", help="A topic, a partition folder or a data directory. Default: all partitions."),
]
DataDir = Annotated[
    str,
    typer.Option("--data-dir", "-d", envvar="TAILRACE_DATA_DIR", metavar="DIR", help="The broker's data directory."),
]
Partition = Annotated[int | None, typer.Option("--partition", "-p", min=0, help="Only this partition.")]


@commands.command(cls=Command)
def dump(
    what: What = None,
    data_dir: DataDir = "./tailrace-data",
    partition: Partition = None,
    records: Annotated[bool, typer.Option("--records", "-r", help="Show records instead of batches.")] = False,
    offset: Annotated[int, typer.Option("--offset", "-o", min=0, help="First offset to show.")] = 0,
    most: Annotated[int | None, typer.Option("--max", "-n", min=1, help="Most rows per partition.")] = None,
    wide: Annotated[bool, typer.Option("--wide", "-w", help="Show all columns, as --json does.")] = False,
    json: Json = False,
) -> None:
    """Show the batches, or with --records the records, of partitions.

    \b
    Examples:
      tailrace log dump orders
      tailrace log dump orders --partition 0 --records --offset 1200 --max 5
      tailrace log dump --data-dir /var/lib/tailrace --json | jq -c 'select(.problem)'
    """
    from tailrace.cli.log.rows import batch_rows, record_rows

    with _reading() as disk:
        for folder in _folders(disk, what, data_dir, partition):
            rows = record_rows(disk, folder, offset) if records else batch_rows(disk, folder, offset)
            if json:
                for row in islice(rows, most):
                    print_json(row)
            else:
                _show(folder, rows, most or TABLE_ROWS_MAX, wide=wide)


@commands.command(cls=Command)
def verify(
    what: What = None, data_dir: DataDir = "./tailrace-data", partition: Partition = None, json: Json = False
) -> None:
    """Check every batch: complete, valid checksum, offsets in order, readable records.

    The table counts the markers of ended transactions, and the transactions that are still open.

    Exit code 1 if there is any problem.

    After a crash the end of a partition may be a torn write: the broker truncates it at its next start.

    \b
    Examples:
      tailrace log verify
      tailrace log verify orders --partition 0 --json
    """
    from tailrace.log.directory.inspect import verify as verify_folder

    with _reading() as disk:
        found = _folders(disk, what, data_dir, partition)
        reports = [(folder, verify_folder(disk, folder.path)) for folder in found]
    problems = [problem for _, report in reports for problem in report.problems]
    if json:
        print_json(
            [{"topic": folder.topic, "partition": folder.key.partition} | asdict(report) for folder, report in reports]
        )
    else:
        columns = (
            "topic", "partition", "segments", "batches", "records", "markers", "open", "bytes", "start", "end", "state",
        )  # fmt: skip
        print_table(
            columns,
            [
                (
                    folder.topic, folder.key.partition, report.segments, report.batches, report.records, report.markers,
                    report.open, report.bytes, report.start, report.end,
                    f"{len(report.problems)} bad" if report.problems else "good",
                )
                for folder, report in reports
            ],
        )  # fmt: skip
        for problem in problems:
            print(problem)
    if problems:
        raise Failed(f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'} found.")


@commands.command(cls=Command)
def repair(
    what: What = None,
    data_dir: DataDir = "./tailrace-data",
    partition: Partition = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Repair. Without this it is a dry run, which changes nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Keep what is sound of a damaged partition that has one replica. The broker must be stopped.

    The dry run names what is lost: file, position and offsets. A repair copies each damaged file to the folder
    set-aside in the data directory, and leaves an empty batch in place of lost offsets: all others stay as they are.

    Partitions with several replicas are repaired by their broker while it runs. docs/damage.md says more.

    Exit code 1 if there is damage that was not repaired.

    \b
    Examples:
      tailrace log repair
      tailrace log repair orders --partition 0 --yes
    """
    from tailrace.cli.log.folders import data_dir_of
    from tailrace.cli.log.repair import run_repair
    from tailrace.ports import system_ports

    with _reading() as disk:
        directory = data_dir_of(disk, what, data_dir)
        run_repair(system_ports(), directory, _folders(disk, what, data_dir, partition), yes=yes, as_json=json)


def _show(folder: "PartitionFolder", rows: "Iterator[Row]", most: int, *, wide: bool) -> None:
    """A table of the columns that hold anything, in the order of `COLUMNS_IN_ORDER`."""
    shown = list(islice(rows, most))
    print(f"{folder.topic} partition {folder.key.partition}  {folder.path}")
    used = [name for name in COLUMNS_IN_ORDER if any(_holds(row, name) for row in shown)]
    hidden: tuple[str, ...] = () if wide else WIDE_COLUMNS
    if any(row.get("kind") in TRANSACTIONAL_KINDS for row in shown):
        hidden = tuple(name for name in hidden if name not in ("kind", "producer_id"))
    narrow = [name for name in used if name not in hidden]
    print_table([name.replace("_", " ") for name in narrow], [[_cell(row, name) for name in narrow] for row in shown])
    if next(rows, None) is not None:
        say(f"Only the first {most} rows are shown; --max, --offset or --json show more.")


def _holds(row: "Row", name: str) -> bool:
    return name in row and (name in NULLABLE_COLUMNS or row[name] not in (None, []))


def _cell(row: "Row", name: str) -> object:
    """An empty cell if the row lacks the column; "(null)" tells a null key or value from an empty one."""
    value = row.get(name)
    if value is None and name in row and name in NULLABLE_COLUMNS:
        return "(null)"
    return "" if value in (None, []) else value


@contextmanager
def _reading() -> "Iterator[Disk]":
    from tailrace.ports import system_ports

    try:
        yield system_ports().disk
    except BrokenPipeError:  # standard output was closed
        raise
    except OSError as error:
        raise Failed(f"cannot read {error.filename}: {error.strerror}.") from None


def _folders(disk: "Disk", what: str | None, data_dir: str, partition: int | None) -> "list[PartitionFolder]":
    from tailrace.cli.log.folders import partition_folders

    return partition_folders(disk, what, data_dir.rstrip("/"), partition)
