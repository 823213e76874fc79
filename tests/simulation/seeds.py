"""Seeds that once failed: kept in `seeds.txt`, with what they found, and replayed by every run of the tests.

Histories change when the code does, so an old seed does not tell the same story for ever; it is cheap to ask it again.
"""

from pathlib import Path

kept = Path(__file__).with_name("seeds.txt")
NOT_UNDERSTOOD = "not understood yet"


def kept_seeds(scenario: str) -> list[int]:
    rows = (line.split(maxsplit=2) for line in kept.read_text().splitlines() if line and not line.startswith("#"))
    return list(dict.fromkeys(int(row[1]) for row in rows if row[0] == scenario))


def keep(scenario: str, seed: int, what: str) -> None:
    """Write down a seed that failed, unless it is there already."""
    if seed not in kept_seeds(scenario):
        with kept.open("a") as file:
            file.write(f"{scenario:<12}{seed:<12}{NOT_UNDERSTOOD}: {what}\n")
