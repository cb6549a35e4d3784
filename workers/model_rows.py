"""Rows of a dataset as a model reads them."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.errors import InvalidInput
from app.features.base import Features, InstanceError
from app.features.columns import SparseFeatures
from app.features.text import TextFeatures
from app.store.corpus import Corpus
from workers.preparation import ChosenTexts


def matrix(corpus: Corpus, features: Features, rows: NDArray[np.int64]) -> csr_matrix:
    """The features of some rows, shape (len(rows), n_features); raises InvalidInput where they do not fit."""
    if isinstance(features, TextFeatures):
        if corpus.texts is None:
            raise InvalidInput("the model reads texts, and the dataset holds numbers")
        return features.transform(ChosenTexts(corpus.texts, rows))
    if corpus.X is None or not isinstance(features, SparseFeatures):
        raise InvalidInput("the model reads numbers, and the dataset holds texts")
    try:
        return features.transform(corpus.X[rows], corpus.feature_names)
    except InstanceError as error:
        raise InvalidInput(f"the dataset does not fit the model: {error}") from None
