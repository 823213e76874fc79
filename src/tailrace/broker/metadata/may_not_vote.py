"""Which replicas here may not vote: they may have lost what they had vouched for, and have not got it back yet.

It is written down before anything else happens to such a replica, and stays so over restarts: a log that was thrown
away because it was damaged looks, to the next start, like an honest empty one.
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
        """`Unreadable` when the file is there and makes no sense: better not to start."""
        if self._disk.exists(self._path):
            self._keys = dict.fromkeys(map(_parse, read_state(KIND, VERSION, read_file(self._disk, self._path))))
            self._stored = self._keys.copy()

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._keys

    def add(self, key: TopicPartition) -> None:
        """It counts once `store` has returned."""
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
