"""Spark looks for top-level modules named `pyspark_…`, and takes the `DefaultSource` of each: so it finds ours.

Whatever fails here would hide the sources of all others too, so nothing is imported before it is asked for.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "DefaultSource":
        raise AttributeError(name)
    from tailrace.pipeline.data_source import TailraceSource

    return TailraceSource
