"""Cut many pieces out of one buffer, with one copy.

An Arrow binary array is a data buffer and a list of offsets; each value reaches to the next offset. So the start and
the end of each piece are listed in turn, every second value is a gap, and `take` copies the others.
"""

import numpy as np
import pyarrow as pa

from tailrace.pipeline.arrow.fields import Spans


def copy_spans(data: memoryview, spans: Spans) -> pa.Array:
    """The bytes at these spans as one Arrow array."""
    count = len(spans.start)
    if not count:
        return pa.array([], pa.binary())
    edges = np.empty(2 * count, np.int32)
    edges[0::2] = spans.start
    edges[1::2] = spans.start + np.maximum(spans.size, 0)
    run = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)])
    null = spans.size < 0
    return run.take(pa.array(np.arange(0, 2 * count, 2), mask=null if null.any() else None))
