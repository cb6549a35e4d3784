"""Predictions of the client: instances from texts, tables and lists, and answers as data frames."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from pydantic import PrivateAttr

from app.plurals import counted
from app.predictions.schemas import AnsweredLabel, ModelInputs, Prediction, PredictResponse
from app.remote.errors import ClientError
from app.remote.tables import is_column, package_of, rows_of

Instance = str | Mapping[str, Any] | Sequence[float]
# one instance, several, a series of texts, or a DataFrame or Arrow table
Instances = Instance | Sequence[Instance] | Any
_SHOWN = 20


class Predictions(PredictResponse):
    """The answers, which become a data frame with one row for each instance."""

    # of the pandas object that was predicted
    _index: Any = PrivateAttr(default=None)

    def to_rows(self) -> list[dict[str, Any]]:
        """One mapping for each instance, with the columns of :meth:`to_pandas`."""
        return [dict(_cells(each, self.set)) for each in self.predictions]

    def to_pandas(self) -> Any:
        """A DataFrame of pandas, with the index of the pandas object that was predicted.

        It has the columns ``label``, ``probability`` and ``score``; where the answers have them ``name``, ``notation``,
        ``expected_cost``, ``sure``, ``sure_ancestor``, ``path``, ``known_terms``, ``text_language``, ``unknown``; with
        ``top_k`` above 1
        ``label_2``, ``probability_2``, ``score_2`` and so on. Of models of sets there are lists ``labels``,
        ``probabilities`` and ``scores``.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        import pandas as pd

        return pd.DataFrame(self.to_rows(), index=self._index)

    def to_polars(self) -> Any:
        """A DataFrame of polars, with the columns of :meth:`to_pandas`; raises ImportError without polars."""
        import polars as pl

        return pl.DataFrame(self.to_rows(), infer_schema_length=None)


def index_of(instances: Any) -> Any:
    """The index of an object of pandas; None of others."""
    return instances.index if package_of(instances) == "pandas" else None


def listed(instances: Instances) -> list[Any]:
    """Instances as a request has them, of all but tables and sparse matrices; raises ClientError."""
    if isinstance(instances, str | Mapping):
        instances = [instances]
    elif is_column(instances):
        column: Any = instances
        instances = column.to_list() if hasattr(column, "to_list") else column.to_pylist()
    found = [{"text": each} if isinstance(each, str) else each for each in instances]
    _require_some(found)
    absent = [number for number, each in enumerate(found) if each is None or _is_nan(each)]
    if absent:
        raise _absent(absent, "text")
    return found


def sparse_rows(matrix: Any) -> Iterator[dict[str, Any]]:
    """The rows of a sparse matrix of scipy, shape (n_rows, n_features), as instances."""
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    for begin, end in pairwise(rows.indptr.tolist()):
        yield {"indices": rows.indices[begin:end].tolist(), "values": rows.data[begin:end].tolist()}


def from_table(table: Any, reads: ModelInputs) -> list[Any]:
    """The rows of a table as instances.

    Parameters
    ----------
    table : DataFrame of pandas or polars, or Arrow table
    reads : ModelInputs
        Other columns are left out.

    Raises
    ------
    ClientError
        The table has no rows, a column is missing, or a text or, where the version was trained without missing values,
        a number is.
    """
    rows = rows_of(table)
    _require_some(rows)
    columns = list(rows[0])
    if reads.instance == "text":
        texts = reads.text_columns or (["text"] if "text" in columns else columns[:1] if len(columns) == 1 else [])
        if not reads.text_columns and not texts:
            raise ClientError(f"{_model(reads)} reads texts: pass one column, as frame['text'], or name a column text")
        if len(columns) == 1 and len(texts) == 1:
            texts = columns
        _require_columns(reads, texts, columns)
        absent = [number for number, row in enumerate(rows) if all(row[name] is None for name in texts)]
        if absent:
            raise _absent(absent, " + ".join(texts))
        return [{"text": "\n".join("" if row[name] is None else str(row[name]) for name in texts)} for row in rows]
    if reads.instance == "record":
        wanted = [*reads.text_columns, *reads.number_columns, *reads.category_columns]
        _require_columns(reads, wanted, columns)
        return [{"record": {name: row[name] for name in wanted}} for row in rows]
    if reads.instance == "features":
        wanted = reads.number_columns or columns
        _require_columns(reads, wanted, columns)
        _require_numbers(reads, rows, wanted)
        return [{"features": {name: row[name] for name in wanted}} for row in rows]
    if len(columns) != reads.n_numbers:
        raise ClientError(
            f"{_model(reads)} reads {reads.n_numbers} numbers without names, but the table has {len(columns)} columns: "
            "pass only the columns of numbers, in the order of the training file"
        )
    _require_numbers(reads, rows, columns)
    if columns != [str(place) for place in range(len(columns))]:
        raise ClientError(
            f"{_model(reads)} reads {reads.n_numbers} numbers by their order, as its dataset had no names of columns. "
            f"The table has names, such as {columns[0]!r}: if its columns are in the order of the training file, pass "
            "an array, as frame.to_numpy()"
        )
    return [list(row.values()) for row in rows]


def from_matrix(matrix: Any, reads: ModelInputs) -> list[Any]:
    """The rows of a sparse matrix of scipy as instances.

    Raises
    ------
    ClientError
        It has no rows, or fewer columns than the version reads. More columns are left to the service, which refuses
        numbers in them: without names, it counts columns up to the last that a row of the dataset has.
    """
    n_columns = matrix.shape[1]
    if reads.n_numbers is not None and n_columns < reads.n_numbers:
        raise ClientError(
            f"The matrix has {n_columns} columns, but {_model(reads)} reads {reads.n_numbers}: pass all columns, as "
            f"load_svmlight_file(file, n_features={reads.n_numbers}) reads them"
        )
    found = list(sparse_rows(matrix))
    _require_some(found)
    return found


def batches(instances: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    """Instances in lists of ``most`` at most."""
    for begin in range(0, len(instances), most):
        yield instances[begin : begin + most]


def _require_some(rows: Sequence[Any]) -> None:
    if not rows:
        raise ClientError("There are no rows to predict: nothing was sent. Check how they were read or filtered.")


def _require_columns(reads: ModelInputs, wanted: Sequence[str], columns: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in columns]
    if not missing:
        return
    near = get_close_matches(missing[0], [name for name in columns if name not in wanted], 1)
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    listed = ", ".join(columns[:_SHOWN]) + (", ..." if len(columns) > _SHOWN else "")
    way = f"rename {near[0]!r}" if near else "add it"
    raise ClientError(
        f"{_model(reads)} reads the column {missing[0]!r}{more}, which the table does not have: {way}. Its columns are "
        f"{listed}."
    )


def _require_numbers(reads: ModelInputs, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    found = [(number, name) for number, row in enumerate(rows) for name in columns if row[name] is None]
    if found:
        places = ", ".join(f"row {number} column {name!r}" for number, name in found[:5])
        more = ", ..." if len(found) > 5 else ""
        raise ClientError(
            f"{counted(len(found), 'cell', 'has/have')} no number (None or NaN): {places}{more}, rows counted from 0. "
            f"{_model(reads)} was trained without missing values: drop the rows with dropna, or fill the cells"
        )


def _absent(rows: Sequence[int], column: str) -> ClientError:
    places = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
    return ClientError(
        f"{len(rows):,} rows have no {column} (None or NaN; rows {places}, counted from 0): drop them with dropna, or "
        "fill them with fillna('')"
    )


def _model(reads: ModelInputs) -> str:
    return f"{reads.model}@{reads.version}"


def _cells(prediction: Prediction, of_sets: bool) -> Iterator[tuple[str, Any]]:
    labels = prediction.labels
    if of_sets:
        yield "labels", [each.label for each in labels]
        yield "probabilities", [each.probability for each in labels]
        yield "scores", [each.score for each in labels]
        yield from _shared(prediction, labels)
        return
    first = labels[0] if labels else None
    yield "label", prediction.top[0].label if first is None else first.label
    yield "probability", prediction.probability
    if prediction.expected_cost is not None:
        yield "expected_cost", prediction.expected_cost
    yield "score", prediction.score
    for name in ("name", "notation"):
        if getattr(prediction, name) is not None:
            yield name, getattr(prediction, name)
    if first is not None and first.sure is not None:
        yield "sure", first.sure
        yield "sure_ancestor", first.sure_ancestor
    if first is not None and first.path is not None:
        yield "path", first.path
    yield from _shared(prediction, labels)
    for place, each in enumerate(prediction.top[1:], 2):
        yield f"label_{place}", each.label
        yield f"probability_{place}", each.probability
        yield f"score_{place}", each.score


def _shared(prediction: Prediction, labels: Sequence[AnsweredLabel]) -> Iterator[tuple[str, Any]]:
    if prediction.sure_labels is not None:
        yield "sure", [bool(each.sure) for each in labels]
    if prediction.known_terms is not None:
        yield "known_terms", prediction.known_terms
    if prediction.text_language is not None:
        yield "text_language", prediction.text_language
    if prediction.unknown is not None:
        yield "unknown", prediction.unknown


def _is_nan(value: Any) -> bool:
    # pandas' NA is no float, and equals nothing
    return (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"
