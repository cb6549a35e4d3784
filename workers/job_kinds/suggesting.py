"""Jobs that suggest rows: a version reads the rows of a dataset once, and the rows most worth labelling are chosen."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from sqlalchemy.orm import Session
from threadpoolctl import threadpool_limits

from app.curation import service as curation
from app.curation.schemas import SuggestRowsRequest
from app.datasets import versions as dataset_versions
from app.errors import Conflict, InvalidInput
from app.models.rows import matrix
from app.models.schemas import ModelVersion
from app.predictions import batch_predictions
from app.predictions.model_cache import LoadedModel
from app.predictions.schemas import BatchPredictRequest
from app.store.cache import cached_corpus
from app.store.corpus import Corpus
from app.store.files import Files, files
from solvers.core.model import Model
from solvers.metrics.ranking import Ranking
from solvers.selection import next_rows
from workers.job_kinds.answer_files import Answers
from workers.job_kinds.answer_writers import write_part
from workers.job_kinds.predicting import BLOCK_BYTES, MOST_ROWS, loaded_rows
from workers.running.job_context import JobContext

# of the time of a job; the rest is for the choice
_SCORING = 0.9


def suggest_rows(context: JobContext) -> None:
    """Score the rows in blocks, choose among the least sure ones, and end the job with the file of chosen rows."""
    store, lease = files(), context.lease
    request = SuggestRowsRequest.model_validate(lease.request)
    _, version, loaded, corpus, rows = loaded_rows(context, request)
    if request.skip_decided:
        decided = context.read(lambda session: curation.decided_rows(session, lease.dataset_id, corpus))
        rows = rows[~np.isin(rows, np.array(decided, np.int64))]
    if len(rows) == 0:
        raise InvalidInput("no row is left to suggest; a review queue has decided all of them")
    with threadpool_limits(1):
        doubts = _scored(context, loaded, corpus, rows)
        context.phase("choosing", at_once=False, fraction=_SCORING)
        table = _chosen(context, store, request, loaded, corpus, rows, doubts)
    context.phase("saving", at_once=False)
    result = batch_predictions.path_of(lease.job_id, "parquet")
    path = store.path(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_part(path, table)
    store.publish(result)

    def finish(_session: Session) -> dict[str, Any]:
        return {
            "model": version.model,
            "version": version.version,
            "dataset": lease.dataset_id,
            "n_rows": table.num_rows,
        }

    context.succeed(finish)


class _Doubts(NamedTuple):
    """The margin and the best class of each row; all that is stored of its scores."""

    margin: NDArray[np.float32]
    first: NDArray[np.int64]


def _scored(context: JobContext, loaded: LoadedModel, corpus: Corpus, rows: NDArray[np.int64]) -> _Doubts:
    margin, first = np.empty(len(rows), np.float32), np.empty(len(rows), np.int64)
    step = max(1, min(MOST_ROWS, BLOCK_BYTES // (8 * len(loaded.model.classes))))
    context.phase("scoring", at_once=True)
    for begin in range(0, len(rows), step):
        context.check()
        some = slice(begin, begin + step)
        ranking = loaded.model.ranking(matrix(corpus, loaded.features, rows[some]))
        first[some] = ranking.first()
        margin[some] = _margins(loaded.model, ranking, first[some])
        context.note(fraction=_SCORING * min(begin + step, len(rows)) / len(rows))
    return _Doubts(margin, first)


def _margins(model: Model, ranking: Ranking, first: NDArray[np.int64]) -> NDArray[np.float32]:
    above = model.set_margins(ranking.values if ranking.set_scores is None else ranking.set_scores)
    if above is None:
        return next_rows.margins(ranking.values, first, probabilities=ranking.tells_probabilities)
    return next_rows.margins_of_sets(above, ranking.values)


def _chosen(
    context: JobContext,
    store: Files,
    request: SuggestRowsRequest,
    loaded: LoadedModel,
    corpus: Corpus,
    rows: NDArray[np.int64],
    doubts: _Doubts,
) -> pa.Table:
    """The table of suggested rows: those of labels with few rows, then the least sure ones."""
    margin, first = doubts
    few = np.empty(0, np.int64)
    if request.few_rows_share > 0:
        counts = _training_rows(context, store, loaded)
        budget = round(request.few_rows_share * request.budget)
        few = next_rows.few_rows_first(margin, first, counts, request.few_rows, budget)
    left = request.budget - len(few)
    pool = next_rows.least_sure(margin, left, request.diversity, few)
    spread = np.arange(min(left, len(pool)))
    if len(pool) > left > 0:
        X = sp.csr_matrix(matrix(corpus, loaded.features, rows[pool]))
        context.check()
        spread = next_rows.spread(X, margin[pool], left, request.diversity, request.seed)
    chosen = np.concatenate([few, pool[spread]])
    reasons = ["few_rows"] * len(few) + ["least_sure"] * len(spread)
    asked = BatchPredictRequest(model=request.model, dataset=request.dataset, top_k=request.top_k)
    answers, tables = Answers(loaded, asked), []
    step = max(1, min(MOST_ROWS, BLOCK_BYTES // (8 * len(loaded.model.classes))))
    for begin in range(0, len(chosen), step):
        some = rows[chosen[begin : begin + step]]
        ids = None if corpus.ids is None else [corpus.ids[row] for row in some.tolist()]
        tables.append(answers.table(some, loaded.model.ranking(matrix(corpus, loaded.features, some)), ids))
    of_chosen = margin[chosen].astype(np.float64)
    table = pa.concat_tables(tables).append_column("reason", pa.array(reasons, pa.string()))
    return table.append_column("margin", pa.array(of_chosen, mask=~np.isfinite(of_chosen)))


def _training_rows(context: JobContext, store: Files, loaded: LoadedModel) -> NDArray[np.int64]:
    """Rows of each class in the dataset that the version was trained on."""
    version: ModelVersion = loaded.version
    number = version.request.get("dataset_version")
    trained = context.read(lambda session: dataset_versions.find(session, version.dataset, number))
    if version.dataset is None or trained is None:
        raise Conflict(
            "the dataset that the version was trained on was deleted, so labels with few rows are unknown; set "
            "few_rows_share to 0"
        )
    corpus, _ = loaded.labels.mapped(cached_corpus(store, trained.path))
    of = dict(zip(corpus.labels, np.bincount(np.asarray(corpus.y), minlength=len(corpus.labels)).tolist(), strict=True))
    return np.array([of.get(label, 0) for label in loaded.model.classes], np.int64)
