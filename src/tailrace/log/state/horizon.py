"""The tombstone horizon of a log, kept in the file `horizon` (ADR 0025).

    tailrace horizon 1
    1200
    crc32c …

Two things are true of the horizon H of a replica:

- compaction here may remove tombstones and transaction markers below H, and no others;
- a replica that lacks a removed tombstone or marker at offset t has H > t, however it came to lack it.

So H is durable before it is used: before a pass removes what is below it, and before a follower appends batches of a
leader that may have removed what is below it. It never falls, except together with the whole log: an empty log lacks
nothing. Without a file H is 0. An unreadable file is damage, as what the log lacks is unknown then.
"""

from typing import TYPE_CHECKING, Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import HORIZON_NAME
from tailrace.log.recovery.recovered import Damage
from tailrace.log.writing import write_fault
from tailrace.ports.disk import Disk, make_lasting_dir, read_file, replace_file

if TYPE_CHECKING:
    from tailrace.log.log import Log

VERSION: Final = 1


def load(disk: Disk, folder: str) -> int:
    """Raises `Unreadable` when the file is torn or altered."""
    path = f"{folder}/{HORIZON_NAME}"
    if not disk.exists(path):
        return 0
    try:
        (line,) = read_state(HORIZON_NAME, VERSION, read_file(disk, path))
        return int(line)
    except ValueError as error:
        raise Unreadable(f"{HORIZON_NAME}: {error}") from error


def load_into(log: "Log") -> None:
    try:
        log.horizon = load(log.ports.disk, log.folder)
    except (OSError, Unreadable) as error:
        if log.damage is None:
            file = f"{log.folder}/{HORIZON_NAME}"
            log.damage = Damage(file=file, position=0, offset=log.start, reason=str(error))
            log.refuse_if_damaged()


async def store(log: "Log", offset: int) -> None:
    try:
        await make_lasting_dir(log.ports.disk, log.folder)
        data = write_state(HORIZON_NAME, VERSION, [str(offset)])
        await replace_file(log.ports.disk, f"{log.folder}/{HORIZON_NAME}", data)
    except OSError as error:
        raise write_fault(log.folder, error) from error
    log.horizon = offset
