"""What the columns' margins on the training examples report of a code: distances, errors, margins and bounds."""

import numpy as np
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.metrics import bounds
from solvers.numerics.array_types import Floats
from solvers.output_codes import codes
from solvers.output_codes.codes import Code
from solvers.output_codes.columns.models import ColumnModels
from solvers.output_codes.design.task import Task

CHUNK_BYTES = 64 << 20


def of_fixed_code(problem: Problem, code: Code, columns: ColumnModels) -> dict[str, float]:
    """The report of a fixed code over the machines of its columns.

    ``n_columns``; ``least_row_distance``; ``column_error``, the share of answers on the wrong side among those that
    count; and, of the decoding by inner product, the margins and bounds of :func:`solvers.metrics.bounds.report`, with
    the code's rows as weight vectors over the columns.
    """
    margins, radius, wrong, counted = np.full(problem.n_classes, np.inf), 0.0, 0, 0
    size = max(1, CHUNK_BYTES // (8 * max(code.shape)))
    for begin in range(0, problem.n_samples, size):
        h, y = columns.margins(problem.X[begin : begin + size]), problem.y[begin : begin + size]
        # a constant in a column changes no difference of scores, so the code need not be centred for these
        margins = np.minimum(margins, bounds.class_margins(codes.products(h, code), y))
        radius = max(radius, float((h**2).sum(axis=1).max()))
        sides = code[y]
        wrong += int(((sides * h <= 0) & (sides != 0)).sum())
        counted += int(np.count_nonzero(sides))
    report = {
        "n_columns": float(code.shape[1]),
        "least_row_distance": codes.closest_rows(code)[0],
        "column_error": wrong / counted,
    }
    centre, chunk = code.mean(axis=0), max(1, codes.CHUNK_BYTES // (8 * code.shape[1]))
    parts = [((code[begin : begin + chunk] - centre) ** 2).sum(axis=1) for begin in range(0, len(code), chunk)]
    squares = np.concatenate(parts)
    return report | bounds.report_of_margins(margins, problem.n_samples, squares, float(np.sqrt(radius)))


def of_designed_code(task: Task, M: Floats) -> dict[str, float]:
    """Margins and bounds of a code on the training examples, and how many of its columns it uses."""
    centred = M - M.mean(axis=0)
    margins, radius = np.full(len(M), np.inf), 0.0
    size = max(1, CHUNK_BYTES // (8 * max(M.shape)))
    for begin in range(0, len(task.y), size):
        h, y = task.H[begin : begin + size], task.y[begin : begin + size]
        margins = np.minimum(margins, bounds.class_margins(np.asarray(h @ centred.T), y))
        squares = h.multiply(h).sum(axis=1) if isinstance(h, sp.csr_matrix) else (h**2).sum(axis=1)
        radius = max(radius, float(squares.max()))
    report = {"n_columns": float(M.shape[1]), "columns_used": float(np.count_nonzero(np.ptp(M, axis=0) > 0))}
    of_rows = (centred**2).sum(axis=1)
    return report | bounds.report_of_margins(margins, len(task.y), of_rows, float(np.sqrt(radius)))
