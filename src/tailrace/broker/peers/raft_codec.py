"""The encoding of Raft messages: one frame carries the messages of all partitions of one broker to another.

    sender      broker int32, directory 16 bytes: the same for all messages of a frame
    count       int32
    messages    kind uint8, topic id 16 bytes, partition int32, to (as sender), epoch int32, and then by kind:
        1 VoteRequest   end int64, last epoch int32, pre uint8
        2 VoteAnswer    flags uint8 (1: granted, 2: pre), leader (as sender; broker -1 and a zero directory: none)
        3 BeginEpoch
        4 EndEpoch      count uint8, successors (each as sender)
        5 EpochSeen     leader
        6 Synced        end int64, last epoch int32, durable int64

All fields have a fixed width, so one `struct` call reads a message. The reason text of a refused vote is not sent.
Fetches are not in here: they are sent as Kafka's Fetch. Bytes that do not match this layout exactly are a WireError.
"""

import struct
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Final

from tailrace.model.ids import NO_EPOCH, TopicPartition
from tailrace.model.limits import RAFT_MESSAGES_PER_FRAME_MAX
from tailrace.raft.messages import BeginEpoch, EndEpoch, EpochSeen, Message, Synced, VoteAnswer, VoteRequest
from tailrace.raft.voters import NO_VOTER, Voter
from tailrace.wire.primitives import WireError

Key = TopicPartition
Read = tuple[Key, Message, int]  # a message of a partition, and where the next begins

SUCCESSORS_MAX: Final = 255
GRANTED_FLAG: Final = 1
PRE_FLAG: Final = 2

_VOTER: Final = struct.Struct(">i16s")
_FRAME: Final = struct.Struct(">20si")
_PLAIN: Final = struct.Struct(">B16si20si")
_VOTE_REQUEST: Final = struct.Struct(">B16si20siqiB")
_VOTE_ANSWER: Final = struct.Struct(">B16si20siB20s")
_END_EPOCH: Final = struct.Struct(">B16si20siB")
_EPOCH_SEEN: Final = struct.Struct(">B16si20si20s")
_SYNCED: Final = struct.Struct(">B16si20siqiq")
_NO_VOTER_BYTES: Final = _VOTER.pack(*NO_VOTER)


def pack(messages: Sequence[tuple[Key, Message]]) -> bytearray:
    """The body of a RaftMessages frame: one or more messages of one sender."""
    assert 0 < len(messages) <= RAFT_MESSAGES_PER_FRAME_MAX, f"{len(messages)} messages in a frame"
    sender = _sender(messages[0][1])
    out = bytearray(_FRAME.pack(_VOTER.pack(*sender), len(messages)))
    seen: dict[Voter | None, bytes] = {None: _NO_VOTER_BYTES}
    for key, message in messages:
        assert _sender(message) == sender, f"{message} in a frame of {sender}"
        _WRITE[type(message)](out, seen, key, message)
    return out


def unpack(data: memoryview, sender: Voter | None = None) -> list[tuple[Key, Message]]:
    """The messages of a frame; WireError if `sender` is given and another sent them."""
    try:
        raw, count = _FRAME.unpack_from(data, 0)
        claimed = Voter(*_VOTER.unpack(raw))
        if sender is not None and claimed != sender:
            raise WireError(
                f"Raft messages of broker {claimed.broker} from broker {sender.broker}, or with another directory id"
            )
        if not 0 < count <= RAFT_MESSAGES_PER_FRAME_MAX:
            raise WireError(f"{count} Raft messages in a frame; allowed are 1 to {RAFT_MESSAGES_PER_FRAME_MAX}")
        return _Reader(data, claimed).read(_FRAME.size, count)
    except struct.error as error:
        raise WireError(f"Raft messages are truncated after {len(data)} bytes") from error


def _sender(message: Any) -> Voter:
    found: Voter = message.peer if type(message) is Synced else message.sender
    return found


# Writing

Seen = dict[Voter | None, bytes]


def _raw(seen: Seen, voter: Voter | None) -> bytes:
    raw = seen.get(voter)
    if raw is None:
        assert voter is not None
        raw = seen[voter] = _VOTER.pack(*voter)
    return raw


def _write_vote_request(out: bytearray, seen: Seen, key: Key, one: VoteRequest) -> None:
    to = _raw(seen, one.to)
    out += _VOTE_REQUEST.pack(1, key[0], key[1], to, one.epoch, one.end, one.last_epoch, one.pre)


def _write_vote_answer(out: bytearray, seen: Seen, key: Key, one: VoteAnswer) -> None:
    flags = GRANTED_FLAG * one.granted + PRE_FLAG * one.pre
    out += _VOTE_ANSWER.pack(2, key[0], key[1], _raw(seen, one.to), one.epoch, flags, _raw(seen, one.leader))


def _write_begin_epoch(out: bytearray, seen: Seen, key: Key, one: BeginEpoch) -> None:
    out += _PLAIN.pack(3, key[0], key[1], _raw(seen, one.to), one.epoch)


def _write_end_epoch(out: bytearray, seen: Seen, key: Key, one: EndEpoch) -> None:
    assert len(one.successors) <= SUCCESSORS_MAX, f"{len(one.successors)} successors"
    out += _END_EPOCH.pack(4, key[0], key[1], _raw(seen, one.to), one.epoch, len(one.successors))
    for voter in one.successors:
        out += _raw(seen, voter)


def _write_epoch_seen(out: bytearray, seen: Seen, key: Key, one: EpochSeen) -> None:
    out += _EPOCH_SEEN.pack(5, key[0], key[1], _raw(seen, one.to), one.epoch, _raw(seen, one.leader))


def _write_synced(out: bytearray, seen: Seen, key: Key, one: Synced) -> None:
    to = _raw(seen, one.to)
    out += _SYNCED.pack(6, key[0], key[1], to, one.epoch, one.end, one.last_epoch, one.durable)


_WRITE: Final = MappingProxyType[type, Callable[[bytearray, Seen, Key, Any], None]](
    {
        VoteRequest: _write_vote_request,
        VoteAnswer: _write_vote_answer,
        BeginEpoch: _write_begin_epoch,
        EndEpoch: _write_end_epoch,
        EpochSeen: _write_epoch_seen,
        Synced: _write_synced,
    }
)


# Reading


class _Reader:
    """Reads one frame. A voter that occurs several times becomes one object."""

    def __init__(self, data: memoryview, sender: Voter) -> None:
        self._data = data
        self._sender = sender
        self._seen: dict[bytes, Voter | None] = {_NO_VOTER_BYTES: None}

    def read(self, at: int, count: int) -> list[tuple[Key, Message]]:
        data, found = self._data, []
        by_kind = (None, self._vote_request, self._vote_answer, self._begin, self._end, self._epoch_seen, self._synced)
        for _ in range(count):
            kind = data[at] if at < len(data) else 0
            read = by_kind[kind] if kind < len(by_kind) else None
            if read is None:
                raise WireError(f"unknown kind of Raft message {kind} at byte {at} of {len(data)}")
            key, message, at = read(at)
            found.append((key, message))
        if at != len(data):
            raise WireError(f"{count} Raft messages are followed by {len(data) - at} trailing bytes")
        return found

    def _voter_or_none(self, raw: bytes) -> Voter | None:
        if raw in self._seen:
            return self._seen[raw]
        voter = self._seen[raw] = Voter(*_VOTER.unpack(raw))
        if voter.broker < 0:
            raise WireError(f"Raft messages name broker {voter.broker}")
        return voter

    def _voter(self, raw: bytes) -> Voter:
        voter = self._voter_or_none(raw)
        if voter is None:
            raise WireError("a Raft message without a receiver")
        return voter

    def _vote_request(self, at: int) -> Read:
        _, topic, partition, to, epoch, end, last_epoch, pre = _VOTE_REQUEST.unpack_from(self._data, at)
        _check(partition, epoch, end, last_epoch, pre <= 1)
        message = VoteRequest(
            sender=self._sender, to=self._voter(to), epoch=epoch, end=end, last_epoch=last_epoch, pre=pre == 1
        )
        return Key(topic, partition), message, at + _VOTE_REQUEST.size

    def _vote_answer(self, at: int) -> Read:
        _, topic, partition, to, epoch, flags, leader = _VOTE_ANSWER.unpack_from(self._data, at)
        _check(partition, epoch, 0, 0, flags <= GRANTED_FLAG | PRE_FLAG)
        message = VoteAnswer(
            sender=self._sender,
            to=self._voter(to),
            epoch=epoch,
            granted=flags & GRANTED_FLAG != 0,
            pre=flags & PRE_FLAG != 0,
            leader=self._voter_or_none(leader),
        )
        return Key(topic, partition), message, at + _VOTE_ANSWER.size

    def _begin(self, at: int) -> Read:
        _, topic, partition, to, epoch = _PLAIN.unpack_from(self._data, at)
        _check(partition, epoch)
        message = BeginEpoch(sender=self._sender, to=self._voter(to), epoch=epoch)
        return Key(topic, partition), message, at + _PLAIN.size

    def _end(self, at: int) -> Read:
        _, topic, partition, to, epoch, count = _END_EPOCH.unpack_from(self._data, at)
        _check(partition, epoch)
        at += _END_EPOCH.size
        after = at + count * _VOTER.size
        if after > len(self._data):
            raise WireError(f"{count} successors are truncated after {len(self._data)} bytes")
        successors = tuple(self._voter(bytes(self._data[one : one + _VOTER.size])) for one in range(at, after, 20))
        return (
            Key(topic, partition),
            EndEpoch(sender=self._sender, to=self._voter(to), epoch=epoch, successors=successors),
            after,
        )

    def _epoch_seen(self, at: int) -> Read:
        _, topic, partition, to, epoch, leader = _EPOCH_SEEN.unpack_from(self._data, at)
        _check(partition, epoch)
        message = EpochSeen(sender=self._sender, to=self._voter(to), epoch=epoch, leader=self._voter_or_none(leader))
        return Key(topic, partition), message, at + _EPOCH_SEEN.size

    def _synced(self, at: int) -> Read:
        _, topic, partition, to, epoch, end, last_epoch, durable = _SYNCED.unpack_from(self._data, at)
        _check(partition, epoch, end, last_epoch, durable >= -1)
        message = Synced(
            peer=self._sender, to=self._voter(to), epoch=epoch, end=end, last_epoch=last_epoch, durable=durable
        )
        return Key(topic, partition), message, at + _SYNCED.size


def _check(partition: int, epoch: int, end: int = 0, last_epoch: int = 0, valid: bool = True) -> None:
    if not valid or partition | end < 0 or epoch < NO_EPOCH or last_epoch < NO_EPOCH:
        raise WireError(f"a Raft message of partition {partition} in epoch {epoch} has fields out of range")
