"""Raft's messages as bytes: what goes in comes out, and nothing else comes out of bytes that are not such messages."""

import random
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.broker.peers.raft_codec import SUCCESSORS_MAX, pack, unpack
from tailrace.model.ids import BrokerId, Epoch, Id, Offset, TopicPartition
from tailrace.model.limits import RAFT_MESSAGES_PER_FRAME_MAX
from tailrace.raft.messages import (
    BeginEpoch,
    EndEpoch,
    EpochSeen,
    Message,
    Synced,
    VoteAnswer,
    VoteRefusal,
    VoteRequest,
)
from tailrace.raft.voters import Voter
from tailrace.wire.primitives import WireError
from tests.unit.broker.peers.stage import key, vote_request, voter

numbers = st.integers(0, 2**31 - 1)
ids = st.binary(min_size=16, max_size=16).map(Id)
epochs = st.integers(-1, 2**31 - 1).map(Epoch)
offsets = st.integers(0, 2**63 - 1).map(Offset)
voters = st.builds(Voter, numbers.map(BrokerId), ids)
keys = st.builds(TopicPartition, ids, numbers)


def messages_of(sender: Voter) -> st.SearchStrategy[Message]:
    head: Any = {"sender": st.just(sender), "to": voters, "epoch": epochs}
    log: Any = {"end": offsets, "last_epoch": epochs}
    leader = st.none() | voters
    durable = st.integers(-1, 2**63 - 1).map(Offset)
    return st.one_of(
        st.builds(VoteRequest, **head, **log, pre=st.booleans()),
        st.builds(VoteAnswer, **head, granted=st.booleans(), pre=st.booleans(), leader=leader),
        st.builds(BeginEpoch, **head),
        st.builds(EndEpoch, **head, successors=st.lists(voters, max_size=5).map(tuple)),
        st.builds(EpochSeen, **head, leader=leader),
        st.builds(Synced, peer=st.just(sender), to=voters, epoch=epochs, **log, durable=durable),
    )


frames = voters.flatmap(lambda sender: st.lists(st.tuples(keys, messages_of(sender)), min_size=1, max_size=8))


@given(frames)
def test_what_is_packed_is_unpacked(messages: list[tuple[TopicPartition, Message]]) -> None:
    assert unpack(memoryview(pack(messages))) == messages


@given(frames, st.data())
def test_no_other_length_is_a_frame(messages: list[tuple[TopicPartition, Message]], data: st.DataObject) -> None:
    packed = bytes(pack(messages))
    cut = data.draw(st.integers(0, len(packed) - 1))
    for broken in (packed[:cut], packed + b"\0"):
        with pytest.raises(WireError):
            unpack(memoryview(broken))


@given(frames, st.data())
def test_garbled_bytes_are_refused_or_are_another_frame(
    messages: list[tuple[TopicPartition, Message]], data: st.DataObject
) -> None:
    packed = pack(messages)
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = unpack(memoryview(packed))
    except WireError:
        return
    assert pack(found) == packed  # strict: no two texts for one meaning


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_are_a_frame(data: bytes) -> None:
    try:
        found = unpack(memoryview(data))
    except WireError:
        return
    assert pack(found) == data


def test_why_a_vote_was_refused_does_not_travel() -> None:
    answer = VoteAnswer(sender=voter(1), to=voter(2), epoch=Epoch(3), granted=False, why=VoteRefusal.VOTED)
    ((_, read),) = unpack(memoryview(pack([(key(1), answer)])))
    assert isinstance(read, VoteAnswer)
    assert (read.granted, read.why) == (False, None)


def test_a_frame_has_one_sender() -> None:
    packed = memoryview(pack([(key(1), vote_request(voter(1), 2, 3))]))
    assert unpack(packed, voter(1)) == unpack(packed)
    for other in (voter(3), voter(1, disk=9)):
        with pytest.raises(WireError, match="Raft messages of broker 1 from"):
            unpack(packed, other)
    with pytest.raises(AssertionError):
        pack([(key(1), vote_request(voter(1), 2, 3)), (key(1), vote_request(voter(3), 2, 3))])


@pytest.mark.parametrize("count", [0, -1, RAFT_MESSAGES_PER_FRAME_MAX + 1, 2**31 - 1])
def test_a_frame_has_so_many_messages_at_most(count: int) -> None:
    packed = pack([(key(1), vote_request(voter(1), 2, 3))])
    packed[20:24] = struct.pack(">i", count)
    with pytest.raises(WireError, match=f"{count} Raft messages in a frame"):
        unpack(memoryview(packed))


def test_the_largest_frames_fit() -> None:
    many = [(key(1), vote_request(voter(1), 2, epoch)) for epoch in range(RAFT_MESSAGES_PER_FRAME_MAX)]
    assert unpack(memoryview(pack(many))) == many
    successors = tuple(voter(number) for number in range(SUCCESSORS_MAX))
    ending = [(key(1), EndEpoch(sender=voter(1), to=voter(2), epoch=Epoch(1), successors=successors))]
    assert unpack(memoryview(pack(ending))) == ending


@pytest.mark.parametrize("at", [24 + 17, 24 + 21, 24 + 45])  # the partition, to whom, the end
def test_numbers_below_zero_are_refused(at: int) -> None:
    packed = pack([(key(1), vote_request(voter(1), 2, 3))])
    packed[at] = 0x80 | random.Random(at).randrange(128)
    with pytest.raises(WireError):
        unpack(memoryview(packed))


def test_flags_that_nobody_knows_are_refused() -> None:
    answer = VoteAnswer(sender=voter(1), to=voter(2), epoch=Epoch(3), granted=True)
    for message, at in ((answer, 24 + 45), (vote_request(voter(1), 2, 3), 24 + 57)):
        packed = pack([(key(1), message)])
        assert packed[at] == (message is answer)
        packed[at] = 4
        with pytest.raises(WireError):
            unpack(memoryview(packed))
