"""Code matrices and the distances within them."""

import itertools

import numpy as np
import pytest

from solvers.output_codes.codes import CodeError, check, closest_rows, column_distances, row_distances


def test_the_closest_rows_are_found_a_few_rows_at_a_time(monkeypatch):
    code = np.random.default_rng(0).choice([-1, 0, 1], (40, 9)).astype(np.int8)
    distances = row_distances(code)[np.triu_indices(40, 1)]
    expected = distances.min(), np.count_nonzero(distances == distances.min())
    for size in (1, 7, 1000):
        monkeypatch.setattr("solvers.output_codes.codes.CHUNK_BYTES", 4 * 40 * size)
        assert closest_rows(code) == expected


def test_distances_are_their_definitions():
    rng = np.random.default_rng(0)
    code = rng.choice([-1, 0, 1], (6, 9))
    rows, columns = row_distances(code), column_distances(code)
    for r, s in itertools.combinations(range(6), 2):
        assert rows[r, s] == rows[s, r] == sum((1 - a * b) / 2 for a, b in zip(code[r], code[s], strict=True))
    for t, u in itertools.combinations(range(9), 2):
        either = [sum((1 - a * b) / 2 for a, b in zip(code[:, t], sign * code[:, u], strict=True)) for sign in (1, -1)]
        assert columns[t, u] == min(either)
    assert not rows.diagonal().any()
    real = rng.standard_normal((4, 3))
    assert row_distances(real)[0, 1] == pytest.approx(np.linalg.norm(real[0] - real[1]))
    nearest = min(np.linalg.norm(real[:, 0] - real[:, 1]), np.linalg.norm(real[:, 0] + real[:, 1]))
    assert column_distances(real)[0, 1] == pytest.approx(nearest)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ([[1, -1], [1, -1], [-1, 1]], "rows of classes 'a' and 'b' are equal"),
        ([[1, 1], [1, -1], [1, 0]], "no class on one of their sides: 0"),
        ([[1, 0], [-1, 1], [0, 1]], "no class on one of their sides: 1"),
        ([[1, 1], [0, 0], [-1, -1]], "row of class 'b' is zero"),
        ([[1, 1], [-1, 1]], "2 rows; expected 3"),
        ([[1, 2], [-1, 1], [1, -1]], "got 2"),
        ([[1, 1], [-1], [1, -1]], "differ in length"),
        ([1, -1, 1], "two rows and one column"),
        ([[1, float("nan")], [-1, 1], [1, -1]], "got nan"),
    ],
)
def test_matrices_that_are_no_codes_are_refused_with_the_reason(code, fault):
    with pytest.raises(CodeError, match=fault):
        check(code, ["a", "b", "c"])
