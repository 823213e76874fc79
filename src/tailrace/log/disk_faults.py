"""What the disk said, as a fault for whoever asked: a full disk may have room again, and says so."""

import errno

from tailrace.model.faults import StorageFailed


def refused(path: str, error: OSError) -> StorageFailed:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return StorageFailed(f"{path}: the disk is full" if full else f"{path} could not be written: {error}")
