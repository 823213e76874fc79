"""Random valid values of declared messages, generated from the declarations; deterministic by seed.

Tags from 10,000 on are Tailrace's own, unknown to other implementations: they are generated only with `private=True`.
"""

import random
from typing import Any

from tailrace.model.ids import Id
from tailrace.wire.errors import Error
from tailrace.wire.messages import MESSAGES
from tailrace.wire.schema import Array, Field, Fixed, Kind, Sized, Struct, fields_of

every_message = [
    (cls, version)
    for pair in MESSAGES.values()
    for cls in (pair.request, pair.response)
    for version in range(pair.versions.first, pair.versions.last + 1)
]

BITS_BY_CODE = {"b": 8, "h": 16, "i": 32, "q": 64}
LETTERS = "abcz09._- äß€水𝄞\x00"
error_codes = list(Error)
PRIVATE_TAGS_FROM = 10_000


def name_of(parameter: object) -> str | None:
    """A class's name as the pytest id; None lets pytest choose the id."""
    return parameter.__name__ if isinstance(parameter, type) else None


def is_private(field: Field) -> bool:
    return field.tag is not None and field.tag >= PRIVATE_TAGS_FROM


messages_with_private_tags = [
    (cls, version) for cls, version in every_message if cls.__name__.startswith(("Fetch", "DescribeCluster"))
]


def sample(cls: type, version: int, seed: int, *, private: bool = False) -> Any:
    return _Sampling(random.Random(f"{cls.__name__} {version} {seed}"), version, private).struct(cls)


def samples(cls: type, version: int, count: int, *, private: bool = False) -> list[Any]:
    return [sample(cls, version, seed, private=private) for seed in range(count)]


class _Sampling:
    def __init__(self, chance: random.Random, version: int, private: bool) -> None:
        self._chance = chance
        self._version = version
        self._private = private

    def struct(self, cls: type) -> Any:
        present = [field for field in fields_of(cls) if self._version in field.versions]
        known = [field for field in present if self._private or not is_private(field)]
        sent = [field for field in known if field.tag is None or self._chance.random() < 0.5]
        return cls(**{field.name: self._field(field) for field in sent})

    def _field(self, field: Field) -> Any:
        if self._version in field.nullable and self._chance.random() < 0.25:
            return None
        if field.name.endswith("error_code"):
            return self._chance.choice(error_codes).value
        if field.name in (
            "log_append_time_ms",
            "retention_time_ms",
            "session_lifetime_ms",
        ):  # kio turns these into dates and durations
            return self._chance.choice([-1, self._chance.randrange(4 * 10**12)])
        if field.name == "transaction_start_time_ms":  # likewise, and kio rejects -1
            return self._chance.randrange(4 * 10**12)
        return self._value(field.kind)

    def _value(self, kind: Kind) -> Any:
        chance = self._chance
        match kind:
            case Fixed("?"):
                return chance.random() < 0.5
            case Fixed("16s"):
                return Id(chance.choice([bytes(16), chance.randbytes(16)]))
            case Fixed("H"):
                return chance.choice([0, 1, 2**16 - 1, chance.randrange(2**16)])
            case Fixed(code):
                return _integer(chance, BITS_BY_CODE[code])
            case Sized("text"):
                return "".join(chance.choices(LETTERS, k=chance.choice([0, 1, 5, 40, 200])))
            case Sized():
                return chance.randbytes(chance.choice([0, 1, 61, 127, 300]))
            case Array(element):
                count = chance.choice([0, 1, 3, 130] if isinstance(element, Fixed) else [0, 1, 1, 2, 3])
                return tuple(self._value(element) for _ in range(count))
            case Struct(declared):
                return self.struct(declared)


def _integer(chance: random.Random, bits: int) -> int:
    most: int = 2 ** (bits - 1)
    return chance.choice([0, 1, -1, 127, -128, most - 1, -most, chance.randrange(-most, most)])
