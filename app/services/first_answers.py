"""What makes first answers late, done before they are asked for."""

import contextlib
import os
import threading
from pathlib import Path

import numpy as np

from app.features.columns import SparseFeatures
from app.features.term_weights import TermWeights
from app.schemas.texts import TextRecipe
from solvers.core.linear_model import LinearModel
from solvers.core.model import Model


def load_loops() -> None:
    """Load the compiled loops of most predictions; the first of a process takes a seventh of a second."""
    load_loops_of(LinearModel(["a", "b"], 1, np.arange(1), np.ones((1, 2), np.float32)))
    SparseFeatures(1).row({"indices": [0], "values": [1.0]})
    TermWeights(TextRecipe(), np.ones(1)).row([0])


def load_loops_of(model: Model) -> None:
    """Load the compiled loops by which a model answers, with an instance that has no features."""
    if len(model.classes):
        model.top(np.empty(0, np.int32), np.empty(0), 1)


def reading_ahead(folder: Path) -> None:
    """Let the system read the arrays in a folder, while requests are answered: a page at a time takes far longer."""
    threading.Thread(target=_read_ahead, args=(folder,), name="read-ahead", daemon=True).start()


def _read_ahead(folder: Path) -> None:
    for file in folder.rglob("*.npy"):
        with contextlib.suppress(OSError, AttributeError), file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
