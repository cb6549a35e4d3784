"""The other programs, as they are called by the benchmarks: LIBLINEAR, and scikit-learn's LinearSVC around its copy."""

import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from liblinear.liblinearutil import parameter, problem, train
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

Trained = tuple[float, NDArray[np.float64]]

LIBLINEAR = {"crammer_singer": 4, "one_vs_rest": 3, "one_vs_rest squared": 1}
LINEAR_SVC: dict[str, dict[str, Any]] = {
    "crammer_singer": {"multi_class": "crammer_singer"},
    "one_vs_rest": {"loss": "hinge", "dual": True},
    "one_vs_rest squared": {"loss": "squared_hinge", "dual": True},
}


def liblinear(X: sp.csr_matrix, y: NDArray[np.int32], number: int, eps: float | None = None, C: float = 1.0) -> Trained:
    """Processor seconds and W (n_features, n_classes) of ``-s number`` without bias; eps None: its default."""
    task = problem(y.astype(float), X)
    options = parameter(f"-s {number} -c {C!r} -B -1 -q" + (f" -e {eps}" if eps else ""))
    began = time.process_time()
    model = train(task, options)
    seconds = time.process_time() - began
    k = model.get_nr_class()
    assert k > 2 or number == 4
    W = np.ctypeslib.as_array(model.w, shape=(model.get_nr_feature(), k))
    return seconds, W[:, np.argsort(model.get_labels())].copy()


def linear_svc(X: sp.csr_matrix, y: NDArray[np.int32], machine: str, tol: float | None = None) -> Trained:
    """The same of scikit-learn's LinearSVC; tol None: its defaults, which are 1e-4 and 1,000 iterations."""
    given = LINEAR_SVC[machine] | ({} if tol is None else {"tol": tol})
    model = LinearSVC(C=1.0, fit_intercept=False, random_state=0, **given)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return time.process_time() - began, np.ascontiguousarray(model.coef_.T)


def capped(run: Callable[..., Trained], *arguments: Any, seconds: int) -> Trained | None:
    """What ``run(*arguments)`` returns in a process of its own; None where it took more processor seconds."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        theirs.send(run(*arguments))

    process = context.Process(target=child)
    process.start()
    theirs.close()
    try:
        found: Trained | None = ours.recv()
    except EOFError:
        found = None
    process.join()
    if found is None and process.exitcode not in (-24, -9):
        raise RuntimeError(f"{run.__name__} ended with exit code {process.exitcode}")
    return found
