"""The unanswered calls of one connection. Each has a correlation id, and answers may arrive in any order.

Unlike Kafka's requests, which are answered in order, a call that waits for the controller's log delays no other call.
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

CORRELATION_IDS_END: Final = 2**31


class _Expected(NamedTuple):
    answer: type
    version: int  # of the request, and so of its answer
    done: "asyncio.Future[Any]"


class Calls:
    def __init__(self) -> None:
        self._expected: dict[int, _Expected] = {}
        self._last_id = 0
        self._silent_since: float | None = None  # the last answer, or the first call after all were answered

    def ask(self, request: object, version: int, now: float) -> "tuple[int, bytearray, asyncio.Future[Any]]":
        """The correlation id, the frame to send, and the future of the answer."""
        if len(self._expected) >= PEER_CALLS_UNDER_WAY_MAX:
            raise Unreachable(f"{len(self._expected)} calls to it are under way already")
        self._last_id = number = (self._last_id + 1) % CORRELATION_IDS_END
        frame = request_frame(request, version, number)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._expected[number] = _Expected(PEER_MESSAGES[declaration(type(request)).number].response, version, done)
        if self._silent_since is None:
            self._silent_since = now
        return number, frame, done

    def give_up(self, number: int) -> None:
        """The caller waits no longer; an answer that still arrives is dropped."""
        self._expected.pop(number, None)

    def silent_for(self, now: float) -> float:
        """For how long unanswered calls have waited without any answer arriving."""
        return 0.0 if self._silent_since is None else now - self._silent_since

    def answered(self, frame: memoryview, now: float) -> None:
        """Complete the call that `frame` answers; WireError if it is not an answer."""
        if len(frame) < RESPONSE_START.size:
            raise WireError(f"an answer of {len(frame)} bytes has no header")
        expected = self._expected.pop(RESPONSE_START.unpack_from(frame)[0], None)
        self._silent_since = now if self._expected else None
        if expected is None or expected.done.done():
            return  # the caller has given up
        try:
            _, answer = read_answer(bytes(frame), expected.answer, expected.version)
        except WireError as error:
            expected.done.set_exception(Unreachable(f"its answer cannot be read: {error}"))
            raise
        expected.done.set_result(answer)

    def fail(self, why: str) -> None:
        """Fail all unanswered calls: the connection is lost."""
        expected, self._expected = self._expected, {}
        self._silent_since = None
        for one in expected.values():
            if not one.done.done():
                one.done.set_exception(Unreachable(f"no answer: {why}"))
