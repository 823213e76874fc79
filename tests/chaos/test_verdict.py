"""The judge of the storms is judged: each kind of broken promise, planted, is seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.testing.transaction_history import ReadRecord
from tests.chaos import verdict
from tests.chaos.exactly_once import miscounted
from tests.chaos.readers import Found
from tests.chaos.record_key import RecordKey
from tests.chaos.writers import SOMEWHERE

Row = tuple[int, int, int]  # offset, writer, number
kept: list[Row] = [(0, 0, 0), (1, 1, 0), (3, 0, 1), (4, 1, 1)]  # 2 is a control batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    number: int
    sent: Sequence[int]
    promised: Sequence[Sequence[int]]


def found(rows: list[Row]) -> list[Found]:
    one = Found()
    for offset, writer, number in rows:
        one.add(offset, RecordKey(writer, 0, number))
    return [one]


def writers(first: Sequence[int] = (0, 3), sent: int = 2) -> list[Writer]:
    return [
        Writer(number=0, sent=[sent], promised=[first]),
        Writer(number=1, sent=[2], promised=[(1, SOMEWHERE)]),
    ]


def test_kept_promises_are_not_complained_about() -> None:
    assert list(verdict.about_promises(writers(), found(kept))) == []
    assert list(verdict.about_what_was_seen(found(kept[:2]), found(kept))) == []


@pytest.mark.parametrize(
    ("promised", "rows", "complaint"),
    [
        (writers(), kept[:2] + kept[3:], "LOST: record 1 of writer 0, acknowledged at 3 of partition 0"),
        (writers(), kept[:3], "LOST: record 1 of writer 1, acknowledged at -1 of partition 0"),
        (writers(), [*kept, (5, 0, 1)], "partition 0, offset 5: record 1 of writer 0 comes again"),
        (writers(), [kept[2], kept[0], kept[1], kept[3]], "offset 3: record 1 of writer 0 comes too early"),
        (writers((0, 7)), kept, "MOVED: record 1 of writer 0 in partition 0: acknowledged at 7, found at 3"),
        (writers((0,)), kept, "writer 0 was promised 1 of 2 records in 0"),
        (writers((0,), sent=1), kept, "partition 0 holds 2 records of writer 0, who wrote fewer"),
    ],
)
def test_a_broken_promise_is_named(promised: list[Writer], rows: list[Row], complaint: str) -> None:
    assert complaint in "\n".join(verdict.about_promises(promised, found(rows)))


@pytest.mark.parametrize("later", [kept[:1], [kept[0], (1, 0, 1), *kept[2:]], [kept[0], (2, 1, 0), *kept[2:]]])
def test_what_was_seen_once_and_changed_is_named(later: list[Row]) -> None:
    (complaint,) = verdict.about_what_was_seen(found(kept), found(later))
    assert "seen (offset, writer, number) (1, 1, 0)" in complaint


def replicas(folder: Path, *values: tuple[bytes, ...]) -> list[Path]:
    """Data directories with one partition; each of the values is a batch of one record."""
    places = [folder / str(number) for number in range(len(values))]
    for place, batches in zip(places, values, strict=True):
        (place / "topic-0").mkdir(parents=True)
        data = [build_batch([NewRecord(value=one)], base_offset=at) for at, one in enumerate(batches)]
        (place / "topic-0" / "00000000000000000000.log").write_bytes(b"".join(data))
    return places


def test_replicas_that_differ_are_named(tmp_path: Path) -> None:
    same = replicas(tmp_path / "same", (b"a", b"b"), (b"a", b"b", b"c"))
    assert list(verdict.about_replicas(same, [2])) == []
    assert "ends at 2, before what was read" in "".join(verdict.about_replicas(same, [3]))
    other = replicas(tmp_path / "other", (b"a", b"b"), (b"a", b"x"))
    assert "the bytes of its replicas differ" in "".join(verdict.about_replicas(other, [2]))


def test_what_stands_other_than_once_in_an_output_is_named() -> None:
    sent = [("0", "a"), ("1", "b"), ("0", "c")]
    read = {"0": ["a/t1", "c/t1"], "1": ["b/t2"]}

    def wrong(**more: list[str]) -> list[str]:
        both = [*read.items(), *((name.removeprefix("p"), values) for name, values in more.items())]
        return miscounted(sent, [ReadRecord(name, 0, value) for name, values in both for value in values])

    assert wrong() == []
    assert wrong(p0=["a/t3"]) == ["('0', 'a') stands 2 times, and was sent 1 times"]
    assert wrong(p1=["z/t3"]) == ["('1', 'z') stands 1 times, and was sent 0 times"]
    assert wrong(p1=["a/t3"]) == ["('1', 'a') stands 1 times, and was sent 0 times"]
    del read["1"]
    assert wrong() == ["('1', 'b') stands 0 times, and was sent 1 times"]
