"""Ways to harm a history, each chosen and placed by a seed; each says what an audit has to name."""

import json
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.pipeline.histories.checksum import ContentChecksum, sync_and_sum
from tailrace.pipeline.histories.delta_log import commits, read_log
from tailrace.pipeline.histories.findings import Finding


class Harm(NamedTuple):
    kind: str  # of the finding that must be there
    file: str = ""  # that it must name
    offset: int = -1  # that it must name, where no file does

    def is_named_by(self, findings: Iterable[Finding]) -> bool:
        return any(
            one.kind == self.kind and (one.file == self.file if self.file else one.first <= self.offset <= one.last)
            for one in findings
        )


def some_file(folder: Path, dice: random.Random) -> str:
    """One that has several records."""
    return dice.choice(sorted(path for path, file in read_log(folder).live.items() if file.count > 2))


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


def swap_order_and_cover_up(folder: Path, dice: random.Random) -> Harm:
    """The same, and the log has the checksums of what is there now: only the offsets tell."""
    harm = swap_order(folder, dice)
    cover_up(folder, harm.file)
    return harm


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


def change_value_and_cover_up(folder: Path, dice: random.Random) -> Harm:
    """The same, and the log has the new file's size and checksum: only the records themselves tell."""
    harm = change_value(folder, dice)
    size, crc = sync_and_sum(folder / harm.file)
    tell(folder, harm.file, size=size, crc=crc)
    return harm


def change_a_sequence_and_cover_up(folder: Path, dice: random.Random) -> Harm:
    """A producer leaps over numbers, as if records of it had been lost before they got their offsets."""
    path = some_file(folder, dice)
    table = pq.read_table(folder / path, partitioning=None)
    producers, sequences = table.column("producerId").to_pylist(), table.column("sequence").to_pylist()
    producer = max(producers, key=lambda one: (one >= 0, producers.count(one)))
    place = len(producers) - 1 - producers[::-1].index(producer)
    sequences[place] += dice.randint(1_000, 1_000_000)
    number = table.schema.get_field_index("sequence")
    field = table.schema.field(number)
    pq.write_table(table.set_column(number, field, pa.array(sequences, field.type)), folder / path)
    cover_up(folder, path)
    return Harm("producer sequence", offset=table.column("offset")[place].as_py())


def forget_the_last_record(folder: Path, dice: random.Random) -> Harm:
    """A file without its tail, and a log that says that it was always so."""
    path = some_file(folder, dice)
    table = pq.read_table(folder / path, partitioning=None)
    last = table.column("offset")[-1].as_py()
    pq.write_table(table.slice(0, len(table) - 1), folder / path)
    cover_up(folder, path)
    return Harm("gap", offset=last)


def cover_up(folder: Path, path: str) -> None:
    """Let the log say that a file was always as it is now."""
    size, crc = sync_and_sum(folder / path)
    count = pq.read_metadata(folder / path).num_rows
    tell(folder, path, size=size, crc=crc, count=count, content=content_of(folder / path))


def tell(folder: Path, path: str, **changed: int) -> None:
    """Let the log say something else of a file."""
    for _, log in commits(folder):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        told = [line["commitInfo"].get("tailrace", {}) for line in lines if "commitInfo" in line]
        for one in (one for part in told for name in ("ranges", "merged") for one in part.get(name, ())):
            for file in one["files"]:
                file |= changed if file["path"] == path else {}
        log.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))


def content_of(path: Path) -> int:
    content = ContentChecksum()
    with pq.ParquetFile(path) as file:
        content.add(file.read())
    return content.value


def flip_bit(folder: Path, dice: random.Random) -> Harm:
    path = some_file(folder, dice)
    raw = bytearray((folder / path).read_bytes())
    raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    (folder / path).write_bytes(raw)
    return Harm("damaged file", path)


def lose_the_last_commit(folder: Path, dice: random.Random) -> Harm:
    """The log's tail is gone, and with it the files it named."""
    path = commits(folder)[-1][1]
    forget_files_of(folder, path)
    path.unlink()
    return Harm("missing commit", path.name)


def empty_the_last_commit(folder: Path, dice: random.Random) -> Harm:
    """The same, and its number is still taken: nothing seems to be missing."""
    path = commits(folder)[-1][1]
    forget_files_of(folder, path)
    path.write_bytes(b"")
    return Harm("damaged commit", path.name)


def truncate_a_commit(folder: Path, dice: random.Random) -> Harm:
    _, path = dice.choice(commits(folder))
    with path.open("r+b") as file:
        file.truncate(dice.randrange(path.stat().st_size - 1))  # without its last newline it would be whole
    return Harm("damaged commit", path.name)


def forget_files_of(folder: Path, commit: Path) -> None:
    for action in map(json.loads, commit.read_text().splitlines()):
        if "add" in action:
            (folder / action["add"]["path"]).unlink()


def repeat_a_commit(folder: Path, dice: random.Random) -> Harm:
    """One of an archive's: what it added is added again."""
    found = [path for _, path in commits(folder) if '"ranges": [{' in path.read_text()]
    path = dice.choice(found)
    shutil.copy(path, path.with_name(f"{commits(folder)[-1][0] + 1:020d}.json"))
    told = [json.loads(line).get("commitInfo", {}).get("tailrace", {}) for line in path.read_text().splitlines()]
    return Harm("duplicate", offset=next(one["start"] for part in told for one in part.get("ranges", ())))


def lose_a_commit(folder: Path, dice: random.Random) -> Harm:
    version, path = dice.choice(commits(folder)[1:-1])
    path.unlink()
    return Harm("missing commit", f"{version:020d}.json")


harms: list[Callable[[Path, random.Random], Harm]] = [
    delete, duplicate, truncate, swap_order, lose_the_last_commit, change_value_and_cover_up, flip_bit, change_value,
    forget_the_last_record, repeat_a_commit, lose_a_commit, empty_the_last_commit, truncate_a_commit,
    swap_order_and_cover_up, change_a_sequence_and_cover_up,
]  # fmt: skip
