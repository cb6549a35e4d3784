"""What a version shows of itself: its output code, thresholds, terms of a class, and the columns that it reads."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app.errors import InvalidInput, NotFound, PolymarginError
from app.features.base import OF_TEXTS
from app.features.names import list_widths
from app.models.row_kinds import columns_read
from app.predictions import sure_answers
from app.predictions.inspection_schemas import ClassTerms, OutputCode, ThresholdCurve, ThresholdPoint, WeightedTerm
from app.predictions.model_cache import LoadedModel, ModelCache
from app.predictions.schemas import ModelInputs
from app.store import tables
from solvers.output_codes import codes

_SHOWN_DECIMALS = 9
MAX_TERMS = 100
_AT_ONCE = 1 << 16
_WHY_NOT = "the model's scores are no sums over features; those of linear machines are"
# of columns of numbers that can be listed
MOST_NAMED = 10_000


@dataclass(frozen=True, eq=False)
class Code:
    """The code of a model version.

    Attributes
    ----------
    matrix : array, shape (n_classes, n_columns)
    """

    model: str
    version: int
    classes: tuple[str, ...]
    matrix: NDArray[Any]
    decoding: str


def code_of(cache: ModelCache, workspace: str, ref: str, number: int) -> Code:
    """The code of a version; raises NotFound where there is no such version, or it has no code."""
    loaded = cache.get((workspace, ref, number, None))
    code = loaded.model.output_code
    if code is None:
        raise NotFound(f"version {number} of {loaded.version.model!r:.80} has no output code")
    return Code(loaded.version.model, number, loaded.model.classes, np.asarray(code.matrix), code.decoding)


def is_coded(cache: ModelCache, workspace: str, ref: str, number: int) -> bool:
    """Whether a version has an output code; False where it cannot be read."""
    try:
        return cache.get((workspace, ref, number, None)).model.output_code is not None
    except PolymarginError:
        return False


def code_window(code: Code, first_class: int, n_classes: int, first_column: int, n_columns: int) -> OutputCode:
    """A part of a code with the distances between its rows and between its columns; empty beyond the code's end."""
    rows = slice(first_class, first_class + n_classes)
    columns = slice(first_column, first_column + n_columns)
    discrete = codes.is_discrete(code.matrix)
    return OutputCode(
        model=code.model,
        version=code.version,
        n_classes=code.matrix.shape[0],
        n_columns=code.matrix.shape[1],
        discrete=discrete,
        decoding=code.decoding,
        first_class=first_class,
        first_column=first_column,
        classes=list(code.classes[rows]),
        matrix=_plain(code.matrix[rows, columns]),
        distance="hamming" if discrete else "euclidean",
        row_distances=_plain(codes.row_distances(code.matrix[rows], discrete=discrete)),
        column_distances=_plain(codes.column_distances(code.matrix[:, columns], discrete=discrete)),
    )


def _plain(values: NDArray[Any]) -> list[list[float]]:
    rows: list[list[float]] = np.round(values.astype(np.float64), _SHOWN_DECIMALS).tolist()
    return rows


def threshold_curve(cache: ModelCache, workspace: str, ref: str, number: int) -> ThresholdCurve:
    """The curve; raises NotFound where there is no such version, or it keeps nothing of rows held out."""
    loaded = cache.get((workspace, ref, number, None))
    held_out = sure_answers.calibration_of(loaded.model)
    if held_out is None:
        raise NotFound(f"version {number} of {loaded.version.model!r:.80} has no probabilities of held-out rows")
    return ThresholdCurve(
        model=loaded.version.model,
        version=number,
        n_rows=held_out.n_rows,
        points=[ThresholdPoint.model_validate(point._asdict()) for point in held_out.curve],
    )


def has_thresholds(cache: ModelCache, workspace: str, ref: str, number: int) -> bool:
    """Whether a version has a curve; False if it is unread."""
    try:
        return sure_answers.calibration_of(cache.get((workspace, ref, number, None)).model) is not None
    except PolymarginError:
        return False


def class_terms(cache: ModelCache, workspace: str, ref: str, version: int, label: str, limit: int = 20) -> ClassTerms:
    """Up to ``limit`` features that speak for a class, and as many that speak against it.

    Raises
    ------
    NotFound
        No such version, or it has no such class.
    InvalidInput
        The model's scores are no sums over features.
    """
    loaded = cache.get((workspace, ref, version, None))
    try:
        class_ = list(loaded.model.classes).index(label)
    except ValueError:
        raise NotFound(f"the version has no class {label!r:.80}") from None
    weights, intercept = _weights(loaded, class_)
    order = np.argsort(-weights, kind="stable")
    lifting = [at for at in order[:limit].tolist() if weights[at] > 0]
    lowering = [at for at in order[::-1][:limit].tolist() if weights[at] < 0]

    def reported(chosen: list[int]) -> list[WeightedTerm]:
        return [WeightedTerm(feature=loaded.features.named(at), weight=float(weights[at])) for at in chosen]

    return ClassTerms(
        model=loaded.version.model,
        version=loaded.version.version,
        label=label,
        lifting=reported(lifting),
        lowering=reported(lowering),
        intercept=intercept,
    )


def _weights(loaded: LoadedModel, class_: int) -> tuple[NDArray[np.float64], float]:
    """What a unit of each feature brings, shape (n_features,), and what none of them brings."""
    n_features, parts, intercept = loaded.model.n_features, [], 0.0
    empty = loaded.model.contributions(np.empty(0, np.int32), np.empty(0), class_, None)
    if empty is not None and not empty.additive:
        raise InvalidInput(f"{_WHY_NOT}. Single answers can be explained: `polymargin predict --explain`")
    for begin in range(0, n_features, _AT_ONCE):
        indices = np.arange(begin, min(begin + _AT_ONCE, n_features), dtype=np.int32)
        found = loaded.model.contributions(indices, np.ones(len(indices)), class_, None)
        if found is None:
            raise InvalidInput(_WHY_NOT)
        parts.append(found.parts)
        intercept = found.intercept
    return np.concatenate(parts), intercept


def read_columns(session: Session, loaded: LoadedModel, max_instances: int) -> ModelInputs:
    """What a version reads of a row of a table.

    Parameters
    ----------
    max_instances : int
        Of a request.
    """
    version, features = loaded.version, loaded.features
    found = ModelInputs(model=version.model, version=version.version, instance="features", max_instances=max_instances)
    if features.kind in OF_TEXTS:
        return found.model_copy(update={"instance": "text", "text_columns": _text_columns(session, version.id)})
    if features.columns is not None:
        columns = features.columns
        lists = list_widths(columns.numbers)
        known = {*columns.texts, *columns.numbers, *columns.categories}
        elements = {f"{name}.{at}" for name, width in lists.items() if name not in known for at in range(width)}
        # a column of lists is one column of the table
        numbers = [name for name in columns.numbers if name not in elements]
        numbers += [name for name in lists if name not in known]
        update = {"text_columns": list(columns.texts), "category_columns": list(columns.categories)}
        return found.model_copy(update={"instance": "record", "number_columns": numbers, **update})
    names = features.names()
    if names is None:
        return found.model_copy(update={"instance": "numbers", "n_numbers": features.n_given})
    named = names if len(names) <= MOST_NAMED else []
    return found.model_copy(update={"number_columns": named, "n_numbers": features.n_given})


def _text_columns(session: Session, version_id: str) -> list[str]:
    version = session.get(tables.ModelVersion, version_id)
    found: list[str] = [] if version is None else columns_read(session, version).get("text_columns", [])
    return found
