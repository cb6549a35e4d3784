"""Which rows of a prediction are in the training data of the version that predicts them."""

import numpy as np
from numpy.typing import NDArray

from app.datasets import versions as dataset_versions
from app.formats.labels import TRAIN, VALIDATION
from app.formats.table import Texts
from app.models import service as models
from app.models.schemas import ModelVersion
from app.models.warm_starts import saved_split
from app.store.cache import cached_corpus
from app.store.corpus import Corpus
from app.store.files import Files
from app.store.row_keys import row_keys
from workers.running.job_context import JobContext


def n_trained_on(
    context: JobContext, store: Files, version: ModelVersion, corpus: Corpus, rows: NDArray[np.int64]
) -> int | None:
    """How many rows have the content of a row that the version was trained on; None where those rows are gone.

    Parameters
    ----------
    rows : int64 array
        Numbers of the rows of the corpus that are counted.
    """
    number = version.request.get("dataset_version")
    dataset = context.read(lambda session: dataset_versions.find(session, version.dataset, number))
    if dataset is None:
        return None
    trained = cached_corpus(store, dataset.path)
    folder = context.read(lambda session: models.folder(session, version.id))
    is_training = _training_rows(trained, version, saved_split(store, folder))
    if is_training is None:
        return None
    known = np.sort(_keys(trained)[is_training])
    keys = np.sort(_keys(corpus)[rows])
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return int(((known[at] == keys) & (keys != 0)).sum())


def _training_rows(corpus: Corpus, version: ModelVersion, split: NDArray[np.int8] | None) -> NDArray[np.bool_] | None:
    """Which rows of its dataset the served model was trained on, shape (n_rows,); None where this is not known."""
    if corpus.split is not None:
        part, with_validation = np.asarray(corpus.split), version.request.get("validation_rows") == "train"
        return np.asarray((part == TRAIN) | (with_validation & (part == VALIDATION)))
    if version.request.get("test_fraction") == 0 or (version.refit is not None and version.refit.reason is None):
        return np.ones(corpus.n_rows, bool)
    return None if split is None else split == TRAIN


def _keys(corpus: Corpus) -> NDArray[np.uint64]:
    texts = [part for part in corpus.parts if isinstance(part, Texts)]
    return row_keys(corpus.segments, texts, corpus.feature_names)
