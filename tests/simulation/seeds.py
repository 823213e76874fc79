"""Seeds that once failed. They are kept in `seeds.txt` with what they found, and every run of the tests replays them.

A change of the code changes the history of a seed, so an old seed may no longer reach the bug that it found. Replaying
it is cheap all the same.
"""

from pathlib import Path

kept = Path(__file__).with_name("seeds.txt")
NOT_UNDERSTOOD = "not understood yet"


def kept_seeds(scenario: str) -> list[int]:
    rows = (line.split(maxsplit=2) for line in kept.read_text().splitlines() if line and not line.startswith("#"))
    return list(dict.fromkeys(int(row[1]) for row in rows if row[0] == scenario))


def keep(scenario: str, seed: int, what: str) -> None:
    """Add a seed that failed to the file, unless it is there already."""
    if seed not in kept_seeds(scenario):
        with kept.open("a") as file:
            file.write(f"{scenario:<12}{seed:<12}{NOT_UNDERSTOOD}: {what}\n")
