"""The features of a dataset's rows: learnt from those that train, and given to those that test."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from app.datasets import kernel_values
from app.datasets.recipe_schemas import ColumnRecipe, TextRecipe
from app.errors import InvalidInput
from app.features.base import Features
from app.features.columns import SparseFeatures
from app.features.named_text import ConceptName, NamedTextFeatures
from app.features.scaled import ScaledFeatures
from app.features.tables import TableFeatures
from app.features.text import TextFeatures
from app.formats.table import Texts
from app.hierarchies.version_labels import VersionLabels
from app.store.corpus import Corpus
from solvers.core.memory import refuse
from solvers.core.model import Model
from solvers.labels.name_block import NameBlock
from solvers.labels.taxonomy import Taxonomy
from workers.phases.splitting import Rows

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

    def features_read_by(self, model: Model) -> Features:
        """Without the names of labels, where the model reads terms alone: its answers need not look for names."""
        if self.names is None or model.n_features == self.features.n_features:
            return self.features
        assert isinstance(self.features, NamedTextFeatures)
        return self.features.terms

    def read_by(self, model: Model) -> "Featured":
        """These features with what they say of the rows."""
        features = self.features_read_by(model)
        if self.names is None or features is self.features:
            return self
        (train, _), (test, _) = self.names.split(self.X_train), self.names.split(self.X_test)
        return Featured(features, csr_matrix(train), csr_matrix(test))


def featured(
    corpus: Corpus,
    rows: Rows,
    recipe: TextRecipe,
    columns: ColumnRecipe | None = None,
    names: VersionLabels | None = None,
) -> Featured:
    """Make the matrices; raises FitError where no term of the texts is left.

    Where ``names`` has names of the labels, texts have columns of those that occur in them.
    """
    if corpus.kind == "table":
        return _of_table(corpus, rows, recipe, columns or ColumnRecipe())
    if corpus.texts is not None and names is not None and rows.tree is not None:
        return _of_named_texts(corpus.texts, rows, rows.tree, recipe, names)
    if corpus.texts is not None:
        features, X_train = TextFeatures.fit(ChosenTexts(corpus.texts, rows.train), recipe)
        return Featured(features, X_train, features.transform(ChosenTexts(corpus.texts, rows.test)))
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


def _of_named_texts(
    texts: Sequence[str] | Texts, rows: Rows, tree: Taxonomy, recipe: TextRecipe, known: VersionLabels
) -> Featured:
    """Terms, and the names of the tree's nodes in the recipe's language; terms alone, where nodes have no names."""
    by_node = [known.names(label, recipe.text_language) for label in tree.names]
    trained, tested = ChosenTexts(texts, rows.train), ChosenTexts(texts, rows.test)
    if not any(by_node):
        features, X_train = TextFeatures.fit(trained, recipe)
        return Featured(features, X_train, features.transform(tested))
    names = (ConceptName(node, name) for node, some in enumerate(by_node) for name in some)
    shown = [some[0] if some else label for some, label in zip(by_node, tree.names, strict=True)]
    named, X_train = NamedTextFeatures.fit(trained, recipe, names, shown)
    return Featured(named, X_train, named.transform(tested), named.block())


def kernel_featured(
    corpus: Corpus, rows: Rows, train: NDArray[np.int64], columns: ColumnRecipe | None = None
) -> Featured:
    """The matrices of rows that are values of a kernel: its values with the training rows alone.

    Parameters
    ----------
    corpus : Corpus
    rows : Rows
    train : int64 array
        The rows for training as a whole, of which ``rows`` may train on some.
    columns : ColumnRecipe, optional

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


def _of_table(corpus: Corpus, rows: Rows, recipe: TextRecipe, columns: ColumnRecipe) -> Featured:
    """The matrices of a table's rows."""
    assert corpus.X is not None
    assert corpus.columns is not None
    assert corpus.feature_names is not None
    _require_scaled(columns, len(rows.train) + len(rows.test), len(corpus.columns.numbers), int(corpus.X.nnz))
    trained, tested = (
        None if corpus.texts is None else ChosenTexts(corpus.texts, chosen) for chosen in (rows.train, rows.test)
    )
    features, X_train = TableFeatures.fit(
        corpus.columns, corpus.feature_names, corpus.X[rows.train], trained, columns, recipe
    )
    return Featured(features, X_train, features.transform(corpus.X[rows.test], corpus.feature_names, tested))


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


class ChosenTexts:
    """The texts of some rows, decoded one at a time, as often as asked for."""

    def __init__(self, texts: Sequence[str] | Texts, rows: NDArray[np.int64]) -> None:
        self._texts = texts
        self._rows = rows

    def __iter__(self) -> Iterator[str]:
        for row in self._rows.tolist():
            yield self._texts[row]
