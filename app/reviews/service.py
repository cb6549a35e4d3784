"""Review queues: created from the answers of prediction jobs, shown and deleted."""

from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sqlalchemy import delete as sql_delete
from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.curation.schemas import SuggestRowsRequest
from app.datasets import versions as dataset_versions
from app.errors import Conflict, InvalidInput, Item
from app.predictions import batch_predictions
from app.predictions.schemas import BatchPredictRequest
from app.reviews import progress
from app.reviews.schemas import Review, ReviewRequest
from app.schemas import Page
from app.store import tables
from app.store.corpus import open_corpus
from app.store.db import db_now, new_id, reading, writing
from app.store.files import files
from app.store.lookup import by_id, by_ref, moment, newest, require_owner

MOST_ROWS = 100_000
_AT_ONCE = 1000


def create(session: Session, request: ReviewRequest) -> Review:
    """Create a queue from the rows of a prediction job that are not sure, and a random share of the sure ones.

    Rows of a job that suggests rows all go into the queue.

    Raises
    ------
    NotFound
        No such job, it makes no predictions, or its file was removed.
    Conflict
        The job has not succeeded, its dataset was deleted, or the name is taken.
    InvalidInput
        The job's file does not say which rows are sure, or more rows than a queue may have are not.
    """
    taken = Conflict(f"a review is named {request.name!r} already; choose another name")
    file = batch_predictions.of_job(session, request.job)
    with reading(session):
        job = by_id(session, tables.Job, request.job)
        asked = _asked(job)
        if session.scalars(select(tables.Review.id).where(tables.Review.name == request.name)).first() is not None:
            raise taken
        dataset = dataset_versions.find(session, job.dataset_id, asked.dataset_version)
    if dataset is None:
        raise Conflict("the dataset of the job was deleted; its rows cannot be shown")
    rows = _rows(file, asked, request, dataset.path)
    result = job.result or {}
    with writing(session):
        now: float = session.scalars(select(db_now())).one()
        review = tables.Review(
            id=new_id(),
            name=request.name,
            job_id=job.id,
            model=result["model"],
            version=result["version"],
            dataset_id=job.dataset_id,
            dataset_version=asked.dataset_version or 1,
            sure_share=request.sure_share,
            seed=request.seed,
            opinions=request.opinions,
            promised=(result.get("sure") or {}).get("precision"),
            created_at=now,
        )
        session.add(review)
        try:
            session.flush()
        except IntegrityError:
            session.rollback()
            raise taken from None
        for begin in range(0, len(rows), _AT_ONCE):
            some = [row | {"review_id": review.id} for row in rows[begin : begin + _AT_ONCE]]
            session.execute(insert(tables.ReviewRow), some)
        return _show(session, review)


def get(session: Session, ref: str) -> Review:
    """A queue by id or name, with its progress; raises NotFound."""
    with reading(session):
        return _show(session, by_ref(session, tables.Review, ref))


def page(session: Session, page_size: int = 100, page_token: str | None = None) -> Page[Review]:
    """Queues, newest first."""
    with reading(session):
        rows, token = newest(session, tables.Review, select(tables.Review), page_size, page_token)
        return Page[Review](items=[_show(session, row) for row in rows], next_page_token=token)


def delete(session: Session, ref: str) -> None:
    """Delete a queue with its rows and decisions.

    Raises
    ------
    NotFound
        There is none.
    Forbidden
        Another key made it.
    """
    with writing(session):
        review = by_ref(session, tables.Review, ref, lock=True)
        require_owner(session, review)
        for table in (tables.ReviewOpinion, tables.ReviewRow):
            session.execute(sql_delete(table).where(table.review_id == review.id))
        session.delete(review)


def _asked(job: tables.Job) -> BatchPredictRequest | SuggestRowsRequest:
    kind = SuggestRowsRequest if job.kind == "suggest_rows" else BatchPredictRequest
    return kind.model_validate(job.request)


def _rows(
    file: batch_predictions.PredictionFile,
    asked: BatchPredictRequest | SuggestRowsRequest,
    request: ReviewRequest,
    path: str,
) -> list[dict[str, Any]]:
    """The rows of the queue: the least sure first, or in the order in which they were suggested.

    Sampled sure rows have random places among them.
    """
    suggested = isinstance(asked, SuggestRowsRequest)
    if isinstance(asked, BatchPredictRequest) and asked.format != "parquet":
        _refuse(f"the job wrote {asked.format}; a review needs a job with format=parquet")
    names = pq.read_schema(file.path).names
    if "labels" in names:
        _refuse("the model predicts sets of labels; a review needs a model that predicts one label per row")
    if isinstance(asked, BatchPredictRequest) and asked.threshold is None and asked.min_precision is None:
        _refuse("the job does not say which rows are sure; start it with min_precision or threshold")
    suffixes = [""] + [f"_{k}" for k in range(2, asked.top_k + 1) if f"label_{k}" in names]
    fields = [f"{field}{suffix}" for suffix in suffixes for field in ("label", "name", "probability")]
    answers = pq.read_table(file.path, columns=["row", "sure", *fields])
    sure = answers["sure"].to_numpy(zero_copy_only=False).astype(bool)
    sampled = _sample(np.flatnonzero(sure), request.sure_share, request.seed)
    chosen = np.concatenate([np.flatnonzero(~sure), sampled])
    if len(chosen) > MOST_ROWS:
        _refuse(
            f"the review would have {len(chosen):,} rows; {MOST_ROWS:,} are the most: predict a part of the dataset"
        )
    if len(chosen) == 0:
        _refuse("all rows of the job are sure; nothing is left to review, or ask for a sure_share")
    corpus = open_corpus(files(), path)
    found: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for is_sure, answer in zip(sure[chosen].tolist(), answers.take(chosen).to_pylist(), strict=True):
        row = answer["row"]
        given = [{field: answer[f"{field}{s}"] for field in ("label", "name", "probability")} for s in suffixes]
        found[is_sure].append(
            {
                "row": row,
                "row_id": None if corpus.ids is None else corpus.ids[row],
                "text": None if corpus.texts is None else corpus.texts[row],
                "record": None if corpus.columns is None else corpus.record(row),
                "alternatives": [each for each in given if each["label"] is not None],
                "sure": is_sure,
                "state": "open",
                "revision": 1,
            }
        )
    unsure = found[False]
    if not suggested:
        unsure.sort(key=lambda each: (_probability(each), each["row"]))
    return [each | {"place": place} for place, each in enumerate(scattered(unsure, found[True], request.seed))]


def scattered(unsure: list[dict[str, Any]], sampled: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Rows in order, with others at random places: by probability they would all be the last, and be known by that."""
    draw = np.random.default_rng([seed, 1])
    n = len(unsure) + len(sampled)
    is_sampled = np.zeros(n, bool)
    is_sampled[draw.permutation(n)[: len(sampled)]] = True
    others = iter([sampled[at] for at in draw.permutation(len(sampled)).tolist()])
    in_order = iter(unsure)
    return [next(others if each else in_order) for each in is_sampled.tolist()]


def _refuse(detail: str) -> None:
    raise InvalidInput("the job cannot be reviewed", [Item(detail, "/job")])


def _sample(sure: Any, share: float, seed: int) -> Any:
    return np.sort(np.random.default_rng(seed).permutation(sure)[: round(share * len(sure))])


def _probability(row: dict[str, Any]) -> float:
    given = row["alternatives"]
    return (given[0]["probability"] or 0.0) if given else 0.0


def _show(session: Session, row: tables.Review) -> Review:
    n_rows = select(func.count()).select_from(tables.ReviewRow).where(tables.ReviewRow.review_id == row.id)
    return Review(
        id=row.id,
        name=row.name,
        owner=row.owner,
        job=row.job_id,
        model=row.model,
        version=row.version,
        dataset=row.dataset_id,
        dataset_version=row.dataset_version,
        sure_share=row.sure_share,
        seed=row.seed,
        opinions=row.opinions,
        created_at=moment(row.created_at),
        n_rows=session.scalars(n_rows).one(),
        states=progress.states(session, row.id),
        people=progress.people(session, row.id),
        agreement=progress.agreement(session, row.id),
        promised_precision=row.promised,
        measured_precision=progress.measured(session, row.id),
    )
