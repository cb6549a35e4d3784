"""The columns of a table that a version reads."""

from sqlalchemy.orm import Session

from app.datasets import versions as dataset_versions
from app.features.base import OF_TEXTS
from app.features.names import list_widths
from app.predictions.model_cache import LoadedModel
from app.predictions.schemas import ModelInputs
from app.store import tables

# of columns of numbers that can be listed
MOST_NAMED = 10_000


def read_columns(session: Session, loaded: LoadedModel, max_instances: int) -> ModelInputs:
    """What a version reads of a row of a table.

    Parameters
    ----------
    session : Session
    loaded : LoadedModel
    max_instances : int
        Of a request.
    """
    version, features = loaded.version, loaded.features
    found = ModelInputs(model=version.model, version=version.version, instance="features", max_instances=max_instances)
    if features.kind in OF_TEXTS:
        return found.model_copy(update={"instance": "text", "text_columns": _text_columns(session, version.dataset)})
    if features.columns is not None:
        columns = features.columns
        lists = list_widths(columns.numbers)
        known = {*columns.texts, *columns.numbers, *columns.categories}
        elements = {f"{name}.{at}" for name, width in lists.items() if name not in known for at in range(width)}
        # a column of lists is one column of the table
        numbers = [name for name in columns.numbers if name not in elements]
        numbers += [name for name in lists if name not in known]
        update = {"text_columns": list(columns.texts), "category_columns": list(columns.categories)}
        return found.model_copy(update={"instance": "record", "number_columns": numbers, **update})
    names = features.names()
    if names is None:
        return found.model_copy(update={"instance": "numbers", "n_numbers": features.n_given})
    return found.model_copy(update={"number_columns": names if len(names) <= MOST_NAMED else []})


def _text_columns(session: Session, dataset_id: str | None) -> list[str]:
    if dataset_id is None or session.get(tables.Dataset, dataset_id) is None:
        return []
    return dataset_versions.options(session, [dataset_id])[dataset_id].get("text_columns") or ["text"]
