"""A queue in use: a sender and workers in threads, which note what was sent, delivered and accepted."""

import threading
import time
from collections import Counter
from typing import Final

from tailrace.client import BlockingQueue, QueueEmpty
from tailrace.client.faults import ClientError, NotAcknowledged
from tests.chaos.share_group_admin import change_group, unfinished

QUEUE: Final = "jobs"  # the topic, and the group
TAKE_S: Final = 0.5
SEND_EVERY_S: Final = 0.005
LOOK_S: Final = 0.1
ENDED_WITHIN_S: Final = 60.0


class QueueLoad:
    """The topic must exist. Begins at once."""

    def __init__(self, bootstrap: str, workers: int = 3) -> None:
        change_group(bootstrap, QUEUE, {"share.auto.offset.reset": "earliest"})
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
