"""A dataset's rows as matrices; what is learnt for that is learnt from the training part alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.features.base import Features
from app.features.columns import SparseFeatures
from app.features.text import TextFeatures, TextParams
from app.formats.table import Texts
from app.schemas.jobs import TextRecipe
from app.store.corpus import Corpus
from workers.rows import Rows


@dataclass(frozen=True, eq=False)
class Featured:
    """Fitted features, and the matrices of both parts."""

    features: Features
    X_train: csr_matrix
    X_test: csr_matrix


def featured(corpus: Corpus, rows: Rows, recipe: TextRecipe) -> Featured:
    """Make the matrices; raises FitError where no term of the texts is left."""
    if corpus.texts is not None:
        features, X_train = TextFeatures.fit(
            _Some(corpus.texts, rows.train), TextParams.model_validate(recipe.model_dump())
        )
        return Featured(features, X_train, features.transform(_Some(corpus.texts, rows.test)))
    assert corpus.X is not None
    given = SparseFeatures(int(corpus.X.shape[1]), corpus.feature_names)
    return Featured(given, corpus.X[rows.train], corpus.X[rows.test])


class _Some:
    """The texts of some rows, decoded one at a time, as often as asked for."""

    def __init__(self, texts: Texts, rows: NDArray[np.int64]) -> None:
        self._texts = texts
        self._rows = rows

    def __iter__(self) -> Iterator[str]:
        for row in self._rows.tolist():
            yield self._texts[row]
