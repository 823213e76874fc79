"""Record batches to Arrow and back, in bulk: no Python object per record, however many there are.

Way in: `choosing` (which batches a reader may see) → `chain` (where each record begins) → `fields` (all numbers of all
records at once) → `columns` (Arrow arrays). The slow twin is `records/opened.py`; tests hold the two together.
"""
