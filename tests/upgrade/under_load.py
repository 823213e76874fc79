"""A cluster under load: all clients at once, that they get on, and what must be true when they have stopped."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tailrace.testing import Cluster
from tests.chaos import verdict
from tests.chaos.monkey import wait_for_progress
from tests.chaos.readers import Companion, complaints_of, read_back
from tests.chaos.storm import make_topic
from tests.chaos.writers import Writer
from tests.upgrade.load import GroupMember, Protocol, TransactionalWriter, Working, committed_offsets, keys_of

TOPIC: Final = "orders"
TRANSACTED: Final = "payments"
PARTITIONS: Final = 6
PER_SECOND: Final = 100.0  # records of each writer
SETTLED_WITHIN_S: Final = 90.0
LOOK_S: Final = 0.02
GROUPS: Final[dict[str, Protocol]] = {"classic-readers": "classic", "consumer-readers": "consumer"}


class Load:
    def __init__(self, cluster: Cluster, folder: Path, writers: int) -> None:
        bootstrap = cluster.bootstrap
        self._bootstrap = bootstrap
        self.writers = [
            Writer(number, bootstrap, TOPIC, PARTITIONS, per_second=PER_SECOND, folder=folder)
            for number in range(writers)
        ]
        self._companion = Companion(bootstrap, TOPIC, PARTITIONS)
        self._members = {
            group: [GroupMember(f"{group}-{number}", bootstrap, TOPIC, group, protocol) for number in (1, 2)]
            for group, protocol in GROUPS.items()
        }
        self._transactional = TransactionalWriter(bootstrap, TRANSACTED, PARTITIONS)
        self._settle()

    def _settle(self) -> None:
        """Wait until the members of both groups share the partitions: nothing changes that from then on."""
        for members in self._members.values():
            until(lambda: [one.assigned for one in members] == [PARTITIONS // 2] * 2, "a group is settled")  # noqa: B023
            for one in members:
                one.is_settled = True

    @property
    def _working(self) -> list[Working]:
        return [self._transactional, *(member for members in self._members.values() for member in members)]

    def get_on(self) -> None:
        """Wait until every writer and both groups have done something more; nobody may have complained by then."""
        wait_for_progress(self.writers, SETTLED_WITHIN_S)
        before = self._done()

        def did_more() -> bool:
            assert not self.complaints(), self.complaints()
            return all(count > before[name] for name, count in self._done().items())

        until(did_more, f"all do more than {before}", self._done)

    def _done(self) -> dict[str, int]:
        """How many transactions were committed, and how many records each group has read."""
        return {"transactions": len(self._transactional.committed[0]), **self._read()}

    def _read(self) -> dict[str, int]:
        return {group: sum(len(one.read) for one in members) for group, members in self._members.items()}

    def complaints(self) -> list[str]:
        writers = [complaint for writer in self.writers for complaint in writer.complaints]
        return writers + [complaint for one in self._working for complaint in one.complaints]

    def stop(self) -> None:
        """Let everybody read what was written, then end."""
        for writer in self.writers:
            writer.stop(SETTLED_WITHIN_S)
        wanted = sum(writer.acknowledged for writer in self.writers)
        until(lambda: min(self._read().values()) >= wanted or bool(self.complaints()), f"all read {wanted}", self._read)
        self._companion.stop()
        for one in self._working:
            one.stop()

    def broken_promises(self) -> list[str]:
        """After `stop`: what was lost, doubled, moved or missed."""
        again = read_back(self._bootstrap, TOPIC, PARTITIONS, SETTLED_WITHIN_S)
        ends, along = again.ends_read, self._companion.reader
        along.reach(ends, SETTLED_WITHIN_S)
        along.close()
        complaints = self.complaints() + complaints_of([again, along])
        complaints += verdict.first_few(verdict.about_promises(self.writers, again.found))
        complaints += verdict.first_few(verdict.about_what_was_seen(along.found, again.found))
        places = {(number, offset) for number, found in enumerate(again.found) for offset in found.offsets}
        for group, members in self._members.items():
            read = {place for member in members for place in member.read}
            if read != places:
                complaints.append(f"{group} missed {len(places - read)} records, and read {len(read - places)} others")
            if (committed := committed_offsets(self._bootstrap, TOPIC, group, PARTITIONS)) != ends:
                complaints.append(f"{group} has committed {committed}, the partitions end at {ends}")
        if keys_of(self._bootstrap, TRANSACTED, PARTITIONS) != self._transactional.committed:
            complaints.append(f"{TRANSACTED} does not hold what was committed, once and in its order, and nothing else")
        return complaints


def until(condition: Callable[[], bool], what: str, so_far: Callable[[], object] = str) -> None:
    deadline = time.monotonic() + SETTLED_WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {SETTLED_WITHIN_S:g} s: {what}; so far: {so_far()}"
        time.sleep(LOOK_S)


@contextmanager
def under_load(cluster: Cluster, folder: Path, writers: int = 2) -> Iterator[Load]:
    """Load while the block runs; when it ends well, every promise must have been kept."""
    for topic in (TOPIC, TRANSACTED):
        make_topic(cluster, topic, PARTITIONS)
    load = Load(cluster, folder, writers)
    try:
        load.get_on()
        yield load
        load.get_on()
    finally:
        load.stop()
    complaints = load.broken_promises()
    assert not complaints, "\n".join(["promises were broken:", *complaints])
