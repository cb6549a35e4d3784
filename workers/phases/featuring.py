"""The features of a dataset's rows: learnt from those that train, and given to those that test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.datasets import kernel_values
from app.datasets.recipe_schemas import OTHER_LANGUAGE, ColumnRecipe, TextRecipe
from app.errors import InvalidInput
from app.features.base import Features
from app.features.by_language import recipes_by_language
from app.features.columns import SparseFeatures
from app.features.concept_names import ConceptName
from app.features.named_text import OF_TABLES, NamedTableFeatures, NamedTextFeatures
from app.features.scaled import ScaledFeatures
from app.features.tables import TableFeatures
from app.features.text import TextFeatures
from app.hierarchies.version_labels import VersionLabels
from app.models.rows import ChosenTexts, cells, columns_apart, texts_of
from app.store.corpus import Corpus
from solvers.core.memory import refuse
from solvers.core.model import Model
from solvers.labels.name_block import NameBlock
from solvers.labels.taxonomy import Taxonomy
from solvers.selection.block_weight import chosen_weight
from workers.phases.field_weights import with_chosen_fields
from workers.phases.splitting import Rows

_log = structlog.get_logger("polymargin.worker")
_OfTable = TypeVar("_OfTable", TableFeatures, NamedTableFeatures)

# where fewer than one in so many columns has a value, the others are left out: whatever is made for each of them would
# cost more than what is trained
_MOST_UNUSED = 2
# of the matrix: as it was read, its training and its test rows, and these without the columns that none has
_COPIES = 2


@dataclass(frozen=True, eq=False)
class Featured:
    """Fitted features, the matrices of both parts, and which columns are names of labels."""

    features: Features
    X_train: csr_matrix
    X_test: csr_matrix
    names: NameBlock | None = None
    report: Mapping[str, float] = field(default_factory=dict)

    def features_read_by(self, model: Model) -> Features:
        """Without the names of labels, where the model reads terms alone: its answers need not look for names."""
        if self.names is None or model.n_features == self.features.n_features:
            return self.features
        assert isinstance(self.features, (NamedTextFeatures, NamedTableFeatures))
        return self.features.terms

    def read_by(self, model: Model) -> "Featured":
        """These features with what they say of the rows."""
        features = self.features_read_by(model)
        if self.names is None or features is self.features:
            return self
        (train, _), (test, _) = self.names.split(self.X_train), self.names.split(self.X_test)
        return Featured(features, csr_matrix(train), csr_matrix(test), report=self.report)


def featured(
    corpus: Corpus,
    rows: Rows,
    recipe: TextRecipe,
    columns: ColumnRecipe | None = None,
    names: VersionLabels | None = None,
    chosen: TextRecipe | None = None,
) -> Featured:
    """Make the matrices; raises FitError where no term of the texts is left.

    Where ``names`` has names of the labels, texts have columns of those that occur in them. ``chosen`` is the recipe
    with weights of fields that were chosen before; without it they are chosen here if ``recipe`` asks for that.
    """
    sought: tuple[list[ConceptName], list[str]] = ([], [])
    if corpus.texts is not None and names is not None and rows.tree is not None:
        sought = names_of_nodes(rows.tree, names, recipe)
    of_records = corpus.kind == "table" or (bool(recipe.fields) and bool(columns_apart(corpus)))
    recipe, report = with_chosen_fields(corpus, rows, recipe) if chosen is None else (chosen, {})
    if of_records:
        return replace(_of_table(corpus, rows, recipe, columns or ColumnRecipe(), *sought), report=report)
    if corpus.texts is not None:
        train, test = (ChosenTexts(corpus.texts, some) for some in (rows.train, rows.test))
        if sought[0]:
            named, X_train = NamedTextFeatures.fit(train, recipe, *sought)
            return Featured(named, X_train, named.transform(test), named.block(), report)
        features, X_train = TextFeatures.fit(train, recipe)
        return Featured(features, X_train, features.transform(test), report=report)
    assert corpus.X is not None
    n_features = int(corpus.X.shape[1])
    require_matrix(len(rows.train) + len(rows.test), int(corpus.X.nnz))
    X_train, X_test = corpus.X[rows.train], corpus.X[rows.test]
    used = _used(X_train)
    given = SparseFeatures(n_features, corpus.feature_names)
    if _MOST_UNUSED * len(used) < n_features:
        given = SparseFeatures(n_features, corpus.feature_names, used)
        X_train, X_test = given.transform(X_train), given.transform(X_test)
    if columns is None:
        return Featured(given, X_train, X_test)
    _require_scaled(columns, len(rows.train) + len(rows.test), given.n_features, int(corpus.X.nnz))
    scaled, X_train = ScaledFeatures.fit(given, X_train, columns)
    return Featured(scaled, X_train, scaled.scaled(X_test))


def names_of_nodes(tree: Taxonomy, known: VersionLabels, recipe: TextRecipe) -> tuple[list[ConceptName], list[str]]:
    """The names of the tree's nodes in the recipe's languages, and how each node is called in explanations.

    A recipe with lemmas of several languages has these; one that names no language has all.
    """
    names, shown = list[ConceptName](), list(tree.names)
    for language, own in reversed(recipes_by_language(recipe).items()):
        if language == OTHER_LANGUAGE:
            continue  # such texts are in a language without names
        sought = own.lemmas if own.language is None and len(own.lemmas) > 1 else (own.text_language,)
        for node, label in enumerate(tree.names):
            found = list(dict.fromkeys(name for each in sought for name in known.names(label, each)))
            names += [ConceptName(node, name, language) for name in found]
            shown[node] = found[0] if found else shown[node]
    return names, shown


def kernel_featured(
    corpus: Corpus, rows: Rows, train: NDArray[np.int64], columns: ColumnRecipe | None = None
) -> Featured:
    """The matrices of rows that are values of a kernel: its values with the training rows alone.

    Parameters
    ----------
    train : int64 array
        The rows for training as a whole, of which ``rows`` may train on some.

    Raises
    ------
    InvalidInput
        The dataset does not have a column for each of the rows to have values with.
    """
    if corpus.kind != "sparse" or corpus.X is None:
        raise InvalidInput("a precomputed kernel needs numeric rows")
    n_columns = int(corpus.X.shape[1])
    used = kernel_values.columns_of(rows.train, train, corpus.n_rows, n_columns, columns)
    features = SparseFeatures(n_columns, corpus.feature_names, used)
    require_matrix(len(rows.train) + len(rows.test), int(corpus.X.nnz))
    return Featured(features, features.transform(corpus.X[rows.train]), features.transform(corpus.X[rows.test]))


def _of_table(
    corpus: Corpus,
    rows: Rows,
    recipe: TextRecipe,
    columns: ColumnRecipe,
    concepts: Sequence[ConceptName],
    shown: Sequence[str],
) -> Featured:
    """The matrices of rows of a table, or of several columns of texts, with the names of concepts if there are any."""
    (X_train, names), (X_test, _) = cells(corpus, rows.train), cells(corpus, rows.test)
    trained, tested = (texts_of(corpus, chosen, recipe) for chosen in (rows.train, rows.test))
    assert corpus.columns is not None
    n_values = 0 if corpus.X is None else int(corpus.X.nnz)
    _require_scaled(columns, len(rows.train) + len(rows.test), len(corpus.columns.numbers), n_values)
    if concepts and trained is not None:
        given = (corpus.columns, names, X_train, trained, columns, recipe)
        named, X_train = NamedTableFeatures.fit(*given, concepts, shown)
        named, X_train = _with_weight(named, X_train, rows)
        return Featured(named, X_train, named.transform(X_test, names, tested), named.block())
    features, X_train = TableFeatures.fit(corpus.columns, names, X_train, trained, columns, recipe)
    features, X_train = _with_weight(features, X_train, rows)
    return Featured(features, X_train, features.transform(X_test, names, tested))


def _with_weight(features: _OfTable, X: csr_matrix, rows: Rows) -> tuple[_OfTable, csr_matrix]:
    """The features with a weight of vectors that is chosen on some of the training rows, if it is to be chosen."""
    if features.terms.vector_weight != "auto":
        return features, X
    block, weight = features.terms.vectors, 1.0
    if len(block):
        names = features.block() if isinstance(features, NamedTableFeatures) else None
        found = chosen_weight(rows.problem(X, names), block)
        weight = found.weight
        _log.info("vector_weight_chosen", weight=weight, log_losses=dict(found.log_losses))
        X.data[np.isin(X.indices, block)] *= weight
    return features.weighed(weight), X


def with_chosen_weight(columns: ColumnRecipe | None, featured: Featured) -> ColumnRecipe | None:
    """A recipe of columns with the weight of vectors that was chosen for these features."""
    if columns is None or columns.vector_weight != "auto" or not isinstance(featured.features, OF_TABLES):
        return columns
    return columns.model_copy(update={"vector_weight": featured.features.terms.vector_weight})


def chosen_text(featured: Featured) -> TextRecipe | None:
    """The recipe of texts that these features have; None if they have none."""
    features = featured.features
    if isinstance(features, OF_TABLES):
        return features.text_recipe if features.terms.columns.texts else None
    return features.text_recipe if isinstance(features, (TextFeatures, NamedTextFeatures)) else None


def _require_scaled(columns: ColumnRecipe, n_rows: int, n_numbers: int, nnz: int) -> None:
    """As :func:`require_matrix`, of numbers of which none may be zero after scaling."""
    dense = columns.scaling in ("standard", "robust")
    require_matrix(n_rows, nnz + (n_rows * n_numbers if dense else 0))


def require_matrix(n_rows: int, nnz: int) -> None:
    """Raise TooLargeError where a job may not hold a sparse matrix of that size as often as preparing it takes."""
    refuse(f"preparing {n_rows:,} rows with {nnz:,} values", _COPIES * (12 * nnz + 8 * n_rows), None)


def _used(X: csr_matrix) -> NDArray[np.int32]:
    """The columns that some row has, ascending; the first, where none has any."""
    if X.shape[1] <= 8 * X.nnz:
        there = np.zeros(X.shape[1], bool)
        there[X.indices] = True
        used = np.flatnonzero(there)
    else:
        used = np.unique(X.indices)  # costs nothing for those that are not there
    return np.asarray(used if len(used) else [0], np.int32)
