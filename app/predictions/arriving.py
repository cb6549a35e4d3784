"""Models that arrive from object storage: they answer by the weights of a request's features before all is there."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import structlog

from app.features.base import Row
from app.store.ranges import RangedFolder, TooManyRows
from solvers.core.model import Model
from solvers.core.stored_models import kind_of, model_of
from solvers.numerics.predicted_scores import places

if TYPE_CHECKING:  # which loads this
    from app.predictions.model_cache import LoadedModel

log = structlog.get_logger()

_RETRY_SECONDS = 60.0


class Arrival:
    """A version on its way: the weights of a request's features come at once, and the rest in the background.

    Parameters
    ----------
    folder : RangedFolder
        For which :func:`has_rows` is true.
    load : callable
        Fetches and returns the whole version; called in a thread of its own, after the first request has its weights,
        as both share the network. Where it fails, it is called again for a request a minute later.
    """

    def __init__(self, folder: RangedFolder, load: "Callable[[], LoadedModel]") -> None:
        self._folder, self._load = folder, load
        self._starting = threading.Lock()
        self._whole: Future[LoadedModel] | None = None
        self._ended_at = 0.0

    def answering(self, loaded: "LoadedModel", rows: Sequence[Row], needs_whole: bool) -> "LoadedModel":
        """``loaded`` with all weights that these rows need; the whole version where it is there, or nothing else does.

        Raises
        ------
        NotFound, Unavailable
            The whole version is needed, and cannot be read.
        """
        if not needs_whole and not self._is_over():
            try:
                return replace(loaded, model=with_rows(self._folder, rows), arrival=None)
            except TooManyRows:
                pass
            except (OSError, ValueError) as error:
                log.warning("model.rows_not_read", version=loaded.version.id, error=type(error).__name__)
            finally:
                self._begin()
        return self._begin().result()

    def _begin(self) -> "Future[LoadedModel]":
        with self._starting:
            failed = self._whole is not None and self._whole.done() and not self._is_over()
            if self._whole is None or (failed and time.monotonic() - self._ended_at > _RETRY_SECONDS):
                self._whole = Future()
                threading.Thread(target=self._fetch, args=(self._whole,), name="arrival", daemon=True).start()
            return self._whole

    def _is_over(self) -> bool:
        """Whether the whole version is there."""
        whole = self._whole
        return whole is not None and whole.done() and whole.exception() is None

    def _fetch(self, whole: "Future[LoadedModel]") -> None:
        try:
            whole.set_result(self._load())
        except BaseException as error:
            self._ended_at = time.monotonic()
            log.warning("model.not_arrived", error=type(error).__name__, detail=str(error)[:200])
            whole.set_exception(error)


def has_rows(folder: RangedFolder) -> bool:
    """Whether all that is not at hand of a model can be read by the rows of features."""
    return folder.large.keys() <= kind_of(folder.manifest).row_arrays(folder.small).keys()


def without_weights(folder: RangedFolder) -> Model:
    """The model with NaN in place of the weights that are not at hand: labels, calibration and all else are its own."""
    # scores of float16 weights are sums of float32, and the loops that read these know no NaN
    unknown = {
        name: np.broadcast_to(np.array(np.nan, np.promote_types(rows.dtype, np.float32)), rows.shape)
        for name, rows in folder.large.items()
    }
    return model_of(folder.manifest, {**folder.small, **unknown})


def with_rows(folder: RangedFolder, rows: Sequence[Row]) -> Model:
    """The model with the weights of these rows' features alone, which gives these rows the scores of the whole model.

    Raises
    ------
    TooManyRows
    StorageAway, OSError, ValueError
        They cannot be read, or are damaged.
    """
    asked = np.concatenate([indices for indices, _ in rows])
    arrays = dict(folder.small)
    for name, of_rows in kind_of(folder.manifest).row_arrays(folder.small).items():
        features = folder.small[of_rows]
        at, known = places(features, np.unique([*asked, *features[features >= folder.manifest["n_features"]]]))
        at = at[known]
        if name in folder.large:
            arrays |= {name: folder.large[name].rows(at), of_rows: features[at]}
        elif name in folder.small:
            arrays |= {name: folder.small[name][at], of_rows: features[at]}
    return model_of(folder.manifest, arrays)
