"""One fetch session with one broker (KIP-227): each request names only the partitions that changed since the last.

The broker remembers the rest. It may forget a session at any time; then the next request is a full one.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tailrace.model.ids import PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse, ForgottenTopic, PartitionToFetch, TopicToFetch

NEW_SESSION: Final = 0
NO_SESSION: Final = 0
EPOCHS: Final = 2**31
SESSION_ERRORS: Final = (Error.FETCH_SESSION_ID_NOT_FOUND, Error.INVALID_FETCH_SESSION_EPOCH)


class Wanted(NamedTuple):
    """From where a partition is fetched."""

    offset: int
    leader_epoch: int
    max_bytes: int


class FetchSession:
    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = NEW_SESSION
        self._known: dict[PartitionName, Wanted | None] = {}  # of the session; None: it must be named again

    def request(
        self,
        wanted: Mapping[PartitionName, Wanted],
        *,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        committed: bool,
    ) -> FetchRequest:
        """A request for these partitions; from now on the session has them."""
        changed = {one: how for one, how in wanted.items() if self._known.get(one) != how}
        forgotten = [one for one in self._known if one not in wanted]
        self._known = dict(wanted)
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=int(committed),
            session_id=self._id,
            session_epoch=self._epoch,
            topics=tuple(_topics(changed)),
            forgotten_topics=tuple(
                ForgottenTopic(name=name, partitions=tuple(one.partition for one in ones))
                for name, ones in _by_topic(forgotten).items()
            ),
        )

    def accepts(self, response: FetchResponse) -> bool:
        """Take a response; False when the broker has lost the session: then the request must be sent again."""
        if response.error_code in SESSION_ERRORS:
            self.reset()
            return False
        if response.session_id == NO_SESSION:
            self.reset()  # the broker keeps no sessions, or has no room for one
        else:
            self._id = response.session_id
            self._epoch = self._epoch % (EPOCHS - 1) + 1
            for topic in response.topics:
                for one in topic.partitions:
                    if one.error_code or one.records:
                        self._known[PartitionName(topic.name, one.partition)] = None  # its offset will change
        return True

    def reset(self) -> None:
        """Begin a new session: after an error, or when a response was lost."""
        self._id, self._epoch, self._known = NO_SESSION, NEW_SESSION, {}


def _topics(wanted: Mapping[PartitionName, Wanted]) -> Iterable[TopicToFetch]:
    for name, ones in _by_topic(wanted).items():
        partitions = tuple(
            PartitionToFetch(
                partition=one.partition,
                current_leader_epoch=wanted[one].leader_epoch,
                fetch_offset=wanted[one].offset,
                partition_max_bytes=wanted[one].max_bytes,
            )
            for one in ones
        )
        yield TopicToFetch(name=name, partitions=partitions)


def _by_topic(partitions: Iterable[PartitionName]) -> dict[str, list[PartitionName]]:
    found: dict[str, list[PartitionName]] = {}
    for one in partitions:
        found.setdefault(one.topic, []).append(one)
    return found
