"""Which record is which: its key says who wrote it, for which partition, and as the how manyth there."""

from typing import NamedTuple


class RecordKey(NamedTuple):
    writer: int
    partition: int
    number: int  # from 0, of this writer in this partition

    def to_bytes(self) -> bytes:
        return b"%d:%d:%d" % self

    @classmethod
    def of(cls, key: bytes) -> "RecordKey":
        return cls(*map(int, key.split(b":")))

    def __str__(self) -> str:
        return f"record {self.number} of writer {self.writer} for partition {self.partition}"
