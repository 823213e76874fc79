"""A member of a share group (KIP-932): a process of its own, which can be killed without a word.

It runs a program that is told `BOOTSTRAP TOPIC GROUP MODE` and takes calls. In the mode `implicit` a poll accepts what
the last one returned; in `explicit` every record is acknowledged; `single` is explicit, and a poll returns one record.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Self

from tests.interop.call_process import CallProcess
from tests.interop.client import DEADLINE_S

Mode = Literal["implicit", "explicit", "single"]
Outcome = Literal["accept", "release", "reject"]


class Delivery(NamedTuple):
    """A record as it was delivered; `times` is how often it was by now."""

    partition: int
    offset: int
    times: int
    value: str


class ShareMember:
    def __init__(self, client: str, command: Sequence[str], bootstrap: str, topic: str, group: str, mode: Mode) -> None:
        self._mode = mode
        self._process = CallProcess(f"{client} in share group {group}", [*command, bootstrap, topic, group, mode])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def poll(self, wait_s: float = 0.5) -> list[Delivery]:
        """What one poll returns."""
        found = self._process.ask("poll", wait_ms=int(wait_s * 1000))
        return sorted(Delivery(*one) for one in found)

    def take(self, within_s: float = 2 * DEADLINE_S) -> list[Delivery]:
        """What the first poll returns that returns anything."""
        until = time.monotonic() + within_s
        while not (found := self.poll()):
            assert time.monotonic() < until, f"no records in {within_s} s"
        return found

    def drain(self, count: int, within_s: float = 2 * DEADLINE_S) -> list[Delivery]:
        """So many, with as many polls as that takes; in the modes that are not implicit they are accepted here."""
        taken: list[Delivery] = []
        until = time.monotonic() + within_s
        while len(taken) < count:
            assert time.monotonic() < until, f"{len(taken)} of {count} records in {within_s} s"
            found = self.poll()
            if self._mode != "implicit":
                self.acknowledge(found)
            taken += found
        return sorted(taken)

    def acknowledge(self, delivered: Iterable[Delivery], outcome: Outcome = "accept") -> None:
        for one in delivered:
            self._process.ask("acknowledge", partition=one.partition, offset=one.offset, outcome=outcome)

    def renew(self, delivered: Iterable[Delivery]) -> None:
        """Lock records for longer; they can be acknowledged after that."""
        self._process.ask("renew", records=[(one.partition, one.offset) for one in delivered])

    def commit(self) -> None:
        """Returns when all acknowledgements are durable; raises `Refused` if the broker refused one."""
        self._process.ask("commit")

    def commit_later(self) -> None:
        self._process.ask("commit_later")

    def told(self) -> list[int]:
        """The error codes of the commits that the client has reported by now; 0: none."""
        return list(self._process.ask("told"))

    def leave(self) -> None:
        """Say goodbye, and end."""
        self._process.ask("leave")
        self.kill()

    def kill(self) -> None:
        self._process.kill()
