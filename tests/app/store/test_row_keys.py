"""Hashes of rows."""

import numpy as np
from scipy.sparse import csr_matrix

from app.formats.table import Texts
from app.store.row_keys import row_keys


def texts(*given: str) -> Texts:
    pieces = [each.encode() for each in given]
    offsets = np.cumsum([0, *map(len, pieces)])
    return Texts(np.frombuffer(b"".join(pieces), np.uint8), offsets.astype(np.int64))


def test_rows_of_equal_content_have_one_hash_whatever_the_order_of_columns() -> None:
    first = csr_matrix(np.array([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]]))
    names = ["age", "size"]
    keys = row_keys([first], [], names)
    other = row_keys([csr_matrix(first.toarray()[:, ::-1])], [], names[::-1])
    assert keys.tolist() == other.tolist()
    assert len({*keys.tolist()}) == 3
    assert keys[2] == 0
    assert row_keys([first], [], ["age", "weight"])[0] != keys[0]
    assert row_keys([first], [])[0] != keys[0]


def test_segments_are_hashed_as_one() -> None:
    X = csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    whole = row_keys([X], [texts("a", "", "")])
    pieces = row_keys([X[:1], X[1:]], [texts("a", ""), texts("")])
    assert whole.tolist() == pieces.tolist()
    assert (whole == 0).tolist() == [False, False, True]
    assert row_keys([], [texts("a", "")])[1] == 0
    assert row_keys([], [texts("a")])[0] == row_keys([csr_matrix((1, 2))], [texts("a")])[0]
