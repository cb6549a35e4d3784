"""Rows of a job's file of answers as rows of a review queue, in the order in which people decide them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.curation.schemas import SuggestRowsRequest
from app.errors import InvalidInput, Item
from app.predictions.batch_predictions import PredictionFile
from app.predictions.schemas import BatchPredictRequest
from app.reviews.schemas import ReviewRequest
from app.store.corpus import Corpus, open_corpus
from app.store.files import files

MOST_ROWS = 100_000
# of a row whose columns are all numbers; rows with more have no content in a queue
MOST_NUMBERS = 1000
_OF_ONE = ("label", "name", "probability")
_OF_SETS = ("labels", "names", "probabilities", "scores")
_OF_OTHERS = ("alternatives", "alternative_names", "alternative_probabilities", "alternative_scores")

Row = dict[str, Any]


def rows_of_job(
    file: PredictionFile, asked: BatchPredictRequest | SuggestRowsRequest, request: ReviewRequest, path: str
) -> tuple[list[Row], bool]:
    """The rows of a queue, and whether they have sets of labels.

    Suggested rows keep their order. Others come the least certain first: by the probability of the label, and of sets
    by :func:`certainty`. Sampled sure rows have random places among them.

    Parameters
    ----------
    file : PredictionFile
        What the job wrote.
    asked : BatchPredictRequest or SuggestRowsRequest
        What the job was asked for.
    path : str
        Where the rows of the dataset are kept.

    Raises
    ------
    InvalidInput
        The file does not say which rows are sure, or the queue would have no rows or more than 100,000.
    """
    if isinstance(asked, BatchPredictRequest) and asked.format != "parquet":
        _refuse(f"the job wrote {asked.format}; a review needs a job with format=parquet")
    schema = pq.read_schema(file.path)
    sets = pa.types.is_list(schema.field("sure").type)
    marked = isinstance(asked, BatchPredictRequest) and (asked.threshold is not None or asked.min_precision is not None)
    if isinstance(asked, BatchPredictRequest) and not marked and not sets:
        _refuse("the job does not say which rows are sure; start it with min_precision or threshold")
    suffixes = [""] + [f"_{k}" for k in range(2, asked.top_k + 1) if f"label_{k}" in schema.names]
    fields = [f"{field}{suffix}" for suffix in suffixes for field in _OF_ONE]
    if sets:
        fields = [*_OF_SETS, *(_OF_OTHERS if asked.top_k > 1 else ())]
    at_level = isinstance(asked, BatchPredictRequest) and isinstance(asked.sure_level, int)
    answers = pq.read_table(file.path, columns=["row", "sure", *(["sure_ancestor"] if at_level else []), *fields])
    said = answers["sure"].to_pylist()
    sure = np.array([bool(each) and all(each) for each in said] if sets else said, dtype=bool)
    if at_level:
        sure |= answers["sure_ancestor"].is_valid().to_numpy()
    chosen = _chosen(sure, request)
    corpus = open_corpus(files(), path)
    found: dict[bool, list[tuple[float, int, Row]]] = {False: [], True: []}
    for is_sure, answer in zip(sure[chosen].tolist(), answers.take(chosen).to_pylist(), strict=True):
        given, certain = _of_set(answer) if sets else _of_one(answer, suffixes)
        said_of = {"alternatives": given, "sure": is_sure, "state": "open", "revision": 1}
        found[is_sure].append((certain, answer["row"], _content(corpus, answer["row"]) | said_of))
    if isinstance(asked, BatchPredictRequest):
        found[False].sort(key=lambda each: each[:2])
    unsure, others = ([shown for _, _, shown in found[is_sure]] for is_sure in (False, True))
    return [each | {"place": place} for place, each in enumerate(scattered(unsure, others, request.seed))], sets


def _chosen(sure: NDArray[np.bool_], request: ReviewRequest) -> NDArray[np.int64]:
    """Places of the rows that are not sure, and of a sample of the sure ones."""
    sampled = _sample(np.flatnonzero(sure), request.sure_share, request.seed)
    chosen = np.concatenate([np.flatnonzero(~sure), sampled])
    if len(chosen) > MOST_ROWS:
        _refuse(f"the review would have {len(chosen):,} rows; at most {MOST_ROWS:,} are allowed: predict a part")
    if len(chosen) == 0:
        _refuse("all rows of the job are sure; nothing is left to review; set sure_share to include sure rows")
    return chosen


def _content(corpus: Corpus, row: int) -> Row:
    record: Row = {}
    if (
        corpus.columns is not None
        and len(corpus.columns.texts) > 1
        and corpus.texts is not None
        and corpus.texts.has_fields
    ):
        record |= zip(corpus.columns.texts, corpus.texts.fields(row), strict=True)
    if corpus.kind == "table":
        record |= corpus.record(row)
    elif corpus.kind == "sparse" and len(names := corpus.feature_names or ()) <= MOST_NUMBERS:
        record |= dict.fromkeys(names, 0.0) | {names[at]: value for at, value in corpus.features(row)}
    return {
        "row": row,
        "row_id": None if corpus.ids is None else corpus.ids[row],
        "text": None if corpus.texts is None else corpus.texts[row],
        "record": record or None,
    }


def certainty(predicted: Sequence[float], others: Sequence[float]) -> float:
    """The F1 score that is expected of a predicted set, 0 of an empty one.

    It is the ratio of the expectations in 2 |A and B| / (|A| + |B|), for the predicted set A and the right set B.

    Parameters
    ----------
    predicted, others : sequence of float
        Probabilities of the labels in the set, and of the next best ones.
    """
    total = len(predicted) + sum(predicted) + sum(others)
    return 2.0 * sum(predicted) / total if predicted else 0.0


def scattered(unsure: list[Row], sampled: list[Row], seed: int) -> list[Row]:
    """Rows in order, with others at random places: by probability they would all be the last, and be known by that."""
    draw = np.random.default_rng([seed, 1])
    n = len(unsure) + len(sampled)
    is_sampled = np.zeros(n, bool)
    is_sampled[draw.permutation(n)[: len(sampled)]] = True
    others = iter([sampled[at] for at in draw.permutation(len(sampled)).tolist()])
    in_order = iter(unsure)
    return [next(others if each else in_order) for each in is_sampled.tolist()]


def _of_one(answer: Row, suffixes: Sequence[str]) -> tuple[list[Row], float]:
    """The alternatives of an answer with one label, and its certainty."""
    given = [{field: answer[f"{field}{suffix}"] for field in _OF_ONE} for suffix in suffixes]
    listed = [each | {"predicted": at == 0} for at, each in enumerate(given) if each["label"] is not None]
    return listed, ((listed[0]["probability"] or 0.0) if listed else 0.0)


def _of_set(answer: Row) -> tuple[list[Row], float]:
    """The predicted labels of an answer and its next best ones, and its certainty.

    Without probabilities the certainty is the distance from 0, where the decision changes, of the score nearest to it.
    """
    predicted, others = list(_listed(answer, _OF_SETS)), list(_listed(answer, _OF_OTHERS))
    alternatives = [
        {"label": label, "name": name, "probability": probability, "predicted": some is predicted}
        for some in (predicted, others)
        for label, name, probability, _ in some
    ]
    said = [each["probability"] for each in alternatives]
    if None in said:
        scores = [abs(score) for *_, score in (*predicted, *others)]
        return alternatives, (min(scores) if predicted else 0.0)
    return alternatives, certainty(said[: len(predicted)], said[len(predicted) :])


def _listed(answer: Row, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(answer.get(column) or [] for column in columns), strict=True)


def _refuse(detail: str) -> None:
    raise InvalidInput("the job cannot be reviewed", [Item(detail, "/job")])


def _sample(sure: Any, share: float, seed: int) -> Any:
    return np.sort(np.random.default_rng(seed).permutation(sure)[: round(share * len(sure))])
