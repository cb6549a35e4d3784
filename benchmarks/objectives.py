"""Primal objectives in float64, written without any code of the solvers."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def primal(machine: str, W: NDArray[np.floating], X: sp.csr_matrix, y: NDArray[np.int32], C: float = 1.0) -> float:
    """Objective of W (n_features, n_classes).

    The machine is weston_watkins, crammer_singer, lee_lin_wahba, one_vs_rest or its squared form.
    """
    W = W.astype(np.float64)
    total = 0.0
    for begin in range(0, X.shape[0], 2048):
        F = X[begin : begin + 2048] @ W
        rows, own = np.arange(len(F)), y[begin : begin + 2048]
        if machine.startswith("one_vs_rest"):
            F[rows, own] *= -1
            losses = np.maximum(0, 1 + F)
            total += float((losses**2 if machine.endswith("squared") else losses).sum())
            continue
        if machine == "lee_lin_wahba":
            F[rows, own] = -1
            total += float(np.maximum(0, 1 + F).sum())
            continue
        M = np.maximum(0, 1 - F[rows, own][:, None] + F)
        M[rows, own] = 0
        total += float(M.sum() if machine == "weston_watkins" else M.max(axis=1).sum())
    return 0.5 * float((W**2).sum()) + C * total
