"""Tables in Spark's catalog lose their options, so they are rejected at once, with a hint to what keeps options."""

from collections.abc import Mapping
from typing import Final

from tailrace.pipeline.failure import PipelineFailed

TABLE_PREFIX: Final = "option."  # Spark passes CREATE TABLE options with this prefix once, then never
TEMPORARY_VIEW_HINT: Final = "CREATE TEMPORARY VIEW … USING tailrace OPTIONS (…) keeps them"


def refuse_tables(given: Mapping[str, str]) -> None:
    """Fail at CREATE TABLE rather than at the first read."""
    if any(name.startswith(TABLE_PREFIX) for name in given):
        raise PipelineFailed(f"Spark would drop the options of CREATE TABLE … OPTIONS (…). {TEMPORARY_VIEW_HINT}")
