"""The file `may-not-vote`: replicas here that may have lost records they had reported as durable.

Such a replica must not vote until it has fetched them again, because it could elect a leader without committed records.
It is stored before anything else is done to the replica, and survives restarts: a log that was deleted because it was
damaged looks to the next start like one that was always empty.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from tailrace.log.directory.state_file import read_state, write_state
from tailrace.model.ids import TopicPartition, parse_id, show_id
from tailrace.ports.disk import Disk, read_file, replace_file

KIND: Final = "may-not-vote"
VERSION: Final = 1


class MayNotVote:
    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._path = f"{folder}/{KIND}"
        self._keys: dict[TopicPartition, None] = {}
        self._stored: dict[TopicPartition, None] = {}
        self._storing = asyncio.Lock()

    def load(self) -> None:
        """Raises `Unreadable` if the file exists and cannot be parsed: the broker does not start then."""
        if self._disk.exists(self._path):
            self._keys = dict.fromkeys(map(_parse, read_state(KIND, VERSION, read_file(self._disk, self._path))))
            self._stored = self._keys.copy()

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._keys

    def add(self, key: TopicPartition) -> None:
        """Takes effect once `store` has returned."""
        self._keys[key] = None

    def remove(self, keys: Iterable[TopicPartition]) -> None:
        for key in keys:
            self._keys.pop(key, None)

    @property
    def is_stored(self) -> bool:
        return self._keys == self._stored

    async def store(self) -> None:
        async with self._storing:
            if not self.is_stored:
                keys = self._keys.copy()
                lines = (f"{show_id(key.topic_id)} {key.partition}" for key in keys)
                await replace_file(self._disk, self._path, write_state(KIND, VERSION, lines))
                self._stored = keys


def _parse(line: str) -> TopicPartition:
    topic_id, partition = line.split()
    return TopicPartition(parse_id(topic_id), int(partition))
