"""Random valid values of declared messages, made from the declarations themselves; one seed, one value."""

import random
from typing import Any

from tailrace.model.ids import Id
from tailrace.wire.errors import Error
from tailrace.wire.messages import messages
from tailrace.wire.schema import Array, Field, Fixed, Kind, Sized, Struct, fields_of

every_message = [
    (cls, version)
    for pair in messages.values()
    for cls in (pair.request, pair.response)
    for version in range(pair.versions.first, pair.versions.last + 1)
]

bits_by_code = {"b": 8, "h": 16, "i": 32, "q": 64}
letters = "abcz09._- äß€水𝄞\x00"
error_codes = list(Error)


def name_of(parameter: object) -> str | None:
    """How pytest shows a class among its parameters; the rest it shows well enough."""
    return parameter.__name__ if isinstance(parameter, type) else None


def sample(cls: type, version: int, seed: int) -> Any:
    return _struct(random.Random(f"{cls.__name__} {version} {seed}"), cls, version)


def samples(cls: type, version: int, count: int) -> list[Any]:
    return [sample(cls, version, seed) for seed in range(count)]


def _struct(chance: random.Random, cls: type, version: int) -> Any:
    present = [field for field in fields_of(cls) if version in field.versions]
    sent = [field for field in present if field.tag is None or chance.random() < 0.5]
    return cls(**{field.name: _field(chance, field, version) for field in sent})


def _field(chance: random.Random, field: Field, version: int) -> Any:
    if version in field.nullable and chance.random() < 0.25:
        return None
    if field.name.endswith("error_code"):
        return chance.choice(error_codes).value
    if field.name == "log_append_time_ms":  # the twin makes a date of it
        return chance.choice([-1, chance.randrange(4 * 10**12)])
    return _value(chance, field.kind, version)


def _value(chance: random.Random, kind: Kind, version: int) -> Any:
    match kind:
        case Fixed("?"):
            return chance.random() < 0.5
        case Fixed("16s"):
            return Id(chance.choice([bytes(16), chance.randbytes(16)]))
        case Fixed(code):
            return _integer(chance, bits_by_code[code])
        case Sized("text"):
            return "".join(chance.choices(letters, k=chance.choice([0, 1, 5, 40, 200])))
        case Sized():
            return chance.randbytes(chance.choice([0, 1, 61, 127, 300]))
        case Array(element):
            count = chance.choice([0, 1, 3, 130] if isinstance(element, Fixed) else [0, 1, 1, 2, 3])
            return tuple(_value(chance, element, version) for _ in range(count))
        case Struct(declared):
            return _struct(chance, declared, version)


def _integer(chance: random.Random, bits: int) -> int:
    most: int = 2 ** (bits - 1)
    return chance.choice([0, 1, -1, 127, -128, most - 1, -most, chance.randrange(-most, most)])
