"""Whether text columns, or title and body, are one text or have weights of their own, chosen on some training rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import structlog
from scipy.sparse import csr_matrix

from app.datasets.recipe_schemas import TITLE_AND_BODY, FieldRecipe, TextRecipe
from app.features.excerpts import Text, split_text
from app.features.text import TextFeatures
from app.models.rows import ChosenFields, ChosenTexts, columns_apart
from app.store.corpus import Corpus
from solvers.core.problem import Problem
from solvers.selection.row_losses import FEWEST_ROWS, Gain, gain, row_losses, some_rows
from workers.phases.splitting import Rows

WEIGHTS = (0.5, 0.7, 1.0, 2.0)
# of rows without text columns: the share that must have a title
_FEWEST_TITLES = 0.5
_log = structlog.get_logger("polymargin.worker")


class FieldChoice(NamedTuple):
    """What was chosen, and why.

    Attributes
    ----------
    recipe : TextRecipe
        With weights of fields, or without fields.
    shortest : str
        The column whose weights were tried.
    weight : float
        That of the largest gain.
    gains : mapping of float to Gain
        Of each weight, over the joined text.
    """

    recipe: TextRecipe
    shortest: str
    weight: float
    gains: Mapping[float, Gain]


def with_chosen_fields(corpus: Corpus, rows: Rows, recipe: TextRecipe) -> tuple[TextRecipe, dict[str, float]]:
    """The recipe with chosen weights of fields in the place of auto, and the report of that.

    The shortest column weighs 0.5, 0.7, 1 or 2 and all others 1, or all are joined into one text; one text has a title
    and a body, if half of the rows have both. The joined text stays unless the best of the others has a loss that is
    lower by two standard errors. Columns other than texts are left aside.

    Raises
    ------
    FitError
        No term of the texts is left.
    """
    if recipe.fields != "auto":
        return recipe, {}
    joined = recipe.model_copy(update={"fields": {}})
    columns = columns_apart(corpus)
    if corpus.texts is None or (columns and not corpus.texts.has_fields):
        return joined, {}
    sets = isinstance(rows.truth_train, csr_matrix)
    at = some_rows(len(rows.train))
    names, plain = columns or TITLE_AND_BODY, ChosenTexts(corpus.texts, rows.train[at])
    if len(at) < FEWEST_ROWS:
        return joined, {}
    texts: Iterable[Text] = ChosenFields(corpus, columns, rows.train[at]) if columns else plain
    if not columns and sum(bool(split_text(text, names)[0]) for text in texts) < _FEWEST_TITLES * len(at):
        return joined, {}
    found = chosen_fields(columns, plain, texts, _some(rows, at).problem, recipe)
    best = found.gains[found.weight]
    _log.info(
        "fields_chosen",
        fields={name: own.weight for name, own in found.recipe.own_fields.items()} or "joined",
        gains={f"{found.shortest}={weight:g}": each for weight, each in found.gains.items()},
        measure="ndcg" if sets else "log_loss",
        n_rows=len(at),
    )
    weights = {f"field_weight.{name}": own.weight for name, own in found.recipe.own_fields.items()}
    return found.recipe, {"fields_gain": best.mean, "fields_gain_error": best.error} | weights


def chosen_fields(
    columns: Sequence[str],
    joined: Iterable[str],
    texts: Iterable[Text],
    problem_of: Callable[[csr_matrix], Problem],
    recipe: TextRecipe,
) -> FieldChoice:
    """Compare the joined text with weights of the shortest column, or of the title.

    Parameters
    ----------
    columns : sequence of str
        The text columns; none where rows have one text.
    joined : iterable of str
        The columns' texts joined, of each row.
    texts : iterable of str, or of sequence of str
        Of each row a text for each column, or one text with title and body; read several times.
    problem_of : callable
        The problem whose features are a matrix of the same rows, shape (n_rows, n_features).

    Raises
    ------
    FitError
        No term of the texts is left.
    """
    names = columns or TITLE_AND_BODY
    lengths = np.sum([[len(text) for text in split_text(row, names)] for row in texts], axis=0)
    shortest = names[int(np.argmin(lengths))]
    weighed = {weight: _weighed(recipe, names, shortest, weight) for weight in WEIGHTS}
    plain = recipe.model_copy(update={"fields": {}})
    losses = row_losses(problem_of(TextFeatures.fit(joined, plain)[1]))
    made = TextFeatures.rows_by(texts, list(weighed.values()), columns)
    gains = {weight: gain(row_losses(problem_of(X)), losses) for weight, X in zip(WEIGHTS, made, strict=True)}
    best = max(WEIGHTS, key=lambda weight: gains[weight].mean)
    return FieldChoice(weighed[best] if gains[best].is_clear else plain, shortest, best, gains)


def _weighed(recipe: TextRecipe, names: Sequence[str], shortest: str, weight: float) -> TextRecipe:
    fields = {name: FieldRecipe(weight=weight if name == shortest else 1.0) for name in names}
    return recipe.model_copy(update={"fields": fields})


def _some(rows: Rows, at: np.ndarray) -> Rows:
    """Some of the training rows, by their places among them, with the labels that they have."""
    weights = None if rows.weights is None else rows.weights[at]
    some = replace(rows, train=rows.train[at], truth_train=rows.truth_train[at], weights=weights)
    if isinstance(rows.truth_train, csr_matrix):
        return some
    classes, y = np.unique(rows.y_train[at], return_inverse=True)
    return replace(some, classes=[rows.classes[each] for each in classes], y_train=y.astype(np.int32), tree=None)
