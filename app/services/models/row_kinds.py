"""Whether the rows of a dataset are of the kind that a version was trained on, told before anything is read."""

from sqlalchemy.orm import Session

from app.errors import InvalidInput, Item
from app.store import tables

HELD = {"text": "texts", "sparse": "numbers", "table": "a table of several kinds of columns"}


def require_same(session: Session, version: tables.ModelVersion, dataset: tables.Dataset) -> None:
    """Raise InvalidInput where no row of a dataset can be read as those that a version was trained on.

    Of versions whose dataset is no more, and of tables of numbers, workers find out.
    """
    trained = None if version.dataset_id is None else session.get(tables.Dataset, version.dataset_id)
    kinds = (None if trained is None else trained.kind, dataset.kind)
    if None in kinds or kinds[0] == kinds[1] or kinds == ("table", "sparse"):
        return
    detail = f"the model reads {HELD[str(kinds[0])]}, and the dataset holds {HELD[str(kinds[1])]}"
    raise InvalidInput("the dataset does not fit the model", [Item(detail, "/dataset")])
