"""One partition's log on disk.

A partition is a folder. Its files are named by offsets with twenty digits, so that names sort as offsets do:

    00000000000000000000.log         a segment: whole record batches, one after the other, nothing between them
    00000000000000000000.index       8 bytes an entry: offset - base (u32), position in the segment (u32)
    00000000000000000000.timeindex   12 bytes an entry: highest timestamp so far (u64), offset - base of its batch (u32)
    00000000000000000000.txnindex    the transactions aborted by markers in this segment (`state/aborted_index`)
    00000000000000000123.producers   producers and open transactions as of offset 123 (`state/producers`)
    00000000000000000123.gap         where a log of an earlier release that ended at 123 continues (`state/gaps`)
    00000000000000000123.voters      the voters from offset 123 on, as its control batch says (`state/voters`)
    leader-epochs                    the first offset of each leader epoch (`state/epochs`)
    truncated                        where the log was truncated, while a recorded recovery point may lie above
    damaged                          an offset where damage was found since the start (`recovery/damage_mark`)
    refilling                        the log was discarded and is not complete yet (`recovery/refill`)
    cleaner                          how far the log is compacted, and since when (`compaction/clean_state`)
    compacted                        segments are being replaced by a compacted one (`compaction/swap`)

All numbers are big-endian, as in Kafka. The three kinds of index end with a CRC-32C of their entries. The last nine
files are text with a version line and a CRC-32C (`directory/state_file`), and are replaced as a whole. Beside the
partitions' folders the data directory has `checkpoint` (`directory/checkpoints`), `meta.properties`, `clean-shutdown`
and `boot` (`directory/meta`), and `.lock`.

Rules:

- The last segment is *active*: the only one that grows. Its indexes are in memory. Batches have consecutive offsets:
  where compaction removes whole batches, an empty one takes their offsets.
- An index entry is made for a batch once `index.interval.bytes` have passed since the last entry, and a time index
  entry with it if the highest timestamp has risen. So an index only gives the position where a search starts.
- Index files, producer snapshots and the epoch cache are written by checkpoints. After a crash everything above the
  last recovery point is scanned, and they are rebuilt from it. So they cost nothing during an append, and nothing above
  the recovery point may be compacted.
- Voters have files of their own, fsynced with the batches that set them. Below the recovery point the files are read,
  and no batch is. Above it the batches are the truth, and the files are rewritten to match.
- An index that is missing, short or wrong is rebuilt from its segment: the segments are the truth. A missing index of
  aborted transactions means that there are none.
- Below the recovery point bad bytes are *damage*: kept, never served, reported. Above it they are a *torn tail*:
  truncated, unless a read has found and marked them before (`recovery/damage_mark`).

`Log` (`log`) is the interface to the broker; the other modules are its parts. `directory/inspect` reads a folder for
the command line.
"""
