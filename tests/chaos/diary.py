"""What happened when: kept in a file beside the data, and told to whoever watches the run."""

import logging
import time
from pathlib import Path
from typing import Final

logger: Final = logging.getLogger("chaos")


class Diary:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: dict[str, int] = {}
        self._began = time.monotonic()

    def note(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {time.monotonic() - self._began:8.3f} {text}"
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
        logger.info("%s", line)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8") if self.path.exists() else ""
