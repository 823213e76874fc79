"""The declared messages of peers: bytes and back, refused when garbled, and never offered to clients."""

import random

import pytest

from tailrace.wire.compile import decode, decode_whole, encode
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.peers import PEER_MESSAGES, RAFT_MESSAGES_KEY
from tailrace.wire.messages.peers.hello import PeerHelloAnswer
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration, fields_of
from tests.unit.wire.samples import name_of, sample

every_class = [cls for pair in PEER_MESSAGES.values() for cls in (pair.request, pair.response)]


def test_their_keys_are_their_own() -> None:
    assert min(PEER_MESSAGES) == 1000
    assert RAFT_MESSAGES_KEY not in PEER_MESSAGES
    assert max(MESSAGES) < 1000
    for pair in PEER_MESSAGES.values():
        assert declaration(pair.request) == declaration(pair.response)
        assert pair.response.__name__ == f"{pair.name}Answer"


@pytest.mark.parametrize("cls", [pair.response for pair in PEER_MESSAGES.values()], ids=name_of)
def test_any_answer_can_be_a_refusal(cls: type) -> None:
    hint = {} if cls is PeerHelloAnswer else {"controller": 3}
    refusal = cls(error_code=41, error_message="not me", **hint)
    assert decode_whole(cls, 0, encode(refusal, 0)) == refusal
    names = [field.name for field in fields_of(cls)]
    assert names[:2] == ["error_code", "error_message"]


@pytest.mark.parametrize("cls", every_class, ids=name_of)
def test_bytes_and_back(cls: type) -> None:
    for version in versions_of(cls):
        for seed in range(20):
            value = sample(cls, version, seed)
            assert decode_whole(cls, version, encode(value, version)) == value


@pytest.mark.parametrize("cls", every_class, ids=name_of)
def test_garbled_ones_are_read_or_refused(cls: type) -> None:
    chance = random.Random(cls.__name__)
    for version in versions_of(cls):
        data = encode(sample(cls, version, 0), version)
        for size in range(len(data)):
            with pytest.raises(WireError):
                decode(cls, version, data[:size])
        for _ in range(100):
            broken = bytearray(data)
            broken[chance.randrange(len(broken))] = chance.randrange(256)
            try:
                decode_whole(cls, version, broken)
            except WireError:
                continue


def versions_of(cls: type) -> range:
    versions = declaration(cls).versions
    return range(versions.first, versions.last + 1)
