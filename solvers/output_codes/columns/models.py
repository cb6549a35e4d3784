"""The trained binary machines of an output code: as few models as possible that answer for all columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from solvers.core.model import Contributions, LinearWeights, Model
from solvers.core.stored_models import ModelError, find_kind
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32

SIDES = ("-", "+")


@dataclass(frozen=True, eq=False)
class ColumnModel:
    """A model and the columns that it answers for.

    Attributes
    ----------
    model : Model
        Its scores are the margins of the columns, or those of the two sides of one column.
    columns : int64 array
    lead : float
        0 where the scores are margins; else by how much the score of one side leads the other's at margin 1.
    """

    model: Model
    columns: Ints
    lead: float

    def margins(self, scores: AnyFloats) -> AnyFloats:
        """The margins of the columns from the model's scores."""
        return scores if self.lead == 0 else (scores[..., 1:] - scores[..., :1]) / self.lead


@dataclass(frozen=True, eq=False)
class ColumnModels:
    """Binary machines for the columns of a code; a column without one has the margin 0."""

    n_features: int
    n_columns: int
    parts: tuple[ColumnModel, ...]

    @property
    def linear(self) -> LinearWeights | None:
        """The weights of the one linear model that answers for all columns in order, if there is such a one."""
        if len(self.parts) != 1 or self.parts[0].lead != 0 or len(self.parts[0].columns) != self.n_columns:
            return None
        return self.parts[0].model.linear_weights()

    @property
    def unexplained(self) -> str:
        """Why some machine's margins are not shared out among features; empty where all are."""
        return next((part.model.unexplained for part in self.parts if part.model.unexplained), "")

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of all models."""
        return sum(part.model.nbytes for part in self.parts)

    def margins(self, X: sp.csr_matrix) -> Floats:
        """Margins of the rows of X: float64, shape (n_samples, n_columns)."""
        h = np.zeros((X.shape[0], self.n_columns))
        for part in self.parts:
            h[:, part.columns] = part.margins(part.model.scores(X))
        return h

    def margins_one(self, indices: Ints32, values: Floats) -> Floats:
        """Margins of one sparse example, shape (n_columns,)."""
        h = np.zeros(self.n_columns)
        for part in self.parts:
            h[part.columns] = part.margins(part.model.score_one(indices, values))
        return h

    def contributions(self, indices: Ints32, values: Floats, weights: Floats) -> Contributions | None:
        """What each feature brings to a weighted sum of the margins, weights of shape (n_columns,).

        None where some machine's margins are not shared out among features.
        """
        parts, intercept, additive = np.zeros(len(indices)), 0.0, True
        for part in self.parts:
            for place, column in enumerate(part.columns.tolist()):
                sides = (1, 0) if part.lead else (place, None)
                found = part.model.contributions(indices, values, *sides)
                if found is None:
                    return None
                weight = float(weights[column]) / (part.lead or 1.0)
                parts += weight * found.parts
                intercept += weight * found.intercept
                additive = additive and found.additive
        return Contributions(parts, intercept, additive)

    def arrays(self) -> dict[str, Array]:
        """All that :meth:`from_arrays` needs."""
        held: dict[str, Array] = {
            "bank_columns": np.concatenate([np.empty(0, np.int64), *(part.columns for part in self.parts)]),
            "bank_sizes": np.array([self.n_columns, *(len(part.columns) for part in self.parts)], np.int64),
            "bank_leads": np.array([part.lead for part in self.parts]),
            "bank_kinds": np.array([part.model.kind for part in self.parts], dtype=np.str_),
        }
        for p, part in enumerate(self.parts):
            held |= {f"part{p}_{name}": array for name, array in part.model.arrays().items()}
        return held

    @classmethod
    def from_arrays(cls, n_features: int, arrays: Mapping[str, Array]) -> "ColumnModels":
        """Models around arrays that may be memory-mapped and read-only."""
        n_columns, *sizes = arrays["bank_sizes"].tolist()
        starts = np.cumsum([0, *sizes])
        stored_arrays.require_starts(
            "bank_sizes, summed", starts, len(arrays["bank_kinds"]), len(arrays["bank_columns"])
        )
        stored_arrays.require_within("bank_columns", arrays["bank_columns"], 0, n_columns)
        parts = []
        for p, (kind, lead) in enumerate(zip(arrays["bank_kinds"], arrays["bank_leads"].tolist(), strict=True)):
            columns = arrays["bank_columns"][starts[p] : starts[p + 1]]
            classes = SIDES if lead else tuple(map(str, columns.tolist()))
            parts.append(ColumnModel(read_model(str(kind), f"part{p}_", classes, n_features, arrays), columns, lead))
        return cls(n_features, n_columns, tuple(parts))


def read_model(kind: str, prefix: str, classes: Sequence[str], n_features: int, arrays: Mapping[str, Array]) -> Model:
    """A model from those of the arrays whose names begin with ``prefix``; raises ModelError for an unknown kind."""
    found = find_kind(kind)
    if found is None:
        raise ModelError(f"a column's machine has the unknown kind {kind!r:.80}")
    held = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return found.from_arrays(tuple(classes), n_features, held)
