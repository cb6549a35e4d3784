"""How often terms are in texts: of many ASCII texts Arrow cuts the words, and each different word is looked up once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix, vstack

from app.features.terms import LanguageColumns, TermColumns

Indices = npt.NDArray[np.int64]
_AS_WRITTEN = bytes(c if c < 128 and (chr(c).isalnum() or c == ord("_")) else ord(" ") for c in range(256))
_LOWERED = _AS_WRITTEN.lower()
# characters that are looked at at a time
_BLOCK = 1 << 22


def count_terms(texts: Iterable[str], columns: TermColumns) -> csr_matrix[np.float64]:
    """How often each column is in each text."""
    blocks = [_counted(block, columns) for block in _blocks(map(columns.read, texts))]
    n_columns = max((block.shape[1] for block in blocks), default=0)
    alike = [csr_matrix((b.data, b.indices, b.indptr), shape=(b.shape[0], n_columns)) for b in blocks]
    if len(alike) == 1:
        return alike[0]
    return csr_matrix(vstack(alike, format="csr")) if alike else csr_matrix((0, 0))


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts of so many characters at a time."""
    block, size = list[str](), 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size > _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def select_terms(counts: csr_matrix[np.float64], columns: npt.NDArray[np.int64]) -> csr_matrix[np.float64]:
    """A copy with `columns` alone, in their order, indices sorted."""
    # columns behind the last one that a text has are empty
    place = np.full(max(counts.shape[1], int(columns.max(initial=-1)) + 1), -1, dtype=np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    indices = place[counts.indices]
    kept = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[counts.indptr]
    selected = csr_matrix((counts.data[kept], indices[kept], indptr), shape=(counts.shape[0], len(columns)))
    selected.sort_indices()
    return selected


def widened(counts: csr_matrix[np.float64], n_columns: int) -> csr_matrix[np.float64]:
    """The same counts, of so many columns, indices sorted: what it costs is up to the counts alone."""
    wide = csr_matrix((counts.data, counts.indices, counts.indptr), shape=(counts.shape[0], n_columns))
    wide.sort_indices()
    return wide


def _counted(texts: Sequence[str], columns: TermColumns) -> csr_matrix[np.float64]:
    """How often each column is in each text, shape (n_texts, largest column + 1), from `columns.find_all`."""
    if not columns.params.by_language:
        return _summed(*_found_all(texts, columns.of_language[""]), len(texts))
    rows: dict[str, list[int]] = {language: [] for language in columns.of_language}
    parts: dict[str, list[str]] = {language: [] for language in columns.of_language}
    for row, text in enumerate(texts):
        for part in columns.parts(text):
            rows[part.language].append(row)
            parts[part.language].append(part.of(text))
    found = {language: _found_all(parts[language], own) for language, own in columns.of_language.items()}
    own_rows = [np.array(rows[language], np.int64)[at] for language, (at, _) in found.items()]
    return _summed(np.concatenate(own_rows), np.concatenate([column for _, column in found.values()]), len(texts))


def _found_all(texts: Sequence[str], columns: LanguageColumns) -> tuple[Indices, Indices]:
    ascii = np.fromiter(map(columns.ascii_alike, texts), bool, len(texts))
    rows, found = _of_ascii([texts[at] for at in np.flatnonzero(ascii).tolist()], columns)
    all_rows, all_found = [np.flatnonzero(ascii)[rows]], [found]
    for other in np.flatnonzero(~ascii).tolist():
        of_text = np.array(columns.find_all(texts[other]), dtype=np.int64)
        all_rows.append(np.full(len(of_text), other))
        all_found.append(of_text)
    return np.concatenate(all_rows), np.concatenate(all_found)


def _summed(row: Indices, column: Indices, n_rows: int) -> csr_matrix[np.float64]:
    """How often each pair is there, shape (n_rows, largest column + 1): scipy's way to it takes twice as long."""
    pairs = (row << 32) | column
    pairs.sort()
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    pairs, times = pairs[first], np.diff(first, append=len(pairs))
    indptr = np.searchsorted(pairs, np.arange(n_rows + 1, dtype=np.int64) << 32)
    shape = (n_rows, int(column.max()) + 1 if len(column) else 0)
    summed = csr_matrix((times.astype(np.float64), (pairs & 0xFFFFFFFF).astype(np.int32), indptr), shape=shape)
    summed.has_canonical_format = True
    return summed


def _of_ascii(texts: Sequence[str], columns: LanguageColumns) -> tuple[Indices, Indices]:
    data = "".join(texts).encode().translate(_LOWERED if columns.lowercase else _AS_WRITTEN)
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    cut = pc.ascii_split_whitespace(
        pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(data))
    )
    encoded = cut.flatten().dictionary_encode()
    codes, names = encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
    row = np.repeat(np.arange(len(texts)), np.diff(cut.offsets.to_numpy()))
    words = columns.words.kept(names)
    there = np.array([word is not None for word in words], dtype=bool)[codes]
    row, codes = row[there], codes[there]
    if columns.one_each:
        column = _found(words, columns)[codes]
        rows, found = row[column >= 0], column[column >= 0]
    else:
        rows, found = _expanded(row, codes, [[] if word is None else columns.of_word(word) for word in words])
    all_rows, all_found = [rows], [found]
    runs, terms = codes, [word or "" for word in words]
    for length in range(2, min(columns.longest_run, len(row)) + 1):
        # a run of one word more: which run, and which word after it
        within = np.flatnonzero(row[length - 1 :] == row[: len(row) - length + 1])
        keys = runs[within] * len(words) + codes[within + length - 1]
        distinct, inverse = np.unique(keys, return_inverse=True)
        before, after = np.divmod(distinct, max(1, len(words)))
        terms = [f"{terms[a]} {words[b]}" for a, b in zip(before.tolist(), after.tolist(), strict=True)]
        column = _found(terms, columns)[inverse]
        all_rows.append(row[within][column >= 0])
        all_found.append(column[column >= 0])
        runs = np.zeros(len(row), dtype=np.int64)
        runs[within] = inverse
    return np.concatenate(all_rows), np.concatenate(all_found)


def _found(terms: Sequence[str | None], columns: LanguageColumns) -> Indices:
    there = np.array([term is not None for term in terms], dtype=bool)
    found = np.full(len(terms), -1, dtype=np.int64)
    found[there] = [-1 if at is None else at for at in map(columns.find, (term for term in terms if term is not None))]
    return found


def _expanded(row: Indices, codes: Indices, of_each: Sequence[Sequence[int]]) -> tuple[Indices, Indices]:
    """All columns of each code's word, with the text that the word is in."""
    widths = np.array([len(columns) for columns in of_each], dtype=np.int64)
    flat = np.array([column for columns in of_each for column in columns], dtype=np.int64)
    starts = np.cumsum(widths) - widths
    width = widths[codes]
    place = np.arange(int(width.sum())) + np.repeat(starts[codes] - (np.cumsum(width) - width), width)
    return np.repeat(row, width), flat[place]
