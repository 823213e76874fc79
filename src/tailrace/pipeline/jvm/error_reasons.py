"""Find Tailrace's own error message for a failed query in the middle of a page of Java output."""

import re
from typing import Final

from tailrace.pipeline.failure import PipelineFailed

_OURS: Final = re.compile(r"tailrace\.pipeline\.failure\.\w+: (.*)")
_THEIRS: Final = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception)): (.+)$", re.MULTILINE)


def is_spark_error(error: BaseException) -> bool:
    """Whether Spark itself failed, not a Tailrace task or check running in Spark: then Spark's log may say more."""
    is_of_spark = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
    return is_of_spark and not _OURS.search(str(error))


def reason(error: BaseException) -> str:
    """The message of the failure that caused a Spark exception, or else the first line of the exception's text."""
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
