"""Tables of Spark's catalog lose their options, so they are refused, at once and with what keeps them."""

from collections.abc import Mapping
from typing import Final

from tailrace.pipeline.failure import PipelineFailed

TABLE_PREFIX: Final = "option."  # how Spark shows the options of CREATE TABLE to a source once, and never again
KEEP_THEM: Final = "CREATE TEMPORARY VIEW … USING tailrace OPTIONS (…) keeps them"


def refuse_tables(given: Mapping[str, str]) -> None:
    """Say at once what would be found out with the first read."""
    if any(name.startswith(TABLE_PREFIX) for name in given):
        raise PipelineFailed(f"Spark would drop the options of CREATE TABLE … OPTIONS (…). {KEEP_THEM}")
