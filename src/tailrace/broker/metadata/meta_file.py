"""`meta.properties` of this broker: cluster id, broker id, directory id, peer port, and the voters of the metadata."""

import asyncio
from dataclasses import replace
from typing import Any

from tailrace.log.directory.meta import Meta, store_meta
from tailrace.model.ids import BrokerId
from tailrace.ports import Disk
from tailrace.raft.voters import Voter


class MetaFile:
    def __init__(self, disk: Disk, folder: str, meta: Meta) -> None:
        self._disk = disk
        self._folder = folder
        self._storing = asyncio.Lock()
        self.meta = meta

    @property
    def broker_id(self) -> BrokerId:
        return self.meta.broker_id

    @property
    def cluster_id(self) -> str:
        return self.meta.cluster_id

    @property
    def voter(self) -> Voter:
        """This broker as a voter; the same broker with another data directory is another voter."""
        return Voter(broker=self.meta.broker_id, directory=self.meta.directory_id)

    def change(self, **fields: Any) -> None:
        """Change fields in memory; `store` writes them."""
        self.meta = replace(self.meta, **fields)

    async def store(self) -> None:
        """Write the file; after an `OSError` it may be tried again."""
        async with self._storing:
            await store_meta(self._disk, self._folder, self.meta)
