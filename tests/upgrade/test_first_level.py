"""What is written and sent at level 1 is what 0.1.0 reads, to the byte: its own code reads it."""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from tailrace.cluster.features import FIRST_LEVEL, LEVELS, message_version, record_version
from tailrace.cluster.records import RECORD_KINDS
from tailrace.wire.compile import encode
from tailrace.wire.messages.peers import HELLO_KEY, PEER_MESSAGES
from tailrace.wire.stored import encode_record
from tests.unit.wire.samples import sample
from tests.upgrade.releases import OLD_PROGRAM, run_old

SAMPLES = 20


def test_level_1_is_what_0_1_0_declares(declared: dict[str, dict[str, int]]) -> None:
    first = LEVELS[0]
    assert dict(first.messages) | {"PeerHello": 0} == declared["messages"]
    assert {str(key): version for key, version in first.forwarded.items()} == declared["forwarded"]
    unreadable = {kind: version for kind, version in first.records.items() if version > declared["records"][kind]}
    assert unreadable == {}
    metadata = [cls.__name__ for cls in RECORD_KINDS.values() if cls.__name__ in declared["records"]]
    assert metadata == [kind for kind in first.records if kind in metadata], "none is missing"


def test_0_1_0_reads_every_record_of_level_1(old_source: Path) -> None:
    values, lines = [], []
    for cls in RECORD_KINDS.values():
        if cls.__name__ in LEVELS[0].records:
            version = record_version(FIRST_LEVEL, cls.__name__)
            for seed in range(SAMPLES):
                values.append(sample(cls, version, seed))
                lines.append(f"record {encode_record(values[-1], version).hex()}")
    assert_read(old_source, values, lines)


def test_0_1_0_reads_every_peer_message_of_level_1(old_source: Path) -> None:
    values, lines = [], []
    for key, pair in PEER_MESSAGES.items():
        if pair.name in LEVELS[0].messages or key == HELLO_KEY:
            version = 0 if key == HELLO_KEY else message_version(FIRST_LEVEL, pair.name)
            for cls in (pair.request, pair.response):
                for seed in range(SAMPLES):
                    values.append(sample(cls, version, seed))
                    lines.append(f"{cls.__name__} {encode(values[-1], version).hex()}")
    assert_read(old_source, values, lines)


def assert_read(old_source: Path, values: list[Any], lines: list[str]) -> None:
    """Whatever 0.1.0 knows of each value it reads as it was written; it skips tagged fields that it does not know."""
    told = run_old(old_source, OLD_PROGRAM, "read", given="\n".join(lines)).splitlines()
    assert len(told) == len(values) > 100
    for value, line in zip(values, told, strict=True):
        old, new = json.loads(line), plain(value)
        assert old == {name: new[name] for name in old}, type(value).__name__


def plain(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    return [plain(one) for one in value] if isinstance(value, tuple) else value
