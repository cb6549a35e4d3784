"""The trained binary machines of an output code: as few models as possible that answer for all columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.model import Floats, LinearModel, Model, ModelError, find_kind
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.kernel_svm.kernel_model import KernelModel

SIDES = ("-", "+")
SPARSE = 0.25
_LINEAR = ("shelf_features", "shelf_weights", "shelf_columns", "shelf_ends", "shelf_intercepts")
_OTHERS = ("others", "others_kinds", "others_leads")


@dataclass(frozen=True, eq=False)
class Part:
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
    columns: NDArray[np.int64]
    lead: float

    def margins(self, scores: Floats) -> Floats:
        """The margins of the columns from the model's scores."""
        return scores if self.lead == 0 else (scores[..., 1:] - scores[..., :1]) / self.lead


@dataclass(frozen=True, eq=False)
class Bank:
    """Binary machines for the columns of a code; a column without one has the margin 0.

    Attributes
    ----------
    n_features, n_columns : int
    parts : tuple of Part
    """

    n_features: int
    n_columns: int
    parts: tuple[Part, ...]

    @property
    def linear(self) -> LinearModel | SparseLinearModel | None:
        """The one linear model that answers for all columns in order, if there is such a one."""
        if len(self.parts) != 1 or self.parts[0].lead != 0 or len(self.parts[0].columns) != self.n_columns:
            return None
        model = self.parts[0].model
        return model if isinstance(model, LinearModel | SparseLinearModel) else None

    def margins(self, X: sp.csr_matrix) -> NDArray[np.float64]:
        """Margins of the rows of X: float64, shape (n_samples, n_columns)."""
        h = np.zeros((X.shape[0], self.n_columns))
        for part in self.parts:
            h[:, part.columns] = part.margins(part.model.scores(X))
        return h

    def margins_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Margins of one sparse example, shape (n_columns,)."""
        h = np.zeros(self.n_columns)
        for part in self.parts:
            h[part.columns] = part.margins(part.model.score_one(indices, values))
        return h

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that :meth:`from_arrays` needs."""
        held: dict[str, NDArray[Any]] = {
            "bank_columns": np.concatenate([np.empty(0, np.int64), *(part.columns for part in self.parts)]),
            "bank_sizes": np.array([self.n_columns, *(len(part.columns) for part in self.parts)], np.int64),
            "bank_leads": np.array([part.lead for part in self.parts]),
            "bank_kinds": np.array([part.model.kind for part in self.parts], dtype=np.str_),
        }
        for p, part in enumerate(self.parts):
            held |= {f"part{p}_{name}": array for name, array in part.model.arrays().items()}
        return held

    @classmethod
    def from_arrays(cls, n_features: int, arrays: Mapping[str, NDArray[Any]]) -> "Bank":
        """A bank around arrays that may be memory-mapped and read-only."""
        n_columns, *sizes = arrays["bank_sizes"].tolist()
        starts = np.cumsum([0, *sizes])
        parts = []
        for p, (kind, lead) in enumerate(zip(arrays["bank_kinds"], arrays["bank_leads"].tolist(), strict=True)):
            columns = arrays["bank_columns"][starts[p] : starts[p + 1]]
            classes = SIDES if lead else tuple(map(str, columns.tolist()))
            parts.append(Part(read_model(str(kind), f"part{p}_", classes, n_features, arrays), columns, lead))
        return cls(n_features, n_columns, tuple(parts))


def read_model(
    kind: str, prefix: str, classes: Sequence[str], n_features: int, arrays: Mapping[str, NDArray[Any]]
) -> Model:
    """A model from those of the arrays whose names begin with ``prefix``; raises ModelError for an unknown kind."""
    found = find_kind(kind)
    if found is None:
        raise ModelError(f"a column's machine is of the kind {kind!r:.80}, which this version does not know")
    held = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return found.from_arrays(tuple(classes), n_features, held)


class Shelf:
    """Trained machines, put here column by column.

    Of a linear machine only the weights of the margin are kept, one after the other in buffers that grow; all others
    are kept as they are.

    Parameters
    ----------
    n_features, n_columns : int
    """

    def __init__(self, n_features: int, n_columns: int) -> None:
        self._shape = n_features, n_columns
        self._features, self._weights = np.empty(0, np.int64), np.empty(0, np.float32)
        self._columns: list[int] = []
        self._ends: list[int] = []
        self._intercepts: list[float] = []
        self._others: dict[int, tuple[Model, float]] = {}

    def put(self, column: int, model: Model, lead: float) -> None:
        """Keep the machine of a column; its two classes are the sides - and +."""
        if not isinstance(model, LinearModel):
            self._others[column] = model, lead
            return
        weights = (model.W[:, 1] - model.W[:, 0]) / model.W.dtype.type(lead)
        used = np.flatnonzero(weights)
        begin = self._ends[-1] if self._ends else 0
        end = begin + len(used)
        if end > len(self._features) or weights.dtype != self._weights.dtype:
            room = max(end, 2 * len(self._features), 1024)
            self._features = np.concatenate([self._features[:begin], np.empty(room - begin, np.int64)])
            self._weights = np.concatenate([self._weights[:begin], np.empty(room - begin, weights.dtype)])
        self._features[begin:end], self._weights[begin:end] = model.features[used], weights[used]
        self._columns.append(column)
        self._ends.append(end)
        given = model.intercept
        self._intercepts.append(0.0 if given is None else float(given[1] - given[0]) / lead)

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that :meth:`of_state` takes back; views, valid until the next machine comes."""
        end = self._ends[-1] if self._ends else 0
        columns = sorted(self._others)
        held: dict[str, NDArray[Any]] = {
            "shelf_features": self._features[:end],
            "shelf_weights": self._weights[:end],
            "shelf_columns": np.array(self._columns, np.int64),
            "shelf_ends": np.array(self._ends, np.int64),
            "shelf_intercepts": np.array(self._intercepts),
            "others": np.array(columns, np.int64),
            "others_kinds": np.array([self._others[t][0].kind for t in columns], dtype=np.str_),
            "others_leads": np.array([self._others[t][1] for t in columns]),
        }
        for t in columns:
            held |= {f"other{t}_{name}": array for name, array in self._others[t][0].arrays().items()}
        return held

    @classmethod
    def of_state(cls, n_features: int, n_columns: int, state: Mapping[str, NDArray[Any]]) -> "Shelf":
        """The shelf that :meth:`state` was of."""
        shelf = cls(n_features, n_columns)
        shelf._features, shelf._weights = np.array(state["shelf_features"]), np.array(state["shelf_weights"])
        shelf._columns, shelf._ends = state["shelf_columns"].tolist(), state["shelf_ends"].tolist()
        shelf._intercepts = state["shelf_intercepts"].tolist()
        described = zip(state["others"].tolist(), state["others_kinds"], state["others_leads"].tolist(), strict=True)
        for t, kind, lead in described:
            shelf._others[t] = read_model(str(kind), f"other{t}_", SIDES, n_features, state), lead
        return shelf

    @staticmethod
    def joined(states: Sequence[Mapping[str, NDArray[Any]]], columns: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The state of a shelf that has those of the machines of several shelves whose columns are named.

        Parameters
        ----------
        states : sequence of mapping
            Of :meth:`state`; no column has a machine in two of them.
        columns : int array
        """
        held: dict[str, list[NDArray[Any]]] = {name: [] for name in _LINEAR + _OTHERS}
        others: dict[str, NDArray[Any]] = {}
        for state in states:
            ends = np.asarray(state["shelf_ends"])
            kept = np.isin(state["shelf_columns"], columns)
            lengths = np.diff(ends, prepend=0)
            entries = np.repeat(kept, lengths)
            for name in ("shelf_features", "shelf_weights"):
                held[name].append(np.asarray(state[name])[entries])
            for name in ("shelf_columns", "shelf_intercepts"):
                held[name].append(np.asarray(state[name])[kept])
            held["shelf_ends"].append(lengths[kept])
            chosen = np.isin(state["others"], columns)
            for name in _OTHERS:
                held[name].append(np.asarray(state[name])[chosen])
            for t in np.asarray(state["others"])[chosen].tolist():
                others |= {name: np.array(state[name]) for name in state if name.startswith(f"other{t}_")}
        found = {name: np.concatenate(arrays) for name, arrays in held.items()}
        return found | {"shelf_ends": np.cumsum(found["shelf_ends"])} | others

    def bank(self) -> Bank:
        """All machines as few models: linear ones as one, kernel machines of one kernel function as one."""
        n_features, n_columns = self._shape
        parts = [self._linear()] if self._columns else []
        by_function: dict[Any, dict[int, tuple[KernelModel, float]]] = {}
        for t, (model, lead) in sorted(self._others.items()):
            if isinstance(model, KernelModel):
                by_function.setdefault(model.function, {})[t] = model, lead
            else:
                parts.append(Part(model, np.array([t]), lead))
        parts += [_merged(group, n_features) for group in by_function.values()]
        return Bank(n_features, n_columns, tuple(parts))

    def _linear(self) -> Part:
        n_features, _ = self._shape
        end, order = self._ends[-1], np.argsort(self._columns)
        columns, m = np.array(self._columns)[order], len(order)
        place = np.empty(m, np.int64)
        place[order] = np.arange(m)
        owner = np.repeat(place, np.diff([0, *self._ends]))
        W = sp.csr_matrix((self._weights[:end], (self._features[:end], owner)), shape=(n_features, m))
        intercept = np.array(self._intercepts)[order].astype(W.dtype) if any(self._intercepts) else None
        names = tuple(map(str, columns))
        if W.nnz < SPARSE * n_features * m:
            return Part(SparseLinearModel(names, W, intercept), columns, 0.0)
        used = np.flatnonzero(np.diff(W.indptr))
        return Part(
            LinearModel(names, n_features, used, np.ascontiguousarray(W[used].toarray()), intercept), columns, 0.0
        )


def _merged(group: Mapping[int, tuple[KernelModel, float]], n_features: int) -> Part:
    """Kernel machines of one function as one, whose support vectors are those of all."""
    number: dict[Any, int] = {}
    vectors, places = [], []
    for model, _ in group.values():
        whole = _whole_vectors(model, n_features)
        indptr, place = whole.indptr, np.empty(model.n_support, np.int64)
        for s in range(model.n_support):
            low, high = indptr[s], indptr[s + 1]
            key = whole.indices[low:high].tobytes(), whole.data[low:high].tobytes()
            if key not in number:
                number[key] = len(number)
                vectors.append(whole[s])
            place[s] = number[key]
        places.append(place)
    coefficients = np.zeros((len(number), len(group)))
    for at, ((model, lead), place) in enumerate(zip(group.values(), places, strict=True)):
        np.add.at(coefficients[:, at], place, (model.coefficients[:, 1] - model.coefficients[:, 0]) / lead)
    intercepts = [
        0.0 if model.intercept is None else float(model.intercept[1] - model.intercept[0]) / lead
        for model, lead in group.values()
    ]
    intercept = np.array(intercepts) if any(intercepts) else None
    columns, (some, _) = np.array(list(group)), next(iter(group.values()))
    stacked = sp.csr_matrix(sp.vstack(vectors)) if vectors else sp.csr_matrix((0, n_features))
    names = tuple(map(str, columns))
    if some.function.name == "precomputed":
        # a unit vector stands for each training example that supports a column
        numbers = stacked.indices.astype(np.int64)
        order = np.argsort(numbers)
        features, stacked, coefficients = numbers[order], sp.csr_matrix((len(order), 0)), coefficients[order]
    else:
        features = np.unique(stacked.indices).astype(np.int64)
        stacked = stacked[:, features]
    merged = KernelModel(names, n_features, some.function, features, stacked, coefficients, intercept)
    return Part(merged, columns, 0.0)


def _whole_vectors(model: KernelModel, n_features: int) -> sp.csr_matrix:
    """Support vectors in all features, or unit vectors of their numbers where kernel values were given."""
    features = model.features
    if model.function.name == "precomputed":
        return sp.csr_matrix(
            (np.ones(len(features)), features, np.arange(len(features) + 1)), (len(features), n_features)
        )
    vectors = model.vectors
    return sp.csr_matrix((vectors.data, features[vectors.indices], vectors.indptr), (vectors.shape[0], n_features))
