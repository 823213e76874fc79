"""`tailrace pipeline compact|vacuum`: keep a history in shape."""

from typing import Annotated

import typer

from tailrace.cli.client.kafka_client import Json
from tailrace.cli.output import print_json, print_table, progress, say
from tailrace.cli.pipeline.spark import Master, Verbose, failing, running

History = Annotated[str, typer.Argument(metavar="DIR", help="The folder of a history.")]


def compact(
    history: History,
    size: Annotated[int, typer.Option("--size", metavar="MIB", min=1, help="How large files may become.")] = 128,
    master: Master = "local[*]",
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Merge small files of a history into larger ones, checking every record before and after.

    The old files stay until `vacuum` removes them. An archive may go on meanwhile.

    \b
    Examples:
      tailrace pipeline compact ./history
    """
    from tailrace.cli.pipeline_checks import check_compact, check_spark
    from tailrace.model.limits import MiB

    with failing():
        check_spark(master)
        check_compact(history)
        with running(master, verbose=verbose) as spark, progress() as bar:
            from tailrace.pipeline.upkeep.compact import compact as run

            task = bar.add_task("compacting", total=None)
            done = run(
                spark,
                history,
                target_bytes=size * MiB,
                on_plan=lambda count: bar.update(task, total=count),
                on_merged=lambda count: bar.advance(task, count),
            )
    if json:
        print_json({"files_before": done.files_before, "files_after": done.files_after, "records": done.records})
    elif done.files_before:
        say(f"merged {done.files_before:,} files into {done.files_after:,}, with {done.records:,} records")
    else:
        say("nothing to compact")


def vacuum(
    history: History,
    older_than: Annotated[str, typer.Option("--older-than", metavar="TIME", help="Such as 12h or 30d.")] = "7d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    json: Json = False,
) -> None:
    """Remove files that a history no longer needs: replaced by a compaction, or left by a writer that died.

    \b
    Examples:
      tailrace pipeline vacuum ./history --dry-run
      tailrace pipeline vacuum ./history --older-than 30d
    """
    with failing():
        from tailrace.pipeline.durations import milliseconds
        from tailrace.pipeline.upkeep.vacuum import WEEK_MS
        from tailrace.pipeline.upkeep.vacuum import vacuum as run

        age_ms = milliseconds("--older-than", older_than, WEEK_MS)
        with progress(shown=not dry_run) as bar:
            task = bar.add_task("removing", total=None)
            done = run(
                history,
                older_than_ms=age_ms,
                dry_run=dry_run,
                on_plan=lambda count: bar.update(task, total=count),
                on_gone=lambda _: bar.advance(task),
            )
    gone = "would be removed" if dry_run else "removed"
    found = [(one.path, one.kind, one.size, gone if one in done.gone else "left") for one in done.gone + done.left]
    if json:
        names = ("path", "kind", "bytes", "what")
        print_json({"dry_run": dry_run, "files": [dict(zip(names, one, strict=True)) for one in found]})
        return
    if found:
        print_table(("file", "kind", "bytes", "what"), found)
    word = "would remove" if dry_run else "removed"
    say(f"{word} {len(done.gone):,} files of {done.bytes:,} bytes, left {len(done.left):,}")
    if done.archive_at_work:
        say("an archive is at work: only what a compaction has replaced was looked at")
