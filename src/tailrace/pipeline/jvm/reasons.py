"""Why a query failed, in our own words: they stand somewhere in the middle of a page of Java's."""

import re
from typing import Final

from tailrace.pipeline.failure import PipelineFailed

_OURS: Final = re.compile(r"tailrace\.pipeline\.failure\.\w+: (.*)")
_THEIRS: Final = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception)): (.+)$", re.MULTILINE)


def is_sparks_own(error: BaseException) -> bool:
    """Whether Spark failed, and not one of our tasks or checks within it: then its log may say more."""
    is_of_spark = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
    return is_of_spark and not _OURS.search(str(error))


def reason(error: BaseException) -> str:
    """The sentence of the failure that is behind an exception of Spark's; else its own first line."""
    if isinstance(error, PipelineFailed):
        return str(error)
    text = str(error)
    found = _OURS.findall(text)
    if found:
        return str(found[-1])
    python = _THEIRS.findall(text)
    if python:
        return f"{python[-1][0]}: {python[-1][1]}"
    return text.strip().split("\n")[0].rstrip(";.") or type(error).__name__
