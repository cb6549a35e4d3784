"""Prediction jobs: a version answers to the rows of a dataset, piece by piece, into one file."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy.orm import Session
from threadpoolctl import threadpool_limits

from app.errors import Conflict, InvalidInput
from app.formats.labels import PARTS
from app.schemas.predictions.batch_predictions import BatchPredictRequest
from app.services.datasets import dataset_versions
from app.services.models import models
from app.services.models.model_rows import matrix
from app.services.predictions import batch_predictions
from app.services.predictions.model_cache import LoadedModel, load_version
from app.store.cache import local_copy
from app.store.corpus import Corpus, open_corpus
from app.store.files import Files, files
from workers.job_kinds.answer_files import answers, join, write_part
from workers.running.job_context import JobContext

PART_ROWS, BLOCK_BYTES, MOST_ROWS = 1 << 16, 32 << 20, 4096
_JOINING = 0.05


def predict(context: JobContext) -> None:
    """Answer row by row, and end the job with the file of all answers.

    Pieces of the file are named by their first row, and each appears whole: a job that is taken up again goes on after
    those that are there, and what is in them does not depend on who wrote them.
    """
    store, lease = files(), context.lease
    request = BatchPredictRequest.model_validate(lease.request)
    context.phase("loading")
    dataset = context.read(lambda session: dataset_versions.find(session, lease.dataset_id, request.dataset_version))
    if dataset is None:
        raise Conflict("the dataset was deleted")
    version = context.read(lambda session: models.version(session, request.model, request.version))
    loaded = context.read(lambda session: load_version(session, version))
    corpus = open_corpus(local_copy(store, dataset.path), dataset.path)
    rows = _rows(request, corpus)
    with threadpool_limits(1):
        parts = _answer(context, store, request, loaded, corpus, rows)
    context.phase("saving", at_once=False, fraction=1.0 - _JOINING)
    join(parts, store.path(batch_predictions.path_of(lease.job_id, request.format)), request.format)

    def finish(_session: Session) -> dict[str, Any]:
        return {
            "model": version.model,
            "version": version.version,
            "dataset": lease.dataset_id,
            "predictions": lease.job_id,
            "n_rows": len(rows),
        }

    context.succeed(finish)
    store.delete(f"jobs/{lease.job_id}")


def _rows(request: BatchPredictRequest, corpus: Corpus) -> NDArray[np.int64]:
    if request.part == "all" or corpus.split is None:
        return np.arange(corpus.n_rows, dtype=np.int64)
    rows = np.flatnonzero(np.asarray(corpus.split) == PARTS.index(request.part))
    if len(rows) == 0:
        raise InvalidInput(f"the dataset has no rows in the part {request.part}")
    return rows


def _answer(
    context: JobContext,
    store: Files,
    request: BatchPredictRequest,
    loaded: LoadedModel,
    corpus: Corpus,
    rows: NDArray[np.int64],
) -> list[Path]:
    """The pieces of all answers, those that were not there yet made now."""
    folder = store.path(f"jobs/{context.lease.job_id}")
    folder.mkdir(parents=True, exist_ok=True)
    classes = np.array(loaded.model.classes, object)
    context.phase("scoring", at_once=True)
    parts = []
    for begin in range(0, len(rows), PART_ROWS):
        part = folder / f"{begin:012}.parquet"
        if not part.exists():
            chosen = rows[begin : begin + PART_ROWS]
            _write(context, part, request, loaded, corpus, chosen, classes)
        parts.append(part)
        context.note(fraction=(1.0 - _JOINING) * min(begin + PART_ROWS, len(rows)) / len(rows))
    return parts


def _write(
    context: JobContext,
    part: Path,
    request: BatchPredictRequest,
    loaded: LoadedModel,
    corpus: Corpus,
    rows: NDArray[np.int64],
    classes: NDArray[Any],
) -> None:
    step = max(1, min(MOST_ROWS, BLOCK_BYTES // (8 * len(classes))))
    found = []
    for begin in range(0, len(rows), step):
        context.check()
        some = rows[begin : begin + step]
        X = matrix(corpus, loaded.features, some)
        if X.shape[1] != loaded.model.n_features:
            raise InvalidInput(f"the rows have {X.shape[1]} features; the model has {loaded.model.n_features}")
        ids = None if corpus.ids is None else [corpus.ids[row] for row in some.tolist()]
        found.append(answers(some, loaded.model.ranking(X), classes, request.top_k, ids))
    write_part(part, pa.concat_tables(found))
