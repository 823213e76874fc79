"""How the client reaches the world: what a driver provides to the logic, which is written as coroutines.

The logic runs on an event loop (`asyncio_driver`) and without one (`blocking_driver`). The coroutines of a blocking
driver never wait, since its calls have blocked until they were done; `run_blocking` runs them to their end.
"""

from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Protocol, TypeVar

from tailrace.model.addresses import Address
from tailrace.ports import Clock, Random

T = TypeVar("T")


class Link(Protocol):
    """An open connection to one broker, whose versions are known and where the client is logged in."""

    @property
    def address(self) -> Address: ...

    @property
    def is_open(self) -> bool: ...

    def version(self, api_key: int) -> int:
        """The newest version of an API that both sides have; Unsupported if there is none."""
        ...

    async def call(self, request: object) -> Any:
        """Send a request and wait for its response; ConnectionLost when none can come any more."""
        ...

    def close(self) -> None: ...


class Driver(Protocol):
    def now(self) -> float:
        """Seconds of a clock that only goes forward."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        ...

    def jitter(self, low: float, high: float) -> float:
        """A random number between the two."""
        ...

    def new_id(self) -> bytes:
        """Sixteen random bytes."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """The result of some work; TimeoutError if it takes longer."""
        ...

    async def connect(self, address: Address) -> Link:
        """Open a connection. OSError if that fails and may succeed later; ClientError if it never will."""
        ...

    async def share(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """The result of work that several callers may want at once: it is done once for all of them."""
        ...


class PortsDriver:
    """What both drivers have in common: time and randomness, from the ports."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random

    def now(self) -> float:
        return self._clock.monotonic()

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def jitter(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def new_id(self) -> bytes:
        return self._random.new_id()


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of a blocking driver: it never waits, so its first step is its last."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError("a coroutine of a blocking driver waited for an event loop")
