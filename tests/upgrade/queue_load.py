"""A queue in use: a sender and workers in threads, which note what was sent, delivered and accepted."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from tailrace.client import BlockingQueue, QueueEmpty
from tailrace.client.admin import change_group_settings
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.cluster import Cluster
from tailrace.client.faults import ClientError, NotAcknowledged
from tailrace.client.share_admin import share_group_offsets
from tailrace.model.addresses import parse_addresses
from tailrace.ports import system_ports

T = TypeVar("T")
QUEUE: Final = "jobs"  # the topic, and the group
TAKE_S: Final = 0.5
SEND_EVERY_S: Final = 0.005
LOOK_S: Final = 0.1
ENDED_WITHIN_S: Final = 60.0


def ask(bootstrap: str, work: Callable[[Cluster], Awaitable[T]]) -> T:
    async def run() -> T:
        ports = system_ports()
        cluster = Cluster(AsyncioDriver(ports.net, ports.clock, ports.random), parse_addresses(bootstrap))
        try:
            return await work(cluster)
        finally:
            cluster.close()

    return asyncio.run(run())


def change_group(bootstrap: str, group: str, **settings: str) -> None:
    """Settings of a group, with _ for each dot."""
    changes: dict[str, str | None] = {name.replace("_", "."): value for name, value in settings.items()}
    ask(bootstrap, lambda cluster: change_group_settings(cluster, group, changes))


def unfinished(bootstrap: str, group: str) -> int | None:
    """How many messages are not finished; None: not known at the moment."""
    lags = [one.lag for one in ask(bootstrap, lambda cluster: share_group_offsets(cluster, group)).values()]
    return None if not lags or None in lags else sum(lag for lag in lags if lag is not None)


class QueueLoad:
    """The topic must exist. Begins at once."""

    def __init__(self, bootstrap: str, workers: int = 3) -> None:
        change_group(bootstrap, QUEUE, share_auto_offset_reset="earliest")
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._sent_enough = threading.Event()
        self._drained = threading.Event()
        self.sent: set[bytes] = set()
        self.accepted: set[bytes] = set()
        self.doubtful: set[bytes] = set()  # accepted, and the broker's answer did not arrive
        self.deliveries: Counter[bytes] = Counter()
        self.complaints: list[str] = []
        self._workers = [threading.Thread(target=self._work, name=f"worker {one}") for one in range(workers)]
        self._sender = threading.Thread(target=self._send, name="sender")
        for thread in (self._sender, *self._workers):
            thread.start()

    def _send(self) -> None:
        number = 0
        with BlockingQueue(self._bootstrap, QUEUE) as queue:
            while not self._sent_enough.wait(SEND_EVERY_S):
                value = b"%d" % number
                number += 1
                try:
                    queue.send(value)
                except ClientError as error:
                    self.complaints.append(f"{value!r} was not sent: {error}")
                else:
                    self.sent.add(value)

    def _work(self) -> None:
        with BlockingQueue(self._bootstrap, QUEUE) as queue:
            while not self._drained.is_set():
                try:
                    self._take_one(queue)
                except QueueEmpty:
                    continue
                except ClientError as error:
                    self.complaints.append(f"a worker cannot go on: {error}")
                    return

    def _take_one(self, queue: BlockingQueue) -> None:
        value = b""
        try:
            with queue.take(TAKE_S) as message:
                value = message.value or b""
                with self._lock:
                    self.deliveries[value] += 1
                    if value in self.accepted:
                        self.complaints.append(f"{value!r} was accepted, and is delivered again")
        except NotAcknowledged:
            self.doubtful.add(value)
        else:
            with self._lock:
                self.accepted.add(value)

    def stop(self) -> None:
        """Send no more, wait until everything is finished, and end the workers."""
        self._sent_enough.set()
        self._sender.join(ENDED_WITHIN_S)
        deadline = time.monotonic() + ENDED_WITHIN_S
        while (left := unfinished(self._bootstrap, QUEUE)) != 0:
            if time.monotonic() > deadline:
                self.complaints.append(f"{left} messages are not finished")
                break
            time.sleep(LOOK_S)
        self._drained.set()
        for thread in self._workers:
            thread.join(ENDED_WITHIN_S)

    def broken_promises(self) -> list[str]:
        """After `stop`: what was lost, repeated or could not be done."""
        lost = self.sent - set(self.deliveries)
        unsettled = self.sent - self.accepted - self.doubtful
        complaints = [f"{len(lost)} messages were never delivered"] if lost else []
        if unsettled:
            complaints.append(f"{len(unsettled)} messages are finished, and no worker has accepted them")
        return self.complaints + complaints
