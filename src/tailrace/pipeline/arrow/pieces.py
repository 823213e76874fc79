"""Cut many pieces out of one run of bytes, with one copy.

An array of bytes in Arrow is a run and a list of offsets, each piece reaching to the next offset. So the begin and the
end of each piece are listed in turn, every second piece is a gap, and `take` copies the others.
"""

import numpy as np
import pyarrow as pa

from tailrace.pipeline.arrow.fields import Spans


def pieces(data: memoryview, spans: Spans) -> pa.Array:
    """The bytes at these places as one Arrow array."""
    count = len(spans.start)
    if not count:
        return pa.array([], pa.binary())
    edges = np.empty(2 * count, np.int32)
    edges[0::2] = spans.start
    edges[1::2] = spans.start + np.maximum(spans.size, 0)
    run = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)])
    null = spans.size < 0
    return run.take(pa.array(np.arange(0, 2 * count, 2), mask=null if null.any() else None))
