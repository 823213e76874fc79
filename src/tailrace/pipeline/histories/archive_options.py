"""The options of an archive, checked before anything is read or written, and before Spark starts."""

from collections.abc import Mapping, Sequence
from typing import Final

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.option_names import Options, with_bootstrap
from tailrace.pipeline.source.options import ReadOptions, read_options

OWN_OPTIONS: Final = (
    "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger", "minPartitions", "maxRecordsPerPartition", "groupIdPrefix",
)  # fmt: skip


def archive_options(bootstrap: str, *, topics: Sequence[str], pattern: str, options: Mapping[str, str]) -> ReadOptions:
    """Which topics to read, from which brokers, and from which offsets."""
    if bool(topics) == bool(pattern):
        raise PipelineFailed("say what to archive: topics, or a pattern that their names match")
    what = {"subscribePattern": pattern} if pattern else {"subscribe": ",".join(topics)}
    # Reject other options of the source: they do not apply here.
    Options(with_bootstrap(bootstrap, options), OWN_OPTIONS)
    asked = read_options({**what, **with_bootstrap(bootstrap, options)}, "batch")
    if not asked.committed:
        raise PipelineFailed("kafka.isolation.level: an archive holds committed records, and no others")
    return asked
