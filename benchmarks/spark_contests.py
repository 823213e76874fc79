"""The contests between our Spark source and archive and Spark's own, and their thresholds."""

from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.outcomes import Threshold
from benchmarks.spark_loads import Load

Kind = Literal["read", "archive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    kind: Kind
    what: str
    load: Load
    threshold: Threshold


def load(record_bytes: int, per_batch: int, batches: int) -> Load:
    name = f"{record_bytes}-by-{per_batch}"
    return Load(topic=name, record_bytes=record_bytes, per_batch=per_batch, batches=batches)


FASTER: Final = Threshold(of="ratio", at_least=1.5)
AS_FAST: Final = Threshold(of="ratio", at_least=1.0)
TWICE: Final = Threshold(of="ratio", at_least=2.0)
CONTESTS: Final = {
    "spark-100-b": Contest(kind="read", what="100 B, batches of 10,000", load=load(100, 10_000, 50), threshold=FASTER),
    "spark-1-kb": Contest(kind="read", what="1 KB, batches of 10,000", load=load(1000, 10_000, 10), threshold=FASTER),
    "spark-small-100-b": Contest(
        kind="read", what="100 B, batches of 10", load=load(100, 10, 10_000), threshold=AS_FAST
    ),
    "spark-small-1-kb": Contest(kind="read", what="1 KB, batches of 10", load=load(1000, 10, 5_000), threshold=AS_FAST),
    "spark-archive-100-b": Contest(kind="archive", what="100 B", load=load(100, 10_000, 50), threshold=TWICE),
    "spark-archive-1-kb": Contest(kind="archive", what="1 KB", load=load(1000, 10_000, 10), threshold=TWICE),
}
