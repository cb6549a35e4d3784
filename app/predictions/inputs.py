"""The columns of the input in files of predictions: those of the uploaded files, or what a dataset keeps of rows."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.config import settings
from app.datasets import append_sources
from app.datasets import versions as dataset_versions
from app.datasets.formats import FORMATS
from app.datasets.schemas import ImportOptions
from app.formats.csv_header import Blocks
from app.formats.parsing import source_columns
from app.formats.plain_file import MostUnpacked
from app.store import tables
from app.store.corpus import Corpus
from app.store.files import files

_BLOCK_ROWS = 8192


class Source(NamedTuple):
    """An uploaded file, and how it was read."""

    path: Path
    format: str
    options: ImportOptions


def sources(session: Session, dataset_id: str, number: int) -> list[Source] | None:
    """The files whose rows a version of a dataset has, in order; None where they do not say it row by row.

    They do not if one is gone or has no named columns.
    """
    versions = dataset_versions.until(session, dataset_id, number)
    query = select(tables.Job).where(tables.Job.id.in_([version.job_id for version in versions]))
    jobs = {job.id: job for job in session.scalars(query)}
    found = []
    for version in versions:
        job = jobs.get(version.job_id or "")
        if job is None:
            return None
        if job.kind == "correct":
            continue
        own = "source" if job.kind == "import" else None
        path = f"datasets/{dataset_id}/{own}" if own else append_sources.path_of(dataset_id, job.request)
        given = {name: job.request[name] for name in ImportOptions.model_fields if name in job.request}
        options = ImportOptions.model_validate(given)
        if FORMATS[job.request["format"]].columns is None:
            return None
        try:
            found.append(Source(files().local(path), job.request["format"], options))
        except FileNotFoundError:
            return None
    return found


class GivenColumns(NamedTuple):
    """The columns of the input.

    Attributes
    ----------
    names : list of str
    blocks : iterator of Table
        Rows, of which some may have been deleted from the dataset since.
    places : int64 array, shape (n_rows + 1,), or None
        The place among them of each row that the dataset has; None where all are there.
    """

    names: list[str]
    blocks: Iterator[pa.Table]
    places: NDArray[np.int64] | None = None


def input_columns(stack: ExitStack, found: list[Source] | None, corpus: Corpus) -> GivenColumns:
    """The columns of the input with its rows in blocks, open until the stack is closed.

    Parameters
    ----------
    found : list of Source or None
        What :func:`sources` found.
    corpus : Corpus
        Its own columns are given where the files do not have the same, or have rows that were left out.
    """
    n_given = corpus.n_rows if corpus.origins is None else int(corpus.origins[-1])
    if found and _n_rows(found) == n_given:
        opened = [stack.enter_context(_columns_of(source)) for source in found]
        names = opened[0][0]
        if all(others == names for others, _ in opened[1:]):
            return GivenColumns(names, (block for _, blocks in opened for block in blocks), corpus.origins)
    columns = list(_kept(corpus, np.arange(0)))
    begins = range(0, corpus.n_rows, _BLOCK_ROWS)
    blocks = (np.arange(begin, min(begin + _BLOCK_ROWS, corpus.n_rows)) for begin in begins)
    return GivenColumns(columns, (pa.table(_kept(corpus, rows)) for rows in blocks))


def _n_rows(found: list[Source]) -> int:
    n_rows = 0
    for source in found:
        with _columns_of(source) as (_, blocks):
            n_rows += sum(block.num_rows for block in blocks)
    return n_rows


def _columns_of(source: Source) -> Blocks:
    return source_columns(*source, MostUnpacked(settings().max_unpacked_bytes, settings().max_unpacked_ratio))


def _kept(corpus: Corpus, rows: Any) -> dict[str, pa.Array]:
    """What a dataset keeps of some rows: their ids, texts, numbers and categories."""
    chosen = rows.tolist()
    found: dict[str, pa.Array] = {}
    if corpus.ids is not None:
        found["id"] = pa.array([corpus.ids[row] for row in chosen], pa.string())
    if corpus.columns is not None:
        records = [corpus.record(row) for row in chosen]
        numbers = set(corpus.columns.numbers)
        for name in (*corpus.columns.numbers, *corpus.columns.categories):
            kind = pa.float64() if name in numbers else pa.string()
            found[name] = pa.array([record.get(name) for record in records], kind)
    if corpus.texts is not None:
        found["text"] = pa.array([corpus.texts[row] for row in chosen], pa.string())
    return found
