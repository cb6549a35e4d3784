"""Prediction jobs: a version predicts the rows of a dataset in pieces, which become one file."""

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sqlalchemy.orm import Session
from threadpoolctl import threadpool_limits

from app.curation.schemas import SuggestRowsRequest
from app.datasets import versions as dataset_versions
from app.datasets.statistics_schemas import Languages
from app.errors import InvalidInput
from app.features.language_detection import is_among
from app.features.named_text import OF_TABLES
from app.formats.label_sets import separator_for
from app.formats.labels import PARTS
from app.models import service as models
from app.models.rows import cells, matrix, text_languages
from app.models.schemas import ModelVersion
from app.plurals import counted
from app.predictions import batch_predictions, inputs
from app.predictions.model_cache import LoadedModel, load_version
from app.predictions.schemas import BatchPredictRequest, SureRows
from app.predictions.sure_answers import Used, promise
from app.store import tables
from app.store.cache import cached_corpus
from app.store.corpus import Corpus
from app.store.files import Files, files
from app.store.row_checks import MANY_TEXTS
from workers.job_kinds.answer_files import Answers
from workers.job_kinds.answer_writers import Inputs, Layout, join, renamed, write_part
from workers.phases.trained_rows import n_trained_on
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
    dataset, version, loaded, corpus, rows = loaded_rows(context, request)
    answers = Answers(loaded, request)
    with threadpool_limits(1):
        parts = _answer(context, store, answers, loaded, corpus, rows)
    context.phase("saving", at_once=False, fraction=1.0 - _JOINING)
    sure = None if answers.used is None else sure_rows(loaded, request, answers.used, parts)
    n_trained = n_trained_on(context, store, version, corpus, rows)
    warnings = [trained_on_sentence(n_trained, len(rows))] if n_trained else []
    warnings += unseen_languages(loaded, dataset.statistics.get("languages"))
    warnings += _unknown_texts(parts)
    found = context.read(lambda session: inputs.sources(session, str(lease.dataset_id), request.dataset_version or 1))
    read = [lease.dataset_id, loaded.version.dataset]
    separator = context.read(lambda session: batch_predictions.separator(session, read))
    with ExitStack() as stack:
        columns = pq.read_schema(parts[0]).names
        given = None
        if request.inputs:
            read_columns = inputs.input_columns(stack, found, corpus)
            if read_columns.names:
                columns = [column for column in columns if column != "id"]  # the input has it, by its own name
                given = Inputs(renamed(read_columns.names, columns), read_columns.blocks, read_columns.places)
        marks = separator_for(loaded.model.classes, separator)
        layout = Layout(columns, marks, request.bom, about(loaded.version, request, sure, n_trained))
        result = batch_predictions.path_of(lease.job_id, request.format)
        join(parts, store.path(result), request.format, given, layout)
        if request.target is not None:
            with store.path(result).open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            batch_predictions.write_to_target(request.target, store.path(result), sha256)
        store.publish(result)

    def finish(_session: Session) -> dict[str, Any]:
        return {
            "model": version.model,
            "version": version.version,
            "dataset": lease.dataset_id,
            "predictions": lease.job_id,
            "target": request.target,
            "n_rows": len(rows),
            "columns": [*(() if given is None else given.names), *columns],
            "sure": None if sure is None else sure.model_dump(mode="json"),
            "n_trained_on": n_trained,
            "warning": ". ".join(warnings) or None,
        }

    context.succeed(finish)
    store.delete(f"jobs/{lease.job_id}")


class LoadedRows(NamedTuple):
    """What a request names: a dataset's version, a model's version, also in memory, and numbers of rows."""

    dataset: tables.DatasetVersion
    version: ModelVersion
    loaded: LoadedModel
    corpus: Corpus
    rows: NDArray[np.int64]


def loaded_rows(context: JobContext, request: BatchPredictRequest | SuggestRowsRequest) -> LoadedRows:
    """Load what a request names; raises InvalidInput where the dataset has no rows in the part."""
    context.phase("loading")
    number, id = request.dataset_version, context.lease.dataset_id
    dataset = context.read(lambda session: dataset_versions.stored(session, id, number))
    version = context.read(lambda session: models.version(session, request.model, request.version))
    loaded = context.read(lambda session: load_version(session, version))
    corpus = cached_corpus(files(), dataset.path)
    rows = np.arange(corpus.n_rows, dtype=np.int64)
    if request.part != "all" and corpus.split is not None:
        rows = np.flatnonzero(np.asarray(corpus.split) == PARTS.index(request.part))
        if len(rows) == 0:
            raise InvalidInput(f"the dataset has no rows in the part {request.part}")
    return LoadedRows(dataset, version, loaded, corpus, rows)


def _answer(
    context: JobContext,
    store: Files,
    answers: Answers,
    loaded: LoadedModel,
    corpus: Corpus,
    rows: NDArray[np.int64],
) -> list[Path]:
    """All pieces of the predictions; missing ones are computed now."""
    folder = f"jobs/{context.lease.job_id}"
    store.path(folder).mkdir(parents=True, exist_ok=True)
    context.phase("scoring", at_once=True)
    parts = []
    for begin in range(0, len(rows), PART_ROWS):
        part = f"{folder}/{begin:012}.parquet"
        if not store.exists(part):
            chosen = rows[begin : begin + PART_ROWS]
            _write(context, store.path(part), answers, loaded, corpus, chosen)
            store.publish(part)
        parts.append(store.local(part))
        context.note(fraction=(1.0 - _JOINING) * min(begin + PART_ROWS, len(rows)) / len(rows))
    return parts


def _write(
    context: JobContext,
    part: Path,
    answers: Answers,
    loaded: LoadedModel,
    corpus: Corpus,
    rows: NDArray[np.int64],
) -> None:
    step = max(1, min(MOST_ROWS, BLOCK_BYTES // (8 * len(loaded.model.classes))))
    found = []
    for begin in range(0, len(rows), step):
        context.check()
        some = rows[begin : begin + step]
        X = matrix(corpus, loaded.features, some)
        if X.shape[1] != loaded.model.n_features:
            raise InvalidInput(f"the rows have {X.shape[1]} features; the model expects {loaded.model.n_features}")
        ids = None if corpus.ids is None else [corpus.ids[row] for row in some.tolist()]
        known = loaded.features.known_terms(X.indices)
        n_known = None if known is None else np.diff(np.concatenate([[0], np.cumsum(known)])[X.indptr])
        table = answers.table(some, loaded.model.ranking(X), ids, n_known)
        languages = text_languages(corpus, loaded.features, some)
        if languages is not None:
            table = table.append_column("text_language", pa.array(languages, pa.string()))
        found.append(_with_unknown(table, loaded, corpus, some))
    write_part(part, pa.concat_tables(found))


def _with_unknown(table: pa.Table, loaded: LoadedModel, corpus: Corpus, rows: NDArray[np.int64]) -> pa.Table:
    """Predictions of a model on tables, with the values of each row that no training row has."""
    if not isinstance(loaded.features, OF_TABLES):
        return table
    unknown = loaded.features.terms.unknown_levels(*cells(corpus, rows))
    return table.append_column("unknown", pa.array(unknown, pa.list_(pa.string())))


def sure_rows(loaded: LoadedModel, request: BatchPredictRequest, used: Used, parts: Sequence[Path]) -> SureRows:
    """Counted over the pieces of the answers."""
    asked: dict[str, Any] = {"asked": request.min_precision, "sure_level": request.sure_level}
    found = SureRows(**promise(loaded.model, used), **asked, n_rows=0, n_sure=0)
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
    totals: dict[str, Any] = {"n_rows": n_rows, "n_sure": n_sure, "n_answered": n_sure}
    if along_tree:
        totals |= {"n_broader": n_broader, "levels": counts.tolist()}
        totals |= {"n_answered": n_sure + n_broader} if found.counted == "nodes" else {}
        totals |= {} if used.own_level is None else {"n_at_level": n_sure + n_broader}
    return found.model_copy(update=totals)


def _by_level(loaded: LoadedModel, nodes: pa.ChunkedArray, depth: int) -> NDArray[np.int64]:
    levels = np.zeros(depth, np.int64)
    for each in nodes.drop_null().value_counts().to_pylist():
        levels[len(loaded.path(each["values"]) or [0]) - 1] += each["counts"]
    return levels


def _of_sets(found: SureRows, parts: Sequence[Path]) -> SureRows:
    n_rows = n_sure = n_labels = n_sure_labels = n_answered = 0
    for part in parts:
        table = pq.read_table(part, columns=["sure", "sure_ancestors"])
        for row, above in zip(table["sure"].to_pylist(), table["sure_ancestors"].to_pylist(), strict=True):
            n_rows, n_labels, n_sure_labels = n_rows + 1, n_labels + len(row), n_sure_labels + sum(row)
            n_sure += bool(row) and all(row)
            n_answered += any(row) or any(node is not None for node in above)
    totals = {"n_rows": n_rows, "n_sure": n_sure, "n_labels": n_labels, "n_sure_labels": n_sure_labels}
    return found.model_copy(update=totals | {"n_answered": n_answered})


def trained_on_sentence(n_trained: int, n_rows: int) -> str:
    """A warning that answers to training rows do not show how good other answers are."""
    return (
        f"{n_trained:,} of {counted(n_rows, 'row', 'is/are')} in the training data of this version: how often its "
        "answers there are right says nothing about new rows"
    )


def _unknown_texts(parts: Sequence[Path]) -> list[str]:
    """Warn of rows whose texts have no word that the model knows."""
    if "known_terms" not in pq.read_schema(parts[0]).names:
        return []
    n = sum(pc.sum(pc.equal(pq.read_table(part, columns=["known_terms"])["known_terms"], 0)).as_py() for part in parts)
    if not n:
        return []
    return [
        f"The model knows no word in the text of {counted(n, 'row')}; the text does not affect the prediction there"
    ]


def unseen_languages(loaded: LoadedModel, found: dict[str, Any] | None) -> list[str]:
    """Warn of languages that many texts of a dataset are in, and hardly any training text."""
    shares = Languages.model_validate(found).shares if found and loaded.languages else []
    new = [
        each
        for each in shares
        if each.share >= MANY_TEXTS and each.language != "other" and not is_among(each.language, loaded.languages)
    ]
    if not new:
        return []
    named = " and ".join(f"{each.share:.0%} of the texts are in the language {each.language}" for each in new)
    return [f"{named}; hardly any training text was (training texts: {', '.join(sorted(loaded.languages))})"]


def about(
    version: ModelVersion, request: BatchPredictRequest, sure: SureRows | None, n_trained: int | None
) -> list[tuple[str, Any]]:
    """What a workbook says of the model and its answers, line by line."""
    lines: list[tuple[str, Any]] = [
        ("Model", version.model),
        ("Version", version.version),
        ("SHA-256", version.sha256),
        ("Precision asked for", request.min_precision),
        ("Rows in its training data", "Not known" if n_trained is None else n_trained),
    ]
    if sure is None:
        return [*lines, ("Sure", "Neither a precision nor a threshold was asked for")]
    of = sure.what.replace(" ", "s ", 1) if " " in sure.what else f"{sure.what}s"
    lines += [
        ("Minimum probability", sure.threshold if sure.threshold is not None else "No threshold reaches the precision"),
        (f"Share of the held-out rows with sure {of}", sure.answered),
        (f"Share of the sure {of} of these rows that were right", sure.precision),
        ("At least, with a confidence of 95 %", sure.lower_bound),
        ("Rows", sure.n_rows),
        (f"Rows with a sure {sure.what}", sure.n_answered),
    ]
    if sure.is_set:
        lines.append(("Rows whose labels are all sure", sure.n_sure))
    elif sure.counted == "nodes":
        lines.append(("Rows with a sure label", sure.n_sure))
    if sure.n_labels is not None:
        lines += [("Labels", sure.n_labels), ("Sure labels", sure.n_sure_labels)]
    if sure.levels is not None:
        lines.append(("Rows with a broader sure node only", sure.n_broader))
        lines += [(f"Rows whose deepest sure node is at level {level}", n) for level, n in enumerate(sure.levels, 1)]
    return lines
