"""Records per second of a Spark job; its result is verified by count and checksum outside the timing.

Two runs warm up, then three are timed. Entrants take turns, so that both see the same machine.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WARM_UPS: Final = 2
ROUNDS: Final = 3
Run = Callable[[int], object]  # its argument is the number of the run, for unique names


def verify(rows: "DataFrame", records: int, total: int) -> None:
    """Assert that the rows have the expected count and checksum: wrong results are not timed."""
    found = rows.selectExpr("count(*) as records", "sum(crc32(key)) + sum(crc32(value)) as total").first()
    assert found is not None
    assert (found.records, found.total) == (records, total), f"read {found.records} of {records} records, or wrong ones"


def drain(rows: "DataFrame") -> None:
    rows.write.format("noop").mode("overwrite").save()


def rates(records: int, entrants: Mapping[str, Run]) -> dict[str, tuple[float, ...]]:
    """Records per second of each entrant, one figure per round."""
    found: dict[str, list[float]] = {name: [] for name in entrants}
    for number in range(WARM_UPS + ROUNDS):
        for name, run in entrants.items():
            began = time.perf_counter()
            run(number)
            found[name].append(records / (time.perf_counter() - began))
    return {name: tuple(figures[WARM_UPS:]) for name, figures in found.items()}
