"""Store damaged batches in a folder: the bytes as received, and next to them a report in JSON.

Files are named by topic, partition and first offset, so a task that runs again overwrites the same files.
"""

import json
from pathlib import Path
from uuid import uuid4

from tailrace.pipeline.kafka.damaged import Damaged


class Quarantine:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.found: list[Damaged] = []

    def __call__(self, found: Damaged) -> None:
        name = f"{found.partition.topic}-{found.partition.partition:05d}-{found.first:020d}"
        report = {
            "topic": found.partition.topic,
            "partition": found.partition.partition,
            "first": found.first,
            "last": found.last,
            "why": found.why,
            "bytes": len(found.data),
            "file": f"{name}.batch",
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write(f"{name}.batch", found.data)
        self._write(f"{name}.json", json.dumps(report, indent=2).encode() + b"\n")
        self.found.append(found)

    def _write(self, name: str, data: bytes) -> None:
        fresh = self._folder / f".{name}.{uuid4().hex}"
        fresh.write_bytes(data)
        fresh.replace(self._folder / name)
