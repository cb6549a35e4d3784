"""Versions that are one linear machine of a flat list of classes on given numbers, and their files for skops."""

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from app.errors import InvalidInput, Item, Unavailable
from app.features.base import OF_TEXTS, Features
from solvers.core.model import Model

SKOPS = "skops.io"
MOST_SKOPS_BYTES = 1 << 31


class Scaling(NamedTuple):
    """What is taken off each of the columns, and what the rest is divided by: float64 arrays, shape (n_rows,)."""

    centre: Any
    scale: Any


@dataclass(frozen=True, eq=False)
class FlatMachine:
    """Scores are ``x[columns] @ W + intercept``; where there is a scaling, of ``(x[columns] - centre) / scale``.

    Attributes
    ----------
    columns : int64 array, shape (n_rows,)
        Which of the ``n_given`` features are used.
    W : float32 array, shape (n_rows, n_classes)
    intercept : float32 array, shape (n_classes,)
    pooled : bool
        Answers are the logarithms of the softmax of the scores.
    """

    columns: Any
    W: Any
    intercept: Any
    classes: tuple[str, ...]
    n_given: int
    pooled: bool
    scaling: Scaling | None = None


def flat_machine(model: Model, features: Features, format: str, most_bytes: int) -> FlatMachine:
    """A version's weights for an export in another format, for numbers of which none is missing.

    Parameters
    ----------
    format : str
        Its name, for the reasons of a refusal.
    most_bytes : int
        That the weights may take, 4 bytes each.

    Raises
    ------
    InvalidInput
        The version reads texts or tables, scales rows to length 1, or is no linear machine that names one label of
        a flat list.
    """
    weights = model.linear_weights()
    fault = None
    if features.kind in OF_TEXTS:
        fault = f"it reads texts, which {format} has no words for; the archive has a script that does"
    elif features.kind in ("table", "named_table"):
        fault = f"it reads a table, which {format} does not; the archive has a script that does"
    elif features.kind == "scaled" and features.params_json()["recipe"]["scaling"] == "unit_norm":
        fault = f"its rows are scaled to length 1, which {format} does not; the archive has a script that does"
    elif model.names_sets or model.tree is not None:
        fault = "it goes along a label tree; the archive has a script that does"
    elif weights is None:
        fault = "it is no linear machine, or several of them"
    elif 4 * weights.W.shape[0] * weights.W.shape[1] > most_bytes:
        fault = f"its weights take more than {most_bytes} bytes"
    if fault is not None or weights is None:
        raise InvalidInput(f"The version cannot be exported as {format}.", [Item(str(fault), "/format")])
    W = weights.dense().astype(np.float32)
    intercept = np.zeros(W.shape[1]) if weights.intercept is None else np.asarray(weights.intercept)
    pooled = model.kind == "pool"
    if pooled:  # of one machine: its scores times a coefficient, then the logarithm of the softmax
        factor = np.float32(model.arrays()["coefficients"][0])
        W, intercept = W * factor, intercept * factor
    state, rows, scaling = features.arrays(), weights.features, None
    if features.kind == "scaled":
        # what follows the columns are marks of missing numbers, which are not taken
        given = rows < len(state["centre"])
        rows, W = rows[given], W[given]
        scaling = Scaling(state["centre"][rows], state["scale"][rows])
    columns = np.asarray(state.get("used", np.arange(features.n_given)))[rows]
    return FlatMachine(
        columns, W, intercept.astype(np.float32), tuple(model.classes), features.n_given, pooled, scaling
    )


def skops_model(model: Model, features: Features) -> bytes:
    """A fitted ``LinearSVC`` with the version's weights, as ``skops.io.load`` reads it.

    Where the version scales numbers, it is the last step of a ``Pipeline`` behind a ``StandardScaler`` that does.
    ``decision_function`` gives the scores before any softmax; of two classes the second's less the first's, as
    scikit-learn has it.

    Raises
    ------
    InvalidInput
        The version is none that :func:`flat_machine` takes.
    Unavailable
        The package skops is not installed here.
    """
    # it takes a second to load, and the API does without it
    from sklearn.svm import LinearSVC

    machine = flat_machine(model, features, "skops", MOST_SKOPS_BYTES)
    # scikit-learn wants classes in their order
    order = np.argsort(np.array(machine.classes))
    coef = np.zeros((len(order), machine.n_given), np.float32)
    coef[:, machine.columns] = machine.W.T[order]
    intercept = machine.intercept[order]
    if len(order) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    estimator = LinearSVC()
    estimator.classes_ = np.array(machine.classes)[order]
    estimator.coef_, estimator.intercept_ = coef, intercept
    estimator.n_features_in_, estimator.n_iter_ = machine.n_given, 0
    content: bytes = optional_module(SKOPS, "skops").dumps(
        estimator if machine.scaling is None else _behind_scaling(machine, estimator)
    )
    return content


def _behind_scaling(machine: FlatMachine, estimator: Any) -> Any:
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    assert machine.scaling is not None
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_ = np.zeros(machine.n_given), np.ones(machine.n_given)
    scaler.mean_[machine.columns], scaler.scale_[machine.columns] = machine.scaling
    scaler.var_, scaler.n_features_in_ = scaler.scale_**2, machine.n_given
    return Pipeline([("scaler", scaler), ("classifier", estimator)])


def optional_module(name: str, package: str) -> ModuleType:
    """The module of a package that the API does without; raises Unavailable where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unavailable(f"The service lacks the package {package}: pip install 'polymargin[{package}]'.") from None
