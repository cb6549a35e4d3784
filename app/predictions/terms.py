"""The features that count most for a class of a model whose scores are sums over features."""

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidInput, NotFound
from app.predictions.inspection_schemas import ClassTerms, WeightedTerm
from app.predictions.model_cache import LoadedModel, ModelCache

MAX_TERMS = 100
_AT_ONCE = 1 << 16
_WHY_NOT = "the model's scores are no sums over features; those of linear machines are"


def of_class(cache: ModelCache, workspace: str, ref: str, version: int, label: str, limit: int = 20) -> ClassTerms:
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
