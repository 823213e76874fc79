"""Ways to harm a history, each chosen and placed by a seed; each says what an audit has to name."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from tailrace.pipeline.histories.delta_log import commits, read_log


class Harm(NamedTuple):
    kind: str  # of the finding that must be there
    file: str  # that it must name


def some_file(folder: Path, dice: random.Random) -> str:
    return dice.choice(sorted(read_log(folder).live))


def delete(folder: Path, dice: random.Random) -> Harm:
    path = some_file(folder, dice)
    (folder / path).unlink()
    return Harm("missing file", path)


def duplicate(folder: Path, dice: random.Random) -> Harm:
    path = Path(some_file(folder, dice))
    copy = path.with_name(f"copy-{path.name}")
    shutil.copy(folder / path, folder / copy)
    return Harm("stray file", str(copy))


def truncate(folder: Path, dice: random.Random) -> Harm:
    path = some_file(folder, dice)
    size = (folder / path).stat().st_size
    with (folder / path).open("r+b") as file:
        file.truncate(dice.randrange(size))
    return Harm("damaged file", path)


def swap_order(folder: Path, dice: random.Random) -> Harm:
    """The same records in another order, in a file that is sound Parquet."""
    path = some_file(folder, dice)
    table = pq.read_table(folder / path, partitioning=None)
    order = list(range(len(table)))
    place = dice.randrange(len(order) - 1)
    order[place], order[place + 1] = order[place + 1], order[place]
    pq.write_table(table.take(order), folder / path)
    return Harm("damaged file", path)


def change_value(folder: Path, dice: random.Random) -> Harm:
    """One bit of one value, in a file that is sound Parquet and has the same records otherwise."""
    path = some_file(folder, dice)
    table = pq.read_table(folder / path, partitioning=None)
    values = [bytearray(value) for value in table.column("value").to_pylist()]
    dice.choice(values)[0] ^= 1 << dice.randrange(8)
    number = table.schema.get_field_index("value")
    kind = table.schema.field("value")
    pq.write_table(table.set_column(number, kind, [[bytes(value) for value in values]]), folder / path)
    return Harm("damaged file", path)


def flip_bit(folder: Path, dice: random.Random) -> Harm:
    path = some_file(folder, dice)
    raw = bytearray((folder / path).read_bytes())
    raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    (folder / path).write_bytes(raw)
    return Harm("damaged file", path)


def lose_the_last_commit(folder: Path, dice: random.Random) -> Harm:
    """The log's tail is gone, and with it the files it named."""
    before = read_log(folder).live
    version, path = commits(folder)[-1]
    path.unlink()
    for name in sorted(before):
        if name not in read_log(folder).live:
            (folder / name).unlink()
    return Harm("missing commit", f"{version:020d}.json")


def lose_a_commit(folder: Path, dice: random.Random) -> Harm:
    version, path = dice.choice(commits(folder)[1:-1])
    path.unlink()
    return Harm("missing commit", f"{version:020d}.json")


harms: list[Callable[[Path, random.Random], Harm]] = [
    delete, duplicate, truncate, swap_order, change_value, flip_bit, lose_the_last_commit, lose_a_commit,
]  # fmt: skip
