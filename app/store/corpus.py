"""A dataset's rows on disk: plain arrays, memory-mapped, and the statistics of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.formats.table import Parsed, Texts
from app.schemas.datasets import ClassCount, DatasetStatistics, LabelsPerRow, WeightRange
from app.store.files import Files


@dataclass(frozen=True, eq=False)
class Corpus:
    """The rows of one dataset.

    Attributes
    ----------
    kind : "text" or "sparse"
        Which of ``texts`` and ``X`` is there.
    labels : sequence of str
        Distinct label names, sorted.
    y : int32 array, shape (n_rows,) or (n_labels,)
        Index into ``labels`` of each row or, where rows have sets, of all their labels, row after row.
    split : int8 array, shape (n_rows,), or None
        0 train, 1 test.
    X : csr_matrix of float64, shape (n_rows, n_features), or None
    texts : Texts or None
    feature_names : list of str or None
    weights : float64 array, shape (n_rows,), or None
        Weights of the rows; None where the file gave none, and in corpora written before files could.
    label_indptr : int64 array, shape (n_rows + 1,), or None
        Where the labels of each row begin in ``y``; None where each row has one.
    """

    kind: Literal["text", "sparse"]
    labels: Sequence[str]
    y: NDArray[np.int32]
    split: NDArray[np.int8] | None
    X: csr_matrix | None
    texts: Texts | None
    feature_names: list[str] | None
    weights: NDArray[np.float64] | None = None
    label_indptr: NDArray[np.int64] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.y) if self.label_indptr is None else len(self.label_indptr) - 1

    def names(self, row: int) -> list[str]:
        """The labels of a row."""
        begin, end = (row, row + 1) if self.label_indptr is None else self.label_indptr[row : row + 2]
        return [self.labels[label] for label in self.y[begin:end].tolist()]

    def features(self, row: int, limit: int) -> list[tuple[int, float]]:
        """The first ``limit`` (index, value) pairs of a row."""
        assert self.X is not None
        begin, end = (int(offset) for offset in self.X.indptr[row : row + 2])
        end = min(end, begin + limit)
        pairs = zip(self.X.indices[begin:end].tolist(), self.X.data[begin:end].tolist(), strict=True)
        return [(int(index), float(value)) for index, value in pairs]


def save_corpus(files: Files, path: str, parsed: Parsed) -> None:
    """Write what was parsed into the new folder ``path``."""
    arrays: dict[str, NDArray[Any]] = {"y": parsed.y}
    if parsed.split is not None:
        arrays["split"] = parsed.split
    if parsed.weights is not None:
        arrays["weights"] = parsed.weights
    if parsed.label_indptr is not None:
        arrays["label_indptr"] = parsed.label_indptr
    if parsed.X is not None:
        arrays |= {"data": parsed.X.data, "indices": parsed.X.indices, "indptr": parsed.X.indptr}
    if parsed.texts is not None:
        arrays |= {"blob": parsed.texts.blob, "offsets": parsed.texts.offsets}
    files.save_arrays(
        path,
        arrays,
        {
            "format": 1,
            "kind": parsed.kind,
            "labels": list(parsed.labels),
            "n_features": None if parsed.X is None else int(parsed.X.shape[1]),
            "feature_names": None if parsed.feature_names is None else list(parsed.feature_names),
        },
    )


def open_corpus(files: Files, path: str) -> Corpus:
    """The rows in the folder ``path``, memory-mapped."""
    arrays, manifest = files.load_arrays(path)
    X = texts = None
    if "data" in arrays:
        shape = (len(arrays["indptr"]) - 1, manifest["n_features"])
        X = csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape, copy=False)
        # Parsers write canonical matrices only; the check would read the whole file.
        X.has_canonical_format = True
    else:
        texts = Texts(arrays["blob"], arrays["offsets"])
    return Corpus(
        manifest["kind"],
        manifest["labels"],
        arrays["y"],
        arrays.get("split"),
        X,
        texts,
        manifest["feature_names"],
        arrays.get("weights"),
        arrays.get("label_indptr"),
    )


def statistics_of(parsed: Parsed) -> DatasetStatistics:
    """Counts over what was parsed; without a split every row counts as a training row."""
    n_classes = len(parsed.labels)
    test = np.zeros(parsed.n_rows, bool) if parsed.split is None else parsed.split == 1
    sizes = None if parsed.label_indptr is None else np.diff(parsed.label_indptr)
    of_test = test if sizes is None else np.repeat(test, sizes)
    in_test = np.bincount(parsed.y[of_test], minlength=n_classes)
    in_train = np.bincount(parsed.y, minlength=n_classes) - in_test
    order = np.argsort(-(in_train + in_test), kind="stable")
    widths = np.diff(parsed.X.indptr if parsed.X is not None else parsed.texts.offsets)  # type: ignore[union-attr]
    weights = parsed.weights
    return DatasetStatistics(
        n_rows=parsed.n_rows,
        n_train=int((~test).sum()),
        n_test=int(test.sum()),
        n_classes=n_classes,
        n_features=None if parsed.X is None else int(parsed.X.shape[1]),
        nnz=None if parsed.X is None else int(parsed.X.nnz),
        empty_rows=int((widths == 0).sum()),
        classes=[ClassCount(label=parsed.labels[c], train=int(in_train[c]), test=int(in_test[c])) for c in order],
        weights=None
        if weights is None
        else WeightRange(least=float(weights.min()), most=float(weights.max()), mean=float(weights.mean())),
        labels_per_row=None
        if sizes is None
        else LabelsPerRow(least=int(sizes.min()), most=int(sizes.max()), mean=float(sizes.mean())),
        test_only_labels=[parsed.labels[c] for c in np.flatnonzero(in_train == 0)],
    )
