"""Linear machines on given features as estimators of scikit-learn, in files that skops reads without unpickling."""

import importlib
from typing import Any

import numpy as np

from app.errors import Unavailable
from app.exports.flat_machines import FlatMachine, flat_machine
from app.features.base import Features
from solvers.core.model import Model

PACKAGE = "skops.io"
MOST_BYTES = 1 << 31


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

    machine = flat_machine(model, features, "skops", MOST_BYTES)
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
    content: bytes = _skops().dumps(estimator if machine.scaling is None else _behind_scaling(machine, estimator))
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


def _skops() -> Any:
    try:
        return importlib.import_module(PACKAGE)
    except ImportError:
        raise Unavailable("The service lacks the package skops: pip install 'polymargin[skops]'.") from None
