"""The locks of queue messages that clients have taken over HTTP and not settled yet.

A lock belongs to the share session of a member, and that to a connection of this process: no other broker can accept
the message. So a lock names the broker whose door has it, and every other door sends the client there (307). If that
broker is gone, so is the lock: the leader has released the message, and it is delivered again. A door remembers
for as long as the lock lasted what a client decided, so that the decision may be repeated when its answer was lost.

    broker-partition-offset-delivery-nonce, as in 2-0-17-1-9f86d081884c7d659a2feaa0c55ad015

The nonce makes locks hard to guess. The values of messages are not kept, and the number of locks is bounded.
"""

import re
from typing import Final, NamedTuple

from tailrace.client.faults import NotAcknowledged
from tailrace.client.shares.message import Message, Outcome
from tailrace.client.taking import Taker
from tailrace.doors.http.rest.kinds import BUSY, LOCK_ENDED
from tailrace.doors.http.rest.problems import Problem
from tailrace.model.ids import BrokerId
from tailrace.model.limits import REST_LOCKS_MAX
from tailrace.ports import Ports

GATEWAY: Final = "g"  # instead of a broker's id
LOCK_PATTERN: Final = r"([0-9]{1,10}|g)-[0-9]{1,10}-[0-9]{1,19}-[0-9]{1,10}-[0-9a-f]{32}"
LOOK_EVERY_S: Final = 5.0  # for locks that have ended


class _Lock:
    __slots__ = ("ends_at", "message", "outcome", "taker")

    def __init__(self, taker: Taker, message: Message) -> None:
        self.taker = taker
        self.message = message
        self.outcome: Outcome | None = None  # what a client decided, durably
        self.ends_at = message.locked_until


class Elsewhere(NamedTuple):
    """The door of this broker has the lock."""

    broker: BrokerId


class Locks:
    def __init__(self, ports: Ports, broker: BrokerId | None) -> None:
        self._ports = ports
        self._here = GATEWAY if broker is None else str(broker)
        self._locks: dict[str, _Lock] = {}
        self._look_at = 0.0

    def __len__(self) -> int:
        return len(self._locks)

    def check_room(self, wanted: int) -> None:
        self._drop_ended()
        if len(self._locks) + wanted > REST_LOCKS_MAX:
            raise Problem(BUSY, f"{len(self._locks)} messages are taken and not settled; settle some of them first")

    def add(self, taker: Taker, message: Message) -> str:
        """The name of the lock. The content of the message is given up."""
        nonce = bytes(self._ports.random.new_id()).hex()
        place = f"{message.partition.partition}-{message.offset}-{message.delivery_count}"
        name = f"{self._here}-{place}-{nonce}"
        message.key = message.value = None
        message.headers = ()
        self._locks[name] = _Lock(taker, message)
        return name

    async def settle(self, topic: str, group: str, name: str, outcome: Outcome) -> Elsewhere | None:
        """Decide what becomes of a message; `Elsewhere` if another door must be asked."""
        lock = self._locks.get(name)
        if lock is None:
            return self._unknown(name)
        if lock.taker.topic != topic or lock.taker.group != group:
            raise Problem(LOCK_ENDED, f"{name} locks no message of queue {topic} for group {group}")
        if lock.outcome is not None:
            if lock.outcome is outcome:
                return None
            raise Problem(LOCK_ENDED, f"the message was settled before: {lock.outcome.name.lower()}")
        if self._now() >= lock.ends_at:
            raise _ended(name)
        taker = lock.taker
        decide = {Outcome.ACCEPT: taker.accept, Outcome.RELEASE: taker.release, Outcome.REJECT: taker.reject}[outcome]
        try:
            await decide(lock.message)
        except NotAcknowledged as error:
            if lock.outcome is not outcome:  # else the same request came twice at the same time
                self._locks.pop(name, None)
                raise Problem(LOCK_ENDED, f"{error}; the message may be delivered again") from None
        lock.outcome = outcome
        return None

    def _unknown(self, name: str) -> Elsewhere:
        found = re.fullmatch(LOCK_PATTERN, name)
        if found is None or found[1] == self._here or found[1] == GATEWAY:
            raise _ended(name)
        return Elsewhere(BrokerId(int(found[1])))

    def _now(self) -> float:
        return self._ports.clock.monotonic()

    def _drop_ended(self) -> None:
        now = self._now()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY_S
            self._locks = {name: one for name, one in self._locks.items() if one.ends_at > now}


def _ended(name: str) -> Problem:
    return Problem(LOCK_ENDED, f"the lock {name} has ended: the message was settled, or is delivered again")
