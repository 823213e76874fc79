"""`tailrace pipeline sink postgres`: topics into a table, by Spark; or the HTTP queue into its tables, without."""

from typing import Annotated

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, brokers, client_options
from tailrace.cli.failure import Misused
from tailrace.cli.output import progress, say
from tailrace.cli.pipeline.spark import Master, Verbose, failing, running, watching

DSN = Annotated[
    str,
    typer.Option(
        "--dsn", envvar="TAILRACE_POSTGRES", help="As libpq takes it. With --queue-tables: database d_queue by default."
    ),
]
QueueTables = Annotated[
    bool, typer.Option("--queue-tables", help="The tables of the HTTP queue instead: messages, producers, consumers, …")
]


def postgres(
    topics: Annotated[str, typer.Option("--topics", metavar="T[,T…]", help="Topics to write.")] = "",
    dsn: DSN = "",
    table: Annotated[str, typer.Option("--table", help="Made if it is not there.")] = "",
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", metavar="DIR", help="Where Spark notes how far it is.")
    ] = "",
    schema: Annotated[str, typer.Option("--schema", metavar="DDL", help="Fields of JSON values as columns.")] = "",
    queue_tables: QueueTables = False,
    available_now: Annotated[bool, typer.Option("--available-now", help="End with what is there now.")] = False,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.1, help="Look for more so often.")] = 10.0,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
    master: Master = "local[*]",
    verbose: Verbose = False,
) -> None:
    """Write topics into a PostgreSQL table, each record exactly once, until Ctrl-C.

    With --queue-tables, keep tables of the HTTP queue's messages, producers, consumers, topics and brokers up to date.
    That needs neither Spark nor --table nor --checkpoint: how far it is stands in the database.

    \b
    Examples:
      tailrace pipeline sink postgres --topics orders --dsn "host=db dbname=shop" --table orders --checkpoint ./orders
        --schema "customer string, total int"
      tailrace pipeline sink postgres --queue-tables --dsn "host=db user=queue"
    """
    if queue_tables:
        _demand_absent({"--table": table, "--checkpoint": checkpoint, "--schema": schema})
        _write_queue(bootstrap, client_config, topics=topics, dsn=dsn, available_now=available_now, every=every)
        return
    _demand_given({"--topics": topics, "--dsn": dsn, "--table": table, "--checkpoint": checkpoint})
    from tailrace.cli.pipeline_checks import check_postgres, check_spark

    options = client_options(client_config)
    cluster = brokers(bootstrap, options)
    with failing():
        check_spark(master)
        check_postgres(cluster, topics=topic_names(topics), dsn=dsn, checkpoint=checkpoint, options=options)
        with running(master, verbose=verbose) as spark, watching(spark, "writing"):
            from tailrace.pipeline.postgres.job import to_postgres

            to_postgres(
                spark, cluster, topics=topics, dsn=dsn, table=table, checkpoint=checkpoint, schema=schema,
                available_now=available_now, trigger_s=every, options=options,
            )  # fmt: skip


def _write_queue(
    bootstrap: str, client_config: str, *, topics: str, dsn: str, available_now: bool, every: float
) -> None:
    from tailrace.cli.pipeline_checks import check_queue_tables

    options = client_options(client_config)
    cluster = brokers(bootstrap, options)
    with failing():
        check_queue_tables(cluster, topics=topic_names(topics), dsn=dsn, options=options)
        from tailrace.pipeline.postgres.queue.job import queue_to_postgres

        with progress() as bar:
            task = bar.add_task("writing", total=None)
            written = queue_to_postgres(
                cluster, dsn=dsn, topics=topics, available_now=available_now, every_s=every, options=options,
                on_progress=lambda done, total: bar.update(task, completed=done, total=total), on_note=say,
            )  # fmt: skip
    say(f"wrote {written:,} messages")


def _demand_given(options: dict[str, str]) -> None:
    missing = [name for name, value in options.items() if not value]
    if missing:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise Misused(f"{', '.join(missing)} {are} missing: give {them}, or --queue-tables.")


def _demand_absent(options: dict[str, str]) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise Misused(f"{given[0]} does not go together with --queue-tables, whose tables have names of their own.")


def topic_names(topics: str) -> list[str]:
    """Of topics with commas between them."""
    return [name.strip() for name in topics.split(",") if name.strip()]
