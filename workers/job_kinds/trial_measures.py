"""What a trial's model says of the rows that were held out."""

import numpy as np
from numpy.typing import NDArray

from app.services.hierarchies.version_labels import VersionLabels
from app.store.corpus import Corpus
from solvers.core.model import Model
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.calibration import log_losses
from solvers.metrics.evaluation import Evaluation, Labels, Truth
from solvers.metrics.outcomes import Outcomes
from solvers.selection.held_out import MOST_SCORES
from solvers.selection.pooling import fit_temperature
from workers.job_kinds.trial_rows import Fold
from workers.phases.evaluated_rows import labelled, labels_of

CHUNK_BYTES = 64 << 20


def measured(model: Model, fold: Fold, corpus: Corpus, tree: Taxonomy | None, known: VersionLabels) -> dict[str, float]:
    """All measures of the rows held out by name, as evaluations have them; ``accuracy`` is 1 less ``error``.

    Of models that tell no probabilities ``log_loss`` is that of the softmax of their scores at the best temperature.
    """
    X, rows = fold.data.X_test, fold.rows.test
    labels, truth, _ = labelled(corpus, rows, labels_of(model, tree), known)
    evaluation = Evaluation(labels, truth, model.names_sets)
    ranks_classes = truth.single is not None and not model.names_sets
    width = max(1, len(model.classes))
    step, every = max(1, CHUNK_BYTES // (8 * width)), -(-len(rows) * width // MOST_SCORES)
    scores: list[NDArray[np.float32]] = []
    while evaluation.done < evaluation.n_rows:
        begin = evaluation.done
        ranking = model.ranking(X[begin : begin + step])
        evaluation.add(ranking)
        if ranks_classes and not ranking.tells_probabilities:
            scores.append(ranking.values[-begin % every :: every].astype(np.float32))
    found = {each.name: each.value for each in Outcomes(evaluation).measures(0) if each.level == 0}
    found["accuracy"] = 1.0 - found["error"]
    if scores:
        loss = _log_loss(np.concatenate(scores), labels, truth, every)
        if loss is not None:
            found["log_loss"] = loss
    return found


def _log_loss(scores: NDArray[np.float32], labels: Labels, truth: Truth, every: int) -> float | None:
    """A label that is no class of the model has probability 0; None where scores are infinite."""
    assert truth.single is not None
    class_of = np.full(labels.n, -1)
    class_of[labels.class_labels] = np.arange(len(labels.class_labels))
    y = class_of[truth.single[::every]]
    known = y >= 0
    if not known.any() or not np.isfinite(scores).all():
        return None
    unknown = float(log_losses(np.zeros(1))[0])
    inside = fit_temperature(np.ascontiguousarray(scores[known]), y[known].astype(np.int32)).log_loss
    return float((known.sum() * inside + (~known).sum() * unknown) / len(y))
