"""Plain blocks of svmlight files by numpy and Arrow, which need nothing compiled.

A block is plain where each line is a label and then pairs `index:value`, with blanks between them; `qid:` and one
`cost:number` may be among the pairs, comments behind them, and lines may be blank. It is cut at its separators all at
once, and Arrow reads the indices and the values in place. This module only detects that a block is not plain: other
lines, and all errors, are for :mod:`app.formats.svmlight_lines`.
"""

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.formats.window import as_array

_BLANKS = b" \t\v\f\r"
_NEWLINE, _COLON = ord("\n"), ord(":")
_NONE = np.empty(0, dtype=np.int64)
_COMMENT = re.compile(rb"#[^\n]*")


class PlainBlock(NamedTuple):
    """The rows of a plain block.

    Attributes
    ----------
    lines : int64 array, shape (n_rows,)
        The line of each row in the block, from 0.
    codes : int64 array, shape (n_rows,)
        Index into `names` of each row's label.
    names : list of bytes
        The distinct labels.
    n_features : int64 array, shape (n_rows,)
    indices : int32 array, shape (n_pairs,)
        From 0, increasing within a row.
    values : float64 array, shape (n_pairs,)
        Finite.
    costs : float64 array, shape (n_rows,), or None
        The rows' weights, positive and finite, 1 where a row has none; None where no row has one.
    """

    lines: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    names: list[bytes]
    n_features: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    costs: npt.NDArray[np.float64] | None


class _Tokens(NamedTuple):
    """Token k is `text[offsets[k]:offsets[k + 1]]`, and `marks[k]` is the separator after it.

    None is empty. Row k is the line `lines[k]`; each line is one where that is None.
    """

    text: bytes
    offsets: npt.NDArray[np.int32]
    marks: npt.NDArray[np.uint8]
    lines: npt.NDArray[np.int64] | None = None

    def array(self, kind: pa.DataType, chosen: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        """All tokens as strings or bytes; those that are not chosen are null, and a cast passes them over."""
        valid = None if chosen is None else pa.py_buffer(np.packbits(chosen, bitorder="little"))
        return pa.Array.from_buffers(
            kind, len(self.marks), [valid, pa.py_buffer(self.offsets), pa.py_buffer(self.text)]
        )

    def named(self, name: bytes) -> npt.NDArray[np.int64]:
        """The tokens that are a name before a colon."""
        if not self.text:
            return _NONE
        lengths = self.offsets[1:] - self.offsets[:-1]
        found = np.flatnonzero((lengths == len(name)) & (self.marks == _COLON))
        text = as_array(self.text)
        for k, character in enumerate(name):
            found = found[text.take(self.offsets.take(found) + k) == character]
        return found


def plain_block(block: bytes, sets: bool) -> PlainBlock | None:
    """The rows of whole lines; None where these are not plain.

    Parameters
    ----------
    block : bytes
        Not empty.
    sets : bool
        Whether a label may have commas.
    """
    tokens = _tokens(block if block.endswith(b"\n") else block + b"\n")
    if tokens is None:
        return None
    is_index = tokens.marks == _COLON
    is_newline = tokens.marks == _NEWLINE
    # after a blank, and nowhere else, an index follows
    if is_index[:1].any() or not np.array_equal(is_index[1:], ~(is_index | is_newline)[:-1]):
        return None
    ends = np.flatnonzero(is_newline)
    n_tokens = np.diff(ends, prepend=-1)
    labels = tokens.array(pa.binary()).take(pa.array(ends + 1 - n_tokens)).dictionary_encode()
    names: list[bytes] = labels.dictionary.to_pylist()
    if not sets and any(b"," in name for name in names):
        return None
    n_features, costs = (n_tokens - 1) // 2, None
    queries, priced = (tokens.named(name) if name + b":" in block else _NONE for name in (b"qid", b"cost"))
    if len(queries) or len(priced):
        if any(name.endswith(b",") for name in names):
            return None  # what follows would be the next label of a set
        others = np.concatenate([queries, priced])
        is_index[others] = False
        n_features -= np.bincount(np.searchsorted(ends, others), minlength=len(ends))
        costs = _costs(tokens, priced, np.searchsorted(ends, priced), len(ends))
    pairs = _pairs(tokens, is_index, np.cumsum(n_features) - n_features)
    if pairs is None or (costs is None and len(priced)):
        return None
    lines = np.arange(len(ends)) if tokens.lines is None else tokens.lines
    return PlainBlock(lines, labels.indices.to_numpy().astype(np.int64), names, n_features, *pairs, costs)


def _tokens(block: bytes) -> _Tokens | None:
    """The tokens between the separators of a block that ends with one; None if the block has anything else."""
    if b"#" in block:
        block = _COMMENT.sub(b"", block)
    data = as_array(block)
    places = np.flatnonzero((data <= ord(" ")) | (data == _COLON))
    text = block.translate(None, _BLANKS + b":\n")
    if len(text) + len(places) != len(block):
        return None  # a control character
    offsets = np.zeros(len(places) + 1, dtype=np.int32)
    offsets[1:] = places
    offsets[1:] -= np.arange(len(places), dtype=np.int32)
    tokens = _Tokens(text, offsets, data.take(places))
    is_empty = offsets[1:] == offsets[:-1]
    return _without_further_blanks(tokens, is_empty) if is_empty.any() else tokens


def _without_further_blanks(tokens: _Tokens, is_empty: npt.NDArray[np.bool_]) -> _Tokens | None:
    """Several blanks are one, those at either end of a line none, and lines of blanks no rows.

    None where a token is empty all the same.
    """
    text, offsets, marks, _ = tokens
    if (is_empty[1:] & (marks[:-1] == _COLON)).any():
        return None
    kept = ~is_empty | (marks == _NEWLINE) | (marks == _COLON)
    ends, marks = offsets[1:][kept], marks[kept]
    # where a line ends after a blank, its last token ends there
    kept = np.ones(len(marks), dtype=np.bool_)
    kept[:-1] = (ends[1:] > ends[:-1]) | (marks[1:] != _NEWLINE) | (marks[:-1] == _NEWLINE)
    offsets, marks = np.concatenate([offsets[:1], ends[kept]]), marks[kept]
    is_empty, is_newline = offsets[1:] == offsets[:-1], marks == _NEWLINE
    if (is_empty & ~is_newline).any():
        return None
    lines = np.flatnonzero(~is_empty[is_newline])
    return _Tokens(text, np.concatenate([offsets[:1], offsets[1:][~is_empty]]), marks[~is_empty], lines)


def _costs(
    tokens: _Tokens, priced: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], n_rows: int
) -> npt.NDArray[np.float64] | None:
    """The weights of all rows, of which some have a cost; None where none has, or one is wrong."""
    if len(rows) == 0 or (rows[1:] == rows[:-1]).any():
        return None
    try:
        found = tokens.array(pa.utf8()).take(pa.array(priced + 1)).cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    costs = np.ones(n_rows)
    costs[rows] = found
    return costs if ((costs > 0) & np.isfinite(costs)).all() else None


def _pairs(
    tokens: _Tokens, is_index: npt.NDArray[np.bool_], first: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]] | None:
    """Indices from 0 and values of all rows, of which each begins with its `first` pair; None where one is wrong."""
    at = np.flatnonzero(is_index)
    if len(at) == 0:
        return np.empty(0, dtype=np.int32), np.empty(0)
    if as_array(tokens.text).take(tokens.offsets.take(at)).min() < ord("1"):
        return None  # a sign, or what Arrow takes for a number of another base
    is_value = np.zeros_like(is_index)
    is_value[1:] = is_index[:-1]
    try:
        all_indices = tokens.array(pa.utf8(), is_index).cast(pa.int32())
        all_values = tokens.array(pa.utf8(), is_value).cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    indices = np.frombuffer(all_indices.buffers()[1], dtype=np.int32).take(at)
    values = np.frombuffer(all_values.buffers()[1], dtype=np.float64)[1:].take(at)
    rises = np.ones(len(at) + 1, dtype=np.bool_)
    np.greater(indices[1:], indices[:-1], out=rises[1:-1])
    rises[first] = True
    if not rises.all() or not np.isfinite(values).all():
        return None
    return indices - np.int32(1), values
