"""Convert record batches to Arrow and back, in bulk: no Python object is created per record.

Decoding: `visible_batches` (which batches a reader may see) → `record_positions` (where each record starts) → `fields`
(all numbers of all records at once) → `columns` (Arrow arrays). `records/opened.py` is the slow equivalent; tests
compare the two.
"""
