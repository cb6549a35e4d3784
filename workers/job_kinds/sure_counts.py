"""How many rows of a prediction job are sure, and what held-out rows promise for these."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.models.schemas import ModelVersion
from app.predictions.model_cache import LoadedModel
from app.predictions.schemas import BatchPredictRequest, SureRows
from app.predictions.sure_answers import Used, promise


def sure_rows(loaded: LoadedModel, request: BatchPredictRequest, used: Used, parts: Sequence[Path]) -> SureRows:
    """Counted over the pieces of the answers."""
    level = request.sure_level if isinstance(request.sure_level, int) else None
    asked: dict[str, Any] = {"asked": request.min_precision, "sure_level": request.sure_level}
    found = SureRows(**promise(loaded.model, used, level), **asked, n_rows=0, n_sure=0)
    if loaded.model.names_sets:
        return _of_sets(found, parts)
    along_tree = loaded.model.back_off is not None and loaded.tree is not None
    counts = np.zeros(loaded.tree.depth if loaded.tree is not None else 0, np.int64)
    n_rows = n_sure = n_broader = 0
    for part in parts:
        table = pq.read_table(part, columns=["label", "sure", "sure_ancestor"])
        n_rows, n_sure = n_rows + table.num_rows, n_sure + (pc.sum(table["sure"]).as_py() or 0)
        n_broader += table.num_rows - table["sure_ancestor"].null_count
        if along_tree:
            deepest = pc.if_else(table["sure"], table["label"], table["sure_ancestor"])
            counts += _by_level(loaded, deepest, len(counts))
    totals: dict[str, Any] = {"n_rows": n_rows, "n_sure": n_sure}
    if along_tree:
        totals |= {"n_broader": n_broader, "levels": counts.tolist()}
        totals |= {} if level is None else {"n_at_level": int(counts[level - 1 :].sum())}
    return found.model_copy(update=totals)


def _by_level(loaded: LoadedModel, nodes: pa.ChunkedArray, depth: int) -> NDArray[np.int64]:
    levels = np.zeros(depth, np.int64)
    for each in nodes.drop_null().value_counts().to_pylist():
        levels[len(loaded.path(each["values"]) or [0]) - 1] += each["counts"]
    return levels


def _of_sets(found: SureRows, parts: Sequence[Path]) -> SureRows:
    n_rows = n_sure = n_labels = n_sure_labels = 0
    for part in parts:
        for row in pq.read_table(part, columns=["sure"])["sure"].to_pylist():
            n_rows, n_labels, n_sure_labels = n_rows + 1, n_labels + len(row), n_sure_labels + sum(row)
            n_sure += bool(row) and all(row)
    totals = {"n_rows": n_rows, "n_sure": n_sure, "n_labels": n_labels, "n_sure_labels": n_sure_labels}
    return found.model_copy(update=totals)


def about(version: ModelVersion, request: BatchPredictRequest, sure: SureRows | None) -> list[tuple[str, Any]]:
    """What a workbook says of the model and its answers, line by line."""
    lines: list[tuple[str, Any]] = [
        ("Model", version.model),
        ("Version", version.version),
        ("SHA-256", version.sha256),
        ("Precision asked for", request.min_precision),
    ]
    if sure is None:
        return [*lines, ("Sure", "Neither a precision nor a threshold was asked for")]
    of = "labels" if sure.n_labels is not None else "sure rows"
    if isinstance(sure.sure_level, int):
        of = f"nodes at level {sure.sure_level}"
    lines += [
        ("Precision is of", {"any": "answers at all levels", "leaves": "labels"}.get(str(sure.sure_level), of)),
        ("Minimum probability", sure.threshold if sure.threshold is not None else "No threshold reaches the precision"),
        (f"Precision of held-out {of}", sure.precision),
        ("At least, with a confidence of 95 %", sure.lower_bound),
        ("Share of held-out rows that are sure", sure.answered),
        ("Rows", sure.n_rows),
        ("Sure rows", sure.n_sure),
    ]
    if sure.n_labels is not None:
        lines += [("Labels", sure.n_labels), ("Sure labels", sure.n_sure_labels)]
    if sure.levels is not None:
        lines.append(("Rows with a broader sure node only", sure.n_broader))
        if sure.n_at_level is not None:
            lines.append((f"Rows that are sure at level {sure.sure_level} or below", sure.n_at_level))
        lines += [(f"Rows whose deepest sure node is at level {level}", n) for level, n in enumerate(sure.levels, 1)]
    return lines
