"""The last offset of each key, in little memory: 24 bytes a key and the slack of the buckets.

A `dict` takes 150 bytes a key. Here a key is a keyed BLAKE2b of 16 bytes, under a secret of the session, so nobody can
make two keys collide. The first two bytes of the digest choose a bucket, a bytearray of digests and offsets, which is
searched with `bytearray.find`: that takes less time than a loop in Python over an open-addressing table would. A digest
cannot be found at a place where none begins, as it would have to match 128 bits that do not depend on it.
"""

from collections.abc import Iterable
from hashlib import blake2b
from itertools import repeat
from struct import Struct
from typing import Final

DIGEST_BYTES: Final = 16
OFFSET_BYTES: Final = 8
KEY_BYTES: Final = 32  # a digest, an offset, and the slack of a bytearray
BUCKETS: Final = 1 << 16
_OFFSET: Final = Struct(">Q")
_read_offset: Final = _OFFSET.unpack_from
_write_offset: Final = _OFFSET.pack_into


class KeyMap:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._buckets: list[bytearray] = [bytearray() for _ in repeat(None, BUCKETS)]
        self.keys = 0

    def put(self, keys: list[bytes], offsets: Iterable[int]) -> list[int]:
        """Set the offset of each key, which rise; returns the offsets that are no longer the last of their key."""
        buckets, added = self._buckets, 0
        superseded: list[int] = []
        digests, places = self._digests(keys)
        for digest, bucket, offset in zip(digests, map(buckets.__getitem__, places), offsets, strict=True):
            at = bucket.find(digest) + DIGEST_BYTES
            if at < DIGEST_BYTES:
                bucket += digest + offset.to_bytes(OFFSET_BYTES)
                added += 1
            else:
                superseded += _read_offset(bucket, at)
                _write_offset(bucket, at, offset)
        self.keys += added
        return superseded

    def superseded(self, keys: list[bytes], offsets: Iterable[int]) -> list[int]:
        """Those of the offsets that are below the last offset of their key."""
        buckets, superseded = self._buckets, []
        digests, places = self._digests(keys)
        for digest, place, offset in zip(digests, places, offsets, strict=True):
            bucket = buckets[place]
            at = bucket.find(digest) + DIGEST_BYTES
            if at >= DIGEST_BYTES and int.from_bytes(bucket[at : at + OFFSET_BYTES]) > offset:
                superseded.append(offset)
        return superseded

    def _digests(self, keys: list[bytes]) -> tuple[list[bytes], list[int]]:
        secret = self._secret
        digests = [blake2b(secret + key, digest_size=DIGEST_BYTES).digest() for key in keys]
        return digests, memoryview(b"".join(digests)).cast("H")[:: DIGEST_BYTES // 2].tolist()
