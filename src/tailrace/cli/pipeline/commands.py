"""`tailrace pipeline …`: topics into a history with Spark, and the proof that it is whole."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from tailrace.cli.client.client_config import Brokers, ClientConfig, brokers, client_options
from tailrace.cli.client.kafka_client import Json
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.output import print_json, print_table, progress, say
from tailrace.cli.pipeline.postgres_sink import postgres, topic_names
from tailrace.cli.pipeline.project import init
from tailrace.cli.pipeline.spark import Master, Verbose, failing, running, watching
from tailrace.cli.pipeline.upkeep import History, compact, vacuum
from tailrace.cli.usage import Command

if TYPE_CHECKING:
    from tailrace.pipeline.histories.findings import Audit

commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Archive, audit and replay topics with Spark.")

sinks = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Topics into other systems.")
commands.add_typer(sinks, name="sink")

WRONG_CODE: Final = 1

for elsewhere in (compact, init, vacuum):
    commands.command(cls=Command)(elsewhere)
sinks.command(cls=Command)(postgres)


@commands.command(cls=Command)
def archive(
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="The folder of the history.")],
    topics: Annotated[str, typer.Option("--topics", metavar="T[,T…]", help="Topics to archive.")] = "",
    pattern: Annotated[str, typer.Option("--pattern", metavar="REGEX", help="Or all whose name matches.")] = "",
    available_now: Annotated[bool, typer.Option("--available-now", help="End with what is there now.")] = False,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.1, help="Look for more so often.")] = 10.0,
    quarantine: Annotated[bool, typer.Option("--quarantine", help="Set damaged batches aside and go on.")] = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
    master: Master = "local[*]",
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Copy topics into a Delta-logged Parquet history, each record exactly once, until Ctrl-C.

    \b
    Examples:
      tailrace pipeline archive --topics orders --to ./history --available-now
      tailrace pipeline archive --pattern 'orders-.*' --to ./history --every 60
    """
    if bool(topics) == bool(pattern):
        raise Misused("say what to archive: --topics orders,bills or --pattern 'orders-.*'.")
    from tailrace.cli.pipeline_checks import check_archive, check_spark

    options = client_options(client_config)
    cluster, names = brokers(bootstrap, options), topic_names(topics)
    with failing():
        check_spark(master)
        check_archive(cluster, to, topics=names, pattern=pattern, options=options)
        with running(master, verbose=verbose) as spark, progress() as bar:
            from tailrace.pipeline.histories.archive import archive as run

            task = bar.add_task("archiving", total=None)
            done = run(
                spark, cluster, to, topics=names, pattern=pattern, available_now=available_now, trigger_s=every,
                options=options, quarantine=quarantine,
                on_batch=lambda ranges: bar.advance(task, sum(one.count for one in ranges)),
            )  # fmt: skip
    counted = {"records": done.records, "files": done.files, "bytes": done.bytes, "commits": done.batches}
    counted["quarantined"] = done.quarantined
    if json:
        print_json({**counted, "ends": {str(of): end for of, end in sorted(done.ends.items())}})
    else:
        say(f"archived {done.records:,} records in {done.files:,} files, {done.batches} commits, to {to}")
        if done.quarantined:
            say(f"{done.quarantined:,} offsets could not be read: see {to}/_tailrace/quarantine")


@commands.command(cls=Command)
def audit(
    history: History,
    bootstrap: Annotated[
        str, typer.Option("--bootstrap", "-b", metavar="HOST:PORT", help="Compare with the live log, too.")
    ] = "",
    client_config: ClientConfig = "",
    master: Master = "local[*]",
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Prove that a history is complete: every offset once, in order, unchanged, or with the reason why it is not there.

    Exit code 0: complete. 1: something is wrong. 2: it could not be told.

    \b
    Examples:
      tailrace pipeline audit ./history
      tailrace pipeline audit ./history --bootstrap 127.0.0.1:9092 --json
    """
    from tailrace.cli.pipeline_checks import check_audit, check_spark

    options = client_options(client_config)
    cluster = brokers(bootstrap, options, "")
    try:
        with failing():
            check_spark(master)
            check_audit(history, cluster, options)
            with running(master, verbose=verbose) as spark, watching(spark, "auditing"):
                from tailrace.pipeline.histories.audit import audit as run

                found = run(spark, history, bootstrap=cluster, options=options)
    except Failed as failed:
        raise Misused(f"cannot tell: {failed}") from None  # its exit code is the one for what cannot be told
    if json:
        print_json(found.to_dict())
    else:
        _show(found)
    raise typer.Exit(0 if found.is_complete else WRONG_CODE)


@commands.command(cls=Command)
def replay(
    history: History,
    topic: Annotated[str, typer.Option("--topic", metavar="T", help="Whose history.")],
    into: Annotated[str, typer.Option("--into", metavar="U", help="The topic to write to.")],
    where: Annotated[str, typer.Option("--where", metavar="SQL", help="Only records for which this holds.")] = "",
    start: Annotated[str, typer.Option("--from", metavar="TIME|OFFSET", help="Begin here.")] = "",
    end: Annotated[str, typer.Option("--to", metavar="TIME|OFFSET", help="End before this.")] = "",
    key: Annotated[str | None, typer.Option("--key", help="Only records of this key.")] = None,
    keep_partition: Annotated[bool, typer.Option("--keep-partition", help="Write to the same partition.")] = False,
    keep_timestamp: Annotated[bool, typer.Option("--keep-timestamp", help="Keep the records' time.")] = False,
    rate: Annotated[float, typer.Option("--rate", metavar="N", min=0.0, help="Records a second; 0: all speed.")] = 0.0,
    replay_id: Annotated[str, typer.Option("--id", help="A name for this replay, to run it once more.")] = "",
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
    master: Master = "local[*]",
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Write a history back into a topic, each record exactly once; interrupted, it goes on when it is run again.

    \b
    Examples:
      tailrace pipeline replay ./history --topic orders --into orders --keep-partition --keep-timestamp
      tailrace pipeline replay ./history --topic orders --into again --from 2026-11-16T08:00 --where "key = '42'"
    """
    from tailrace.cli.pipeline_checks import check_replay, check_spark

    options = client_options(client_config)
    cluster = brokers(bootstrap, options)
    with failing():
        check_spark(master)
        check_replay(
            history, cluster, topic=topic, into=into, where=where, start=start, end=end, rate=rate,
            keep_partition=keep_partition, options=options,
        )  # fmt: skip
        with running(master, verbose=verbose) as spark, watching(spark, "replaying"):
            from tailrace.pipeline.replaying.job import replay as run

            count = run(
                spark, history, cluster, topic=topic, into=into, where=where, start=start, end=end, key=key,
                keep_partition=keep_partition, keep_timestamp=keep_timestamp, per_second=rate, replay_id=replay_id,
                options=options,
            )  # fmt: skip
    if json:
        print_json({"records": count})
    else:
        say(f"wrote {count:,} records of {topic} into {into}")


@commands.command(cls=Command)
def analyze(
    history: History,
    report: Annotated[str, typer.Option("--report", metavar="FILE.html", help="Write a page with plots.")] = "",
    master: Master = "local[*]",
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Say what is in a history: throughput, sizes, partitions, keys, latency, dead letters.

    \b
    Examples:
      tailrace pipeline analyze ./history --report history.html
    """
    from tailrace.cli.pipeline_checks import check_analyze, check_spark

    with failing():
        check_spark(master)
        check_analyze(history, report)
        with running(master, verbose=verbose) as spark, watching(spark, "analyzing"):
            from tailrace.pipeline.analysis.job import analyze as run

            found = run(spark, history, report=report)
    for answer in found:
        if json:
            print_json({"title": answer.title, "rows": [list(map(str, row)) for row in answer.rows]})
        elif answer.rows:
            print_table(answer.columns, answer.rows, title=answer.title)


def _show(found: "Audit") -> None:
    print_table(
        ("topic", "partition", "start", "end", "records", "no record, and why"),
        [
            (one.topic, one.partition, one.start, one.end, one.records,
             ", ".join(f"{count} {reason}" for reason, count in sorted(one.explained.items())))
            for one in found.partitions
        ],
    )  # fmt: skip
    for finding in found.findings:
        print(finding)
    for note in found.notes:
        print(f"note: {note}")
    if found.is_complete:
        compared = f", {found.compared} ranges as the live log has them" if found.compared else ""
        print(f"complete: {found.records:,} records in {found.files:,} files{compared}")
    else:
        print(f"wrong: {len(found.findings)} findings")
