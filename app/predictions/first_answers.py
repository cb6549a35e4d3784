"""What makes first answers late, done before they are asked for."""

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.datasets.recipe_schemas import TextRecipe
from app.features.base import Row
from app.features.columns import SparseFeatures
from app.features.term_weights import TermWeights
from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.numerics.predicted_scores import places

_AT_ONCE = 1 << 20


def load_loops() -> None:
    """Load the compiled loops of most predictions; the first of a process takes a seventh of a second."""
    load_loops_of(LinearModel(["a", "b"], 1, np.arange(1), np.ones((1, 2), np.float32)))
    SparseFeatures(1).row({"indices": [0], "values": [1.0]})
    TermWeights(TextRecipe(), np.ones(1)).row([0])


def load_loops_of(model: Model) -> None:
    """Load the compiled loops by which a model answers, with an instance that has no features."""
    if len(model.classes):
        model.top(np.empty(0, np.int32), np.empty(0), 1)


class ReadAhead:
    """The arrays in a folder, while a thread has the system read them into its cache, one after the other.

    Attributes
    ----------
    over : bool
        All are there, as far as the system has kept them.
    """

    def __init__(self, folder: Path) -> None:
        self.over = False
        threading.Thread(target=self._read, args=(folder,), name="read-ahead", daemon=True).start()

    def _read(self, folder: Path) -> None:
        # read, as advice to the system counts for the beginning of a large range alone
        buffer = bytearray(_AT_ONCE)
        with contextlib.suppress(OSError):
            for path in folder.rglob("*.npy"):
                with path.open("rb", buffering=0) as file:
                    while file.readinto(buffer):
                        pass
        self.over = True


def ask_for_weights(model: Model, rows: Sequence[Row]) -> None:
    """Have the system read the weights of the features of some rows, all at once: a page at a time takes far longer.

    Of models whose weights are mapped from a file with a row for each feature; does nothing for others.
    """
    weights = model.linear_weights()
    mapped = None if weights is None else getattr(weights.W, "base", None)
    if weights is None or not isinstance(mapped, np.memmap) or not weights.W.flags.c_contiguous:
        return
    at, known = places(weights.features, np.unique(np.concatenate([indices for indices, _ in rows])))
    size = weights.W.strides[0]
    with contextlib.suppress(OSError, AttributeError), open(str(mapped.filename), "rb") as file:
        for begin in (mapped.offset + size * at[known]).tolist():
            os.posix_fadvise(file.fileno(), begin, size, os.POSIX_FADV_WILLNEED)
