"""Keys go to the partitions where Kafka's own clients put them."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from tailrace.pipeline.arrow.murmur2 import hashes, partitions_of


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20), st.integers(0, 3))
def test_hashes_are_those_of_other_clients(keys: list[bytes], skipped: int) -> None:
    array = pa.array([b"x" * skipped, *keys], pa.binary()).slice(1)
    assert hashes(array).tolist() == [murmur2(key) & 0xFFFFFFFF for key in keys]


def test_partitions_lie_within_the_topic() -> None:
    keys = pa.array([b"%d" % number for number in range(100)], pa.binary())
    assert partitions_of(keys, 7).tolist() == [(murmur2(b"%d" % n) & 0x7FFFFFFF) % 7 for n in range(100)]
