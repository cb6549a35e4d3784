"""Answers as tables, and the files that they are written to: Parquet, CSV, JSON lines."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.schemas.predictions.batch_predictions import PredictionFormat
from solvers.metrics.ranking import Ranking
from solvers.numerics.best import best


def answers(
    rows: NDArray[np.int64],
    ranking: Ranking,
    classes: NDArray[Any],
    top_k: int,
    ids: Sequence[str] | None = None,
) -> pa.Table:
    """The answers to some rows.

    Parameters
    ----------
    rows : int64 array, shape (n,)
        Their numbers.
    ranking : Ranking
        Of the model, for these rows.
    classes : array of str, shape (n_classes,)
    top_k : int
    ids : sequence of str, optional
        What the file calls these rows.

    Returns
    -------
    Table
        ``row`` and, where there are any, ``id``; ``labels`` of models that name sets, else ``label``, ``score`` and, of
        models that tell them, ``probability``, and the same with ``_2`` and so on for the next best.
    """
    columns: dict[str, Any] = {"row": pa.array(rows)}
    if ids is not None:
        columns["id"] = pa.array(ids, pa.string())
    if ranking.sets is not None:
        sets = ranking.sets.tocsr()
        named = pa.array(classes[sets.indices], pa.string())
        columns["labels"] = pa.ListArray.from_arrays(pa.array(sets.indptr.astype(np.int32)), named)
        return pa.table(columns)
    order = _order(ranking, top_k)
    scores = np.take_along_axis(ranking.values, order, axis=1).astype(np.float64)
    for place in range(order.shape[1]):
        suffix = "" if place == 0 else f"_{place + 1}"
        score = scores[:, place]
        never = np.isneginf(score)  # classes that are never an answer
        columns[f"label{suffix}"] = pa.array(classes[order[:, place]], pa.string(), mask=never)
        columns[f"score{suffix}"] = pa.array(score, mask=~np.isfinite(score))
        if ranking.tells_probabilities:
            columns[f"probability{suffix}"] = pa.array(np.minimum(np.exp(score), 1.0), mask=never)
    return pa.table(columns)


def _order(ranking: Ranking, top_k: int) -> NDArray[np.int64]:
    first = ranking.first()[:, None]
    if top_k == 1:
        return first
    if ranking.ties is None:
        order, _ = best(ranking.values, top_k + 1)
    else:
        order = np.lexsort((-ranking.ties, -ranking.values), axis=1)
    listed = order[:, : top_k + 1]
    # the prediction may be found by another way than the order, and come first all the same
    others = np.sort(np.where(listed == first, listed.shape[1], np.arange(listed.shape[1])), axis=1)[
        :, : listed.shape[1] - 1
    ]
    rest = np.take_along_axis(listed, others.clip(max=listed.shape[1] - 1), axis=1)
    return np.hstack([first, rest])[:, : min(top_k, ranking.values.shape[1])]


def write_part(path: Path, table: pa.Table) -> None:
    """Write a piece of the answers, which appears whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        pq.write_table(table, file, compression="lz4")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def join(parts: Iterable[Path], path: Path, format: PredictionFormat) -> None:
    """Write all pieces, in order, to one file, which appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            _WRITERS[format]((pq.read_table(part) for part in parts), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _parquet(tables: Iterable[pa.Table], file: Any) -> None:
    writer = None
    for table in tables:
        writer = pq.ParquetWriter(file, table.schema) if writer is None else writer
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _csv(tables: Iterable[pa.Table], file: Any) -> None:
    for number, table in enumerate(tables):
        plain = table
        if "labels" in table.column_names:  # CSV has no lists
            sets = [json.dumps(labels, ensure_ascii=False) for labels in table["labels"].to_pylist()]
            plain = table.set_column(table.column_names.index("labels"), "labels", pa.array(sets, pa.string()))
        pacsv.write_csv(plain, file, pacsv.WriteOptions(include_header=number == 0))


def _jsonl(tables: Iterable[pa.Table], file: Any) -> None:
    for table in tables:
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in table.to_pylist())


_WRITERS = {"parquet": _parquet, "csv": _csv, "jsonl": _jsonl}
