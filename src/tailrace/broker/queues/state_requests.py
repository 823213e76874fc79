"""Calls of the share coordinator: what each does with its state machine, and how it travels between brokers."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.ids import NO_EPOCH, Id
from tailrace.queues.share_states import ShareTurn, StoredShares
from tailrace.queues.state import ANY_METADATA, DeliveryState, ShareKey, ShareState, StateBatch
from tailrace.wire.faults import error_of, fault_of
from tailrace.wire.messages.peers.call_share_coordinator import (
    ReadShareState,
    ShareStateBatch,
    ShareStateCall,
    ShareStateResult,
)

Outcome = ShareState | Fault | None


class CallKind(IntEnum):
    INITIALIZE = 0
    READ = 1
    WRITE = 2
    DELETE = 3
    SUMMARY = 4


class StateCall(NamedTuple):
    """One call; fields that its kind does not use have their defaults."""

    kind: CallKind
    key: ShareKey
    state_epoch: int = NO_EPOCH
    leader_epoch: int = NO_EPOCH
    start: int = -1
    complete_count: int = -1
    batches: Sequence[StateBatch] = ()
    metadata_end: int = ANY_METADATA

    def carry_out(self, machine: StoredShares, turn: ShareTurn) -> ShareState | None:
        key = self.key
        match self.kind:
            case CallKind.INITIALIZE:
                machine.initialize(key, self.state_epoch, self.start, self.metadata_end, turn)
            case CallKind.READ:
                return machine.read(key, self.leader_epoch, turn)
            case CallKind.WRITE:
                machine.write(
                    key, self.state_epoch, self.leader_epoch, self.start, self.complete_count, self.batches, turn
                )
            case CallKind.DELETE:
                machine.delete(key, turn)
            case CallKind.SUMMARY:
                return machine.summary(key)
        return None


def to_wire(call: StateCall) -> ShareStateCall:
    return ShareStateCall(
        kind=call.kind,
        group=call.key.group,
        topic_id=call.key.topic_id,
        partition=call.key.partition,
        state_epoch=call.state_epoch,
        leader_epoch=call.leader_epoch,
        start=call.start,
        complete_count=call.complete_count,
        batches=_batches_to_wire(call.batches),
        metadata_end=call.metadata_end,
    )


def from_wire(call: ShareStateCall) -> StateCall:
    """The call that another broker sent; `InvalidRequest` if it has an unknown kind or state."""
    try:
        return StateCall(
            CallKind(call.kind),
            ShareKey(call.group, Id(call.topic_id), call.partition),
            call.state_epoch,
            call.leader_epoch,
            call.start,
            call.complete_count,
            _batches_from_wire(call.batches),
            call.metadata_end,
        )
    except ValueError as error:
        raise InvalidRequest(f"call of the share coordinator for group {call.group}: {error}") from None


def to_result(outcome: Outcome) -> ShareStateResult:
    if isinstance(outcome, Fault):
        return ShareStateResult(error_code=error_of(outcome), error_message=str(outcome))
    if outcome is None:
        return ShareStateResult()
    state = ReadShareState(
        state_epoch=outcome.state_epoch,
        start=outcome.start,
        complete_count=outcome.complete_count,
        batches=_batches_to_wire(outcome.batches),
        metadata_end=outcome.metadata_end,
    )
    return ShareStateResult(state=state)


def from_result(result: ShareStateResult) -> Outcome:
    if result.error_code:
        return fault_of(result.error_code, result.error_message or "")
    if result.state is None:
        return None
    return ShareState(
        state_epoch=result.state.state_epoch,
        start=result.state.start,
        complete_count=result.state.complete_count,
        batches=tuple(_batches_from_wire(result.state.batches)),
        metadata_end=result.state.metadata_end,
    )


def _batches_to_wire(batches: Iterable[StateBatch]) -> tuple[ShareStateBatch, ...]:
    return tuple(
        ShareStateBatch(first=first, last=last, state=state, count=count, not_before=not_before)
        for first, last, state, count, not_before in batches
    )


def _batches_from_wire(batches: Iterable[ShareStateBatch]) -> list[StateBatch]:
    return [StateBatch(one.first, one.last, DeliveryState(one.state), one.count, one.not_before) for one in batches]
