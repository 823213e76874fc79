"""Times and durations as people write them in options: `15m`, `30s`, `500ms`."""

import re
from typing import Final

from tailrace.pipeline.failure import PipelineFailed

UNITS_MS: Final = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(name: str, text: str, default: int) -> int:
    """A duration in milliseconds; `default` when the option is not given."""
    if not text:
        return default
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if found is None or (found[2] or "ms") not in UNITS_MS:
        raise PipelineFailed(f"{name} = {text!r}: a duration is a number and one of {', '.join(UNITS_MS)}, as in 15m")
    return int(found[1]) * UNITS_MS[found[2] or "ms"]
