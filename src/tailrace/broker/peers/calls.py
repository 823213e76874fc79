"""Questions under way on one connection. Each has a number, and answers may come in any order.

A call that waits for the controller's log does not hold up the others, unlike Kafka's requests: the lane is our own.
"""

import asyncio
from typing import Any, Final, NamedTuple

from tailrace.broker.peers.framing import read_answer, request_frame
from tailrace.broker.peers.unreachable import Unreachable
from tailrace.model.limits import PEER_CALLS_UNDER_WAY_MAX
from tailrace.wire.headers import RESPONSE_START
from tailrace.wire.messages.peers import PEER_MESSAGES
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration

IDS_END: Final = 2**31


class _Expected(NamedTuple):
    answer: type
    version: int  # of the request, and so of its answer
    done: "asyncio.Future[Any]"


class Calls:
    def __init__(self) -> None:
        self._expected: dict[int, _Expected] = {}
        self._last_id = 0
        self._silent_since: float | None = None  # when something was asked, or answered while more was due

    def ask(self, request: object, version: int, now: float) -> "tuple[int, bytearray, asyncio.Future[Any]]":
        """Its number, the frame to send, and what will be the answer."""
        if len(self._expected) >= PEER_CALLS_UNDER_WAY_MAX:
            raise Unreachable(f"{len(self._expected)} calls to it are under way already")
        self._last_id = number = (self._last_id + 1) % IDS_END
        frame = request_frame(request, version, number)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._expected[number] = _Expected(PEER_MESSAGES[declaration(type(request)).number].response, version, done)
        if self._silent_since is None:
            self._silent_since = now
        return number, frame, done

    def give_up(self, number: int) -> None:
        """Nobody waits for it any more; should an answer come, it is dropped."""
        self._expected.pop(number, None)

    def silent_for(self, now: float) -> float:
        """How long nothing was answered though something was asked."""
        return 0.0 if self._silent_since is None else now - self._silent_since

    def answered(self, frame: memoryview, now: float) -> None:
        """WireError if it is no answer."""
        if len(frame) < RESPONSE_START.size:
            raise WireError(f"an answer of {len(frame)} bytes")
        expected = self._expected.pop(RESPONSE_START.unpack_from(frame)[0], None)
        self._silent_since = now if self._expected else None
        if expected is None or expected.done.done():
            return  # it came too late
        try:
            _, answer = read_answer(bytes(frame), expected.answer, expected.version)
        except WireError as error:
            expected.done.set_exception(Unreachable(f"its answer cannot be read: {error}"))
            raise
        expected.done.set_result(answer)

    def fail(self, why: str) -> None:
        """No answer comes any more."""
        expected, self._expected = self._expected, {}
        self._silent_since = None
        for one in expected.values():
            if not one.done.done():
                one.done.set_exception(Unreachable(f"no answer: {why}"))
