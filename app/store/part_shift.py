"""Whether test rows and training rows have the same distribution."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

from app.datasets.statistics_schemas import PartShift
from app.formats.labels import TEST, TRAIN
from app.formats.table import Parsed

_SAMPLE = 1000
_FEWEST = 50
_LETTERS = 1000
_HASHED = 1 << 16
# standard deviations that one normal number in 1,000 exceeds
_ONCE_IN_A_THOUSAND = 3.1


def part_shift(parsed: Parsed, train: NDArray[np.int64], test: NDArray[np.int64]) -> PartShift | None:
    """How far test rows differ from training rows, by content and by label; None if there is no test part.

    Parameters
    ----------
    train, test : int64 arrays, shape (n_classes,)
        Rows of each label.
    """
    if parsed.split is None or not (train.sum() and test.sum()):
        return None
    drawn = [_drawn(np.flatnonzero(parsed.split == part)) for part in (TRAIN, TEST)]
    enough = min(map(len, drawn)) >= _FEWEST
    variation, by_chance = total_variation(train.astype(np.float64), test.astype(np.float64))
    return PartShift(
        auc=_auc(parsed, *drawn) if enough else None,
        auc_by_chance=_auc_by_chance(*map(len, drawn)) if enough else None,
        label_variation=variation,
        label_variation_by_chance=by_chance,
    )


def total_variation(expected: NDArray[np.float64], found: NDArray[np.float64]) -> tuple[float, float]:
    """The total variation between the shares of two arrays of counts, and its mean were both drawn from one urn.

    Parameters
    ----------
    expected, found : float64 arrays, shape (n,)
        Counts, not all 0.
    """
    p, q = expected / expected.sum(), found / found.sum()
    together = (expected + found) / (expected + found).sum()
    variance = together * (1.0 - together) * (1.0 / expected.sum() + 1.0 / found.sum())
    # |difference| of a normal variable has the mean sqrt(2 variance / pi)
    by_chance = float(np.sqrt(variance).sum() * math.sqrt(2 / math.pi) / 2)
    # counts far below one a label are not normal; no total variation exceeds 1
    return float(np.abs(q - p).sum() / 2), min(1.0, by_chance)


def _drawn(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.random.default_rng(0).permutation(rows)[:_SAMPLE]


def _auc_by_chance(m: int, n: int) -> float:
    """Of Mann and Whitney's statistic, divided by m n."""
    return min(1.0, 0.5 + _ONCE_IN_A_THOUSAND * math.sqrt((m + n + 1) / (12.0 * m * n)))


def _auc(parsed: Parsed, train: NDArray[np.int64], test: NDArray[np.int64]) -> float:
    """Rows of either half are scored by a machine that was trained on the other; both are drawn in random order."""
    # a second to import, for those who test
    from scipy.stats import mannwhitneyu
    from sklearn.linear_model import LogisticRegression

    X = _features(parsed, np.concatenate([train, test]))
    is_test = np.repeat([0, 1], [len(train), len(test)])
    half = np.arange(len(is_test)) % 2
    aucs = []
    for held_out in (0, 1):
        machine = LogisticRegression(solver="liblinear", class_weight="balanced", tol=0.01, max_iter=1000)
        machine.fit(X[half != held_out], is_test[half != held_out])
        scores, truth = machine.decision_function(X[half == held_out]), is_test[half == held_out]
        after, before = scores[truth == 1], scores[truth == 0]
        aucs.append(mannwhitneyu(after, before).statistic / (len(after) * len(before)))
    return float(np.mean(aucs))


def _features(parsed: Parsed, rows: NDArray[np.int64]) -> csr_matrix:
    """Of some rows: hashed words, and numbers between -1 and 1, missing ones as 0."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.preprocessing import maxabs_scale

    parts = []
    if parsed.texts is not None:
        texts = [parsed.texts[row][:_LETTERS] for row in rows.tolist()]
        parts.append(HashingVectorizer(n_features=_HASHED, alternate_sign=False).transform(texts))
    if parsed.X is not None:
        numbers = parsed.X[rows]
        numbers.data = np.nan_to_num(numbers.data, copy=False)
        parts.append(maxabs_scale(numbers))
    return csr_matrix(hstack(parts, format="csr"))
