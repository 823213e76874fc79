"""`tailrace pipeline init`: a project of declarative pipelines to begin with."""

from typing import Annotated, Final

import typer

from tailrace.cli.client.client_config import DEFAULT_BOOTSTRAP, Brokers
from tailrace.cli.output import say
from tailrace.cli.pipeline.spark import failing

RUN_AGAIN: Final = "spark-pipelines run --conf spark.sql.catalogImplementation=hive"


def init(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where to; not there yet, or empty.")],
    topic: Annotated[str, typer.Option("--topic", metavar="T", help="The topic to read.")] = "orders",
    into: Annotated[str, typer.Option("--into", metavar="U", help="The topic to write to.")] = "totals",
    bootstrap: Brokers = "",
) -> None:
    """Write a project that `spark-pipelines run` executes: topic, streaming table, materialized view, topic.

    \b
    Examples:
      tailrace pipeline init shop --topic orders --into totals
    """
    from tailrace.pipeline.declarative_project import init as write

    with failing():
        project = write(folder, bootstrap=bootstrap or DEFAULT_BOOTSTRAP, topic=topic, into=into)
    say(f'made {project}; it needs pip install "pyspark[pipelines]". To run it, as often as you like:')
    say(f"  cd {folder} && {RUN_AGAIN}")
