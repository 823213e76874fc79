"""Spark's own Kafka source: the jars of its connector, and the Spark version they were built for.

A connector works only with the Spark of its own version. If Maven has none for the installed Spark, the newest
connector is used with a pyspark of that version, downloaded from PyPI once into the user's cache directory.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Final

from benchmarks.fetched import Missing
from benchmarks.jars import Artifact, jars
from benchmarks.pysparks import pyspark

NEWEST: Final = "4.2.0"  # the newest Spark that has a connector
# The token provider only provides delegation tokens; not every mirror has every version, and an older one works, too.
TOKENS: Final = "4.1.0-preview1"
LIBRARIES: Final[tuple[Artifact, ...]] = (
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    version: str
    jars: Path  # the folder
    pyspark: Path | None  # folder of the pyspark of that version; None: the installed one

    @property
    def settings(self) -> dict[str, str]:
        """The Spark settings of a session that uses the connector."""
        return {"spark.jars": ",".join(sorted(map(str, self.jars.glob("*.jar"))))}

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that uses the connector."""
        before = [str(self.pyspark)] if self.pyspark is not None else []
        given = os.environ.get("PYTHONPATH")
        return {**os.environ, "PYTHONPATH": os.pathsep.join(before + ([given] if given else []))}

    def __str__(self) -> str:
        if self.pyspark is None:
            return f"Spark {self.version} with its own kafka connector"
        return f"Spark {self.version}: Maven has no kafka connector for the installed {version_of('pyspark')}"


def connector() -> Connector:
    """The connector of the installed Spark, or the newest with its own Spark. `Missing` if neither is available."""
    installed = version_of("pyspark")
    reasons: list[str] = []
    for version in (installed, NEWEST):
        for folder in _folders(version, reasons):
            return Connector(version=version, jars=folder, pyspark=None if version == installed else pyspark(version))
    raise Missing("; ".join(reasons))


def _folders(version: str, reasons: list[str]) -> Iterator[Path]:
    for provider in (version, TOKENS):
        parts = (
            ("org.apache.spark", "spark-sql-kafka-0-10_2.13", version),
            ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", provider),
        )
        try:
            yield jars(f"spark-kafka-{version}-{provider}", (*parts, *LIBRARIES), alone=True)
        except Missing as missing:
            reasons.append(str(missing))
