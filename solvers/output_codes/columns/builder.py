"""Gathers the trained binary machines of a code column by column, and makes few models of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.numerics.array_types import Array
from solvers.output_codes.columns.models import SIDES, ColumnModel, ColumnModels, read_model

# linear machines with a smaller share of weights that are not zero stay sparse
SPARSE = 0.25
_BY_ENTRY = ("linear_features", "linear_weights")
_BY_COLUMN = ("linear_columns", "linear_intercepts")
_OTHERS = ("others", "others_kinds", "others_leads")


class ColumnModelBuilder:
    """Trained machines, added column by column.

    Of a linear machine only the weights of the margin are kept, one after the other in buffers that grow; all others
    are kept as they are.
    """

    def __init__(self, n_features: int, n_columns: int) -> None:
        self._shape = n_features, n_columns
        self._features, self._weights = np.empty(0, np.int64), np.empty(0, np.float32)
        self._columns: list[int] = []
        self._ends: list[int] = []
        self._intercepts: list[float] = []
        self._others: dict[int, tuple[Model, float]] = {}

    def add(self, column: int, model: Model, lead: float) -> None:
        """Keep the machine of a column; its two classes are the sides - and +."""
        linear = model.linear_weights()
        if linear is None:
            self._others[column] = model, lead
            return
        W = linear.dense()
        weights = (W[:, 1] - W[:, 0]) / W.dtype.type(lead)
        used = np.flatnonzero(weights)
        begin = self._ends[-1] if self._ends else 0
        end = begin + len(used)
        if end > len(self._features) or weights.dtype != self._weights.dtype:
            room = max(end, 2 * len(self._features), 1024)
            self._features = np.concatenate([self._features[:begin], np.empty(room - begin, np.int64)])
            self._weights = np.concatenate([self._weights[:begin], np.empty(room - begin, weights.dtype)])
        self._features[begin:end], self._weights[begin:end] = linear.features[used], weights[used]
        self._columns.append(column)
        self._ends.append(end)
        given = linear.intercept
        self._intercepts.append(0.0 if given is None else float(given[1] - given[0]) / lead)

    def state(self) -> dict[str, Array]:
        """Arrays that :meth:`from_state` takes back; views, valid until the next machine comes."""
        end = self._ends[-1] if self._ends else 0
        columns = sorted(self._others)
        held: dict[str, Array] = {
            "linear_features": self._features[:end],
            "linear_weights": self._weights[:end],
            "linear_columns": np.array(self._columns, np.int64),
            "linear_ends": np.array(self._ends, np.int64),
            "linear_intercepts": np.array(self._intercepts),
            "others": np.array(columns, np.int64),
            "others_kinds": np.array([self._others[t][0].kind for t in columns], dtype=np.str_),
            "others_leads": np.array([self._others[t][1] for t in columns]),
        }
        for t in columns:
            held |= {f"other{t}_{name}": array for name, array in self._others[t][0].arrays().items()}
        return held

    @classmethod
    def from_state(cls, n_features: int, n_columns: int, state: Mapping[str, Array]) -> "ColumnModelBuilder":
        """The builder that :meth:`state` was of."""
        builder = cls(n_features, n_columns)
        builder._features, builder._weights = np.array(state["linear_features"]), np.array(state["linear_weights"])
        builder._columns, builder._ends = state["linear_columns"].tolist(), state["linear_ends"].tolist()
        builder._intercepts = state["linear_intercepts"].tolist()
        described = zip(state["others"].tolist(), state["others_kinds"], state["others_leads"].tolist(), strict=True)
        for t, kind, lead in described:
            builder._others[t] = read_model(str(kind), f"other{t}_", SIDES, n_features, state), lead
        return builder

    @staticmethod
    def joined(states: Sequence[Mapping[str, Array]], columns: Array) -> dict[str, Array]:
        """The state of a builder that has those of the machines of several builders whose columns are named.

        Parameters
        ----------
        states : sequence of mapping
            Of :meth:`state`; no column has a machine in two of them.
        columns : int array
        """
        held: dict[str, list[Array]] = {name: [] for name in (*_BY_ENTRY, *_BY_COLUMN, *_OTHERS)}
        lengths: list[Array] = []
        others: dict[str, Array] = {}
        for state in states:
            kept, chosen = np.isin(state["linear_columns"], columns), np.isin(state["others"], columns)
            sizes = np.diff(state["linear_ends"], prepend=0)
            lengths.append(sizes[kept])
            entries = np.repeat(kept, sizes)
            for names, which in ((_BY_ENTRY, entries), (_BY_COLUMN, kept), (_OTHERS, chosen)):
                for name in names:
                    held[name].append(np.asarray(state[name])[which])
            for t in np.asarray(state["others"])[chosen].tolist():
                others |= {name: np.array(state[name]) for name in state if name.startswith(f"other{t}_")}
        found = {name: np.concatenate(arrays) for name, arrays in held.items()}
        return found | {"linear_ends": np.cumsum(np.concatenate(lengths))} | others

    def models(self) -> ColumnModels:
        """All machines as few models: linear ones as one, others as they can be merged."""
        n_features, n_columns = self._shape
        parts = [self._linear()] if self._columns else []
        mergeable: dict[Any, list[int]] = {}
        for t, (model, lead) in sorted(self._others.items()):
            if model.merge_key is None:
                parts.append(ColumnModel(model, np.array([t]), lead))
            else:
                mergeable.setdefault(model.merge_key, []).append(t)
        for columns in mergeable.values():
            models, leads = zip(*(self._others[t] for t in columns), strict=True)
            merged = models[0].merged_margins(tuple(map(str, columns)), n_features, models, leads)
            parts.append(ColumnModel(merged, np.array(columns), 0.0))
        return ColumnModels(n_features, n_columns, tuple(parts))

    def _linear(self) -> ColumnModel:
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
            return ColumnModel(SparseLinearModel(names, W, intercept), columns, 0.0)
        used = np.flatnonzero(np.diff(W.indptr))
        dense = LinearModel(names, n_features, used, np.ascontiguousarray(W[used].toarray()), intercept)
        return ColumnModel(dense, columns, 0.0)
