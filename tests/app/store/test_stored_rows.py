"""Rows on disk."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from app.formats.table import Parsed
from app.store.corpus import MOST_LISTED, ClassCounts, open_corpus, save_corpus
from app.store.files import Files
from app.store.row_statistics import statistics_of

PARSED = Parsed(
    "sparse",
    ["a", "b"],
    np.array([0, 1, 1], np.int32),
    X=csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])),
    weights=np.array([0.5, 2.0, 3.5]),
)


def test_rows_are_read_as_they_were_written_with_their_weights(tmp_path: Path) -> None:
    files = Files(tmp_path)
    save_corpus(files, "c", PARSED)
    corpus = open_corpus(files, "c")
    assert corpus.labels == ["a", "b"]
    assert corpus.X is not None
    assert PARSED.X is not None
    np.testing.assert_array_equal(corpus.X.toarray(), PARSED.X.toarray())
    np.testing.assert_array_equal(corpus.weights, [0.5, 2.0, 3.5])
    assert corpus.split is None


def test_a_corpus_without_weights_has_the_files_that_it_always_had_and_opens(tmp_path: Path) -> None:
    files = Files(tmp_path)
    save_corpus(files, "c", replace(PARSED, weights=None))
    assert {path.name for path in (tmp_path / "c").iterdir()} == {
        "manifest.json",
        "y.npy",
        "data.npy",
        "indices.npy",
        "indptr.npy",
    }
    assert open_corpus(files, "c").weights is None


def test_statistics_tell_the_range_of_the_weights() -> None:
    weights = statistics_of(PARSED).weights
    assert weights is not None
    assert (weights.least, weights.most, weights.mean) == (0.5, 3.5, pytest.approx(2.0))
    assert statistics_of(replace(PARSED, weights=None)).weights is None


def test_many_labels_are_mapped_and_counts_are_listed_in_pages(tmp_path: Path) -> None:
    n = MOST_LISTED + 5
    labels = [f"é{i:05}" for i in range(n)]
    y = np.concatenate([np.arange(n), np.arange(10)]).astype(np.int32)
    split = np.array([1] * n + [0] * 10, np.int8)
    parsed = Parsed("sparse", labels, y, split, csr_matrix(np.ones((n + 10, 1))))
    files = Files(tmp_path)
    save_corpus(files, "c", parsed)
    assert len((tmp_path / "c" / "manifest.json").read_bytes()) < 2000
    corpus = open_corpus(files, "c")
    assert list(corpus.labels) == labels
    counts = ClassCounts.from_rows(corpus)
    assert [count.label for count in counts.listed(0, 11)] == [*labels[:10], labels[10]]
    assert [count.label for count in counts.listed(n - 2, n + 5)] == labels[-2:]
    found = statistics_of(parsed)
    assert (len(found.classes), len(found.test_only_labels)) == (MOST_LISTED, n - 10)
    assert (found.n_classes, found.n_test_only_labels) == (n, n - 10)
