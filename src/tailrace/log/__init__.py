"""One partition's bytes on disk.

A partition is a folder; what it holds is named by offsets, twenty digits, so that names sort as offsets do:

    00000000000000000000.log         a segment: whole record batches, one after the other, nothing between them
    00000000000000000000.index       8 bytes an entry: offset - base (u32), position in the segment (u32)
    00000000000000000000.timeindex   12 bytes an entry: highest timestamp so far (u64), offset - base of its batch (u32)
    00000000000000000000.txnindex    the transactions that were aborted by markers in this segment (`aborted`)
    00000000000000000123.producers   what producers had sent, and had open, below offset 123 (`producers`)
    00000000000000000123.gap         where a follower's log goes on that ended at 123 (`gaps`)
    00000000000000000123.voters      who votes from offset 123 on, as the control batch there says (`voters`)
    leader-epochs                    at which offset each leader's epoch began (`epochs`)
    truncated                        where the log was cut, while a recorded point may lie above it (`cut_mark`)
    damaged                          at which offset damage was found since the start (`damage_mark`)
    refilling                        this log was thrown away, and is not whole yet (`refill`)

All numbers are big-endian, as in Kafka; all kinds of index end with a CRC-32C of their entries. The last seven are
text with a version line and a CRC-32C (`state_file`), replaced whole. Beside the partitions' folders the data directory
has `checkpoint` (`checkpoints`), `meta.properties`, `clean-shutdown` and `.lock` (`meta`).

Rules:

- The last segment is *active*: the only one that grows. Its indexes live in memory. Batches follow on
  each other's offsets; only followers of a compacted log have gaps, and write them down.
- An index entry is written for a batch once `index.interval.bytes` have passed since the last; a time entry with it,
  when the highest timestamp has risen. So an index says where to start looking, and the batches say the rest.
- Index files, producer snapshots and the epoch cache reach the disk at checkpoints. What lies above the last recovery
  point is scanned after a crash, and these are made again from it: so none of them costs anything on the way of an
  append, and nothing above the recovery point may be compacted.
- Voters have files of their own, synced with the batches that name them: below the recovery point these are read and no
  batch is. Above it the batches are right, and the files are made to say the same.
- An index that is missing, short or wrong is made again from its segment. The segments are the truth. Only that of
  aborted transactions may be missing: then there are none.
- Below the recovery point bad bytes are *damage*: kept, refused, reported. Above it they are a *torn tail*: cut off,
  unless a reader has found them before (`damage_mark`).

`Log` (`log`) is the partition as the broker sees it; the others are its parts. `inspect` reads a folder for people.
"""
