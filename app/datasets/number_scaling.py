"""The default scaling of numbers, by their magnitudes and standard deviations."""

from dataclasses import dataclass
from typing import Any, Literal

from app.datasets.recipe_schemas import ColumnRecipe
from app.datasets.statistics_schemas import DatasetStatistics
from app.errors import InvalidInput, Item
from app.features.names import list_numbers
from app.store.row_checks import why_scaled
from solvers.core.base import Solver

# differences of larger numbers overflow
MOST = 1e300


@dataclass(frozen=True)
class DefaultScaling:
    """The default scaling of numbers.

    Attributes
    ----------
    params : dict
        Parameters of the solver that go with it: an intercept, where columns are centred.
    """

    recipe: ColumnRecipe
    params: dict[str, Any]
    reason: str


def default_scaling(kind: str | None, statistics: DatasetStatistics, solver: Solver[Any]) -> DefaultScaling | None:
    """The default scaling of a dataset's numbers for a solver; None if they are used unchanged.

    Parameters
    ----------
    kind : str or None
        Of the dataset; tables and texts have recipes of their own.
    solver : Solver

    Raises
    ------
    InvalidInput
        The numbers of dense columns are too large to centre.
    """
    if solver.takes_kernel_values:
        return None
    recipe = default_recipe(kind, statistics, solver.column_scaling)
    if recipe is None:
        return None
    if recipe.vector_weight is not None:
        return DefaultScaling(recipe, {}, "columns of lists are beside texts, whose features have length 1")
    assert statistics.numbers is not None
    centred = recipe.scaling == "standard" and "bias" in type(solver.params).model_fields
    return DefaultScaling(recipe, {"bias": 1.0} if centred else {}, str(why_scaled(statistics.numbers)))


def _has_vectors_beside_texts(statistics: DatasetStatistics) -> bool:
    columns = statistics.columns or []
    numbers = [column.name for column in columns if column.role == "number"]
    return any(column.role == "text" for column in columns) and bool((list_numbers(numbers) >= 0).any())


def default_recipe(
    kind: str | None,
    statistics: DatasetStatistics,
    of_columns: Literal["standard", "max_abs", "none"] = "standard",
) -> ColumnRecipe | None:
    """The default scaling of a dataset's numbers, by how the solver scales columns; None and raises as above."""
    if _has_vectors_beside_texts(statistics):
        return ColumnRecipe(vector_weight="auto")
    numbers = statistics.numbers
    if kind != "sparse" or numbers is None or of_columns == "none" or why_scaled(numbers) is None:
        return None
    if numbers.least_spread is None:
        return ColumnRecipe(scaling="power_of_two")
    if numbers.largest > MOST:
        detail = f"columns have numbers as large as {numbers.largest:.3g}; divide them so that none exceeds {MOST:g}"
        raise InvalidInput("the dataset cannot be trained on", [Item(detail, "/dataset")])
    return ColumnRecipe(scaling=of_columns)
