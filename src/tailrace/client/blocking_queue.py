"""A queue for programs without an event loop; see `queue`.

    with BlockingQueue("127.0.0.1:9092", "mails") as queue:
        queue.send(b"Dear Ann, …")
        with queue.take() as message:
            send_mail(message.value)

Requests and the renewal of locks run in a thread of its own, so locks are renewed while a handler blocks. Any number of
threads may use the same queue.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from tailrace.client.producer import Written
from tailrace.client.queue import Queue, QueueOptions, Reject
from tailrace.client.shares.message import Message, Outcome
from tailrace.ports.loop_thread import LoopThread
from tailrace.records.record import Headers


class BlockingQueue:
    def __init__(self, bootstrap: str, topic: str, options: QueueOptions = QueueOptions()) -> None:  # noqa: B008
        self._queue = Queue.connect(bootstrap, topic, options)
        self._thread = LoopThread(f"queue {topic}")

    @property
    def topic(self) -> str:
        return self._queue.topic

    @property
    def group(self) -> str:
        return self._queue.group

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Send what is left to send, release what was not processed, and leave the group."""
        try:
            self._thread.run(self._queue.close())
        finally:
            self._thread.close()

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Headers = (), partition: int | None = None
    ) -> Written:
        return self._thread.run(self._queue.send(value, key=key, headers=headers, partition=partition))

    @contextmanager
    def take(self, timeout_s: float | None = None) -> Iterator[Message]:
        message = self.receive(timeout_s)
        try:
            yield message
        except Reject:
            self._finish(message, Outcome.REJECT)
        except BaseException:
            self._thread.run(self._queue.release(message))
            raise
        else:
            self._finish(message, Outcome.ACCEPT)

    def _finish(self, message: Message, outcome: Outcome) -> None:
        if message.outcome is None:  # else the block has settled it by hand
            self.settle(message, outcome)

    def receive(self, timeout_s: float | None = None) -> Message:
        return self._thread.run(self._queue.receive(timeout_s))

    def settle(self, message: Message, outcome: Outcome) -> None:
        self._thread.run(self._queue.settle(message, outcome))
