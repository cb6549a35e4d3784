"""Rows of a dataset as a model reads them."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.errors import InvalidInput
from app.features.base import Features, InstanceError
from app.features.columns import SparseFeatures
from app.features.named_text import NamedTextFeatures
from app.features.scaled import ScaledFeatures
from app.features.tables import TableFeatures
from app.features.text import TextFeatures
from app.models.row_kinds import HELD
from app.store.corpus import Corpus


def matrix(corpus: Corpus, features: Features, rows: NDArray[np.int64]) -> csr_matrix:
    """The features of some rows, shape (len(rows), n_features); raises InvalidInput where they do not fit."""
    held = corpus.texts
    texts = None if held is None else (held[row] for row in rows.tolist())
    if isinstance(features, (TextFeatures, NamedTextFeatures)):
        if texts is None or corpus.kind == "table":
            raise InvalidInput(f"the model reads texts, and the dataset holds {HELD[corpus.kind]}")
        # names are sought in texts that are read once more
        return features.transform(texts if isinstance(features, TextFeatures) else list(texts))
    if isinstance(features, TableFeatures):
        if corpus.kind == "text" or corpus.X is None or corpus.feature_names is None:
            raise InvalidInput(f"the model reads the columns of a table, and the dataset holds {HELD[corpus.kind]}")
        reported = corpus.columns
        if reported is not None and set(reported.texts) != set(features.columns.texts):
            raise InvalidInput("the dataset does not fit the model: its text is made of other columns")
        try:
            return features.transform(corpus.X[rows], corpus.feature_names, texts)
        except InstanceError as error:
            raise InvalidInput(f"the dataset does not fit the model: {error}") from None
    if corpus.X is None or corpus.kind == "table" or not isinstance(features, (SparseFeatures, ScaledFeatures)):
        raise InvalidInput(f"the model reads numbers, and the dataset holds {HELD[corpus.kind]}")
    try:
        return features.transform(corpus.X[rows], corpus.feature_names)
    except InstanceError as error:
        raise InvalidInput(f"the dataset does not fit the model: {error}") from None
