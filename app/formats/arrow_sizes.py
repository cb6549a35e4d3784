"""The memory that rows of an Arrow table need once they are read, which the table's own size does not show.

A value of a dictionary is there once for all rows that have it, and so may be the text that many views show; lists of
no elements take no bytes at all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# of each row at least: its label, and where it begins
_ROW_BYTES = 8
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def bytes_read(batch: pa.RecordBatch) -> int:
    """Bytes of all values of a batch, each counted as often as rows have it."""
    return sum(map(_column_bytes, batch.columns), _ROW_BYTES * int(batch.num_rows))


def _column_bytes(column: pa.Array) -> int:
    type = column.type
    if any(test(type) for test in _LISTS):
        return _ROW_BYTES * len(column) + _column_bytes(column.flatten())
    if pa.types.is_dictionary(type):
        lengths = _lengths(column.dictionary)
        return int(column.nbytes if lengths is None else pc.sum(lengths.take(column.indices)).as_py() or 0)
    lengths = _lengths(column) if pa.types.is_string_view(type) else None
    return int(column.nbytes if lengths is None else pc.sum(lengths).as_py() or 0)


def _lengths(texts: pa.Array) -> pa.Array | None:
    """Bytes of each text; None of what is none."""
    if pa.types.is_string_view(texts.type):
        views: npt.NDArray[np.int32] = np.frombuffer(texts.buffers()[1], np.int32)  # four a view, the length first
        return pa.array(views[::4][texts.offset : texts.offset + len(texts)].astype(np.int64))
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        return pc.binary_length(texts).cast(pa.int64())
    return None
