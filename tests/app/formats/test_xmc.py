import itertools
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from app.formats.parsing import parse

SHAPED = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SHAPED
@given(data=st.data(), n=st.integers(1, 6))
def test_the_same_arrays_as_scikit_learns_loader(tmp_path: Path, data: st.DataObject, n: int) -> None:
    rows = [
        (
            sorted(data.draw(st.sets(st.integers(0, 9), min_size=1, max_size=4))),
            sorted(data.draw(st.sets(st.integers(0, 19), min_size=1, max_size=5))),
        )
        for _ in range(n)
    ]
    lines = [
        ",".join(map(str, labels)) + " " + " ".join(f"{at}:{(at + 1) / 4}" for at in indices)
        for labels, indices in rows
    ]
    path, plain = tmp_path / "data.txt", tmp_path / "plain.txt"
    path.write_text(f"{n} 20 10\n" + "\n".join(lines) + "\n")
    plain.write_text("\n".join(lines) + "\n")
    parsed = parse(path, "xmc")
    X, y = load_svmlight_file(str(plain), n_features=20, multilabel=True, zero_based=True)
    assert parsed.X is not None
    np.testing.assert_array_equal(parsed.X.toarray(), X.toarray())
    assert parsed.label_indptr is not None
    bounds = parsed.label_indptr.tolist()
    found = [sorted(int(parsed.labels[at]) for at in parsed.y[i:j]) for i, j in itertools.pairwise(bounds)]
    assert found == [sorted(map(int, labels)) for labels in y]


def test_a_row_without_labels_or_without_features_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("3 4 2\n 1:1\n0,1\n3:2\n")
    parsed = parse(path, "xmc")
    assert parsed.label_indptr is not None
    assert parsed.label_indptr.tolist() == [0, 0, 2, 2]
    assert parsed.X is not None
    assert parsed.X.toarray().tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2]]
