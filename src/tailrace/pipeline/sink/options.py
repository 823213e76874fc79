"""The options of a write, checked before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.option_names import Options
from tailrace.records.compress import COMPRESSIONS, Compression

KNOWN: Final = ("topic", "exactlyOnce", "sinkId", "includeHeaders", "jobId")
DEFAULT_BATCH_BYTES: Final = 512 * 1024
LONGEST_TIMEOUT_MS: Final = 15 * 60 * 1000  # the longest transaction timeout that brokers allow by default


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    access: Access
    topic: str  # for all rows, overrides their topic column; empty: each row has to name its topic
    job_id: str  # identifies a batch write that may be rerun but must be written once; empty: each run is a new write
    sink_id: str  # identifies the sink for exactly-once; empty: at least once
    compression: Compression
    batch_bytes: int
    timeout_ms: int  # transaction timeout

    @property
    def exactly_once(self) -> bool:
        return bool(self.sink_id)


def write_options(given: Mapping[str, str]) -> WriteOptions:
    options = Options(given, KNOWN)
    exactly_once = options.flag("exactlyOnce", default=False)
    if exactly_once and not options.text("sinkId"):
        raise PipelineFailed(
            "exactlyOnce needs the option sinkId, a name that stays the same over restarts and that no other sink uses"
        )
    compression: Compression = "none"
    for name in COMPRESSIONS:
        if name == options.one_of("kafka.compression.type", COMPRESSIONS, "none"):
            compression = name
    return WriteOptions(
        access=options.access,
        topic=options.text("topic"),
        job_id=options.text("jobId"),
        sink_id=options.text("sinkId") if exactly_once else "",
        compression=compression,
        batch_bytes=options.number("kafka.batch.size") or DEFAULT_BATCH_BYTES,
        timeout_ms=options.number("kafka.transaction.timeout.ms") or LONGEST_TIMEOUT_MS,
    )
