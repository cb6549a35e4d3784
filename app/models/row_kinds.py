"""Whether the rows of a dataset are of the kind that a version was trained on, checked before anything is read."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets import versions as dataset_versions
from app.datasets.formats import FORMATS
from app.datasets.schemas import NewDataset
from app.errors import MAX_ITEMS, InvalidInput, Item
from app.models import service as models
from app.store import tables
from app.store.files import files

V = tables.ModelVersion
HELD = {"text": "texts", "sparse": "numbers", "table": "a table of several kinds of columns"}
_ROLES = {"text": "texts", "number": "numbers", "category": "categories"}
_OPTIONS = {"text": "text_columns", "number": "number_columns", "category": "category_columns"}


def require_same(
    session: Session, version: tables.ModelVersion, dataset: tables.Dataset, rows: tables.DatasetVersion
) -> None:
    """Raise InvalidInput where no row of a dataset can be read as those that a version was trained on.

    Of versions whose dataset is no more, and of tables of numbers, workers find out.
    """
    trained = None if version.dataset_id is None else session.get(tables.Dataset, version.dataset_id)
    if trained is None or None in (trained.kind, dataset.kind):
        return
    of_model = dataset_versions.find(session, trained.id, _trained_on(version))
    require_alike(trained, of_model, dataset, rows)


def require_alike(
    trained: tables.Dataset,
    of_model: tables.DatasetVersion | None,
    dataset: tables.Dataset,
    rows: tables.DatasetVersion,
    pointer: str = "/dataset",
) -> None:
    """As :func:`require_same`, of rows of another dataset, ``of_model``, that a model is trained on."""
    kinds = (str(trained.kind), str(dataset.kind))
    if kinds == ("table", "table"):
        faults = [] if of_model is None else list(_other_columns(of_model.statistics, rows.statistics))
    elif kinds[0] == kinds[1] or kinds == ("table", "sparse"):
        faults = []
    else:
        faults = [f"the model reads {HELD[kinds[0]]}, and the dataset holds {HELD[kinds[1]]}"]
    if faults:
        items = [Item(detail, pointer) for detail in faults[:MAX_ITEMS]]
        raise InvalidInput("the dataset does not fit the model", items)


# how the values of columns were written; which columns there are comes from their roles
_CELL_OPTIONS = ("column_types", "missing", "missing_values", "text_fields", "decimal", "delimiter", "quotes")
# of numeric columns that can be named in options
_MOST_NAMED = 10_000


def with_columns_of_model(session: Session, new: NewDataset) -> NewDataset:
    """The upload with the options by which the columns that ``for_model`` was trained on are read; raises NotFound."""
    if new.for_model is None:
        return new
    options = columns_read(session, models.version_row(session, new.for_model))
    given = new.model_dump(exclude_unset=True)
    if given.keys() & {"text_columns", "number_columns", "category_columns", "infer_columns"}:
        options = {name: options[name] for name in _CELL_OPTIONS if name in options}
    if not given.get("infer_columns"):
        options["other_columns"] = "ignore"
    return NewDataset.model_validate(options | {"unlabelled": True} | given)


def columns_read(session: Session, version: tables.ModelVersion) -> dict[str, Any]:
    """The import options that read the columns of a version; none of one whose dataset an earlier release deleted."""
    trained = None if version.dataset_id is None else session.get(tables.Dataset, version.dataset_id)
    if trained is None:
        return dict(version.columns or {})
    return _columns_of(session, trained, _trained_on(version))


def keep_columns(session: Session, dataset: tables.Dataset) -> None:
    """Let the versions of a dataset keep what they read, in the transaction that deletes it."""
    read: dict[int, dict[str, Any]] = {}
    for version in session.scalars(select(V).where(V.dataset_id == dataset.id)):
        number = _trained_on(version)
        if number not in read:
            read[number] = _columns_of(session, dataset, number)
        version.columns = read[number]


def _trained_on(version: tables.ModelVersion) -> int:
    return version.request.get("dataset_version") or 1


def _columns_of(session: Session, trained: tables.Dataset, number: int) -> dict[str, Any]:
    """The import options that read the columns of a dataset's version."""
    of_import = dataset_versions.options(session, [trained.id])[trained.id]
    found = {name: of_import[name] for name in _CELL_OPTIONS if name in of_import}
    rows = dataset_versions.find(session, trained.id, number)
    columns = None if rows is None else rows.statistics.get("columns")
    if columns is not None:
        roles: dict[str, list[str]] = {}
        for each in columns:
            roles.setdefault(each["role"], []).append(each["name"])
        return found | {_OPTIONS[role]: names for role, names in roles.items() if role in _OPTIONS}
    if trained.kind == "text":
        return found | {"text_columns": of_import.get("text_columns") or ["text"]}
    names = None if rows is None else files().manifest(rows.path)["feature_names"]
    # names of numbers in tables are columns, or elements of a column of lists; JSON lines may have them in an object
    has_columns = FORMATS[trained.format].is_table or of_import.get("number_columns") or of_import.get("infer_columns")
    if has_columns and names is not None and len(names) <= _MOST_NAMED:
        return found | {"number_columns": names}
    return found


def _other_columns(of_model: dict[str, Any], of_rows: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the columns of a table, for those of another."""
    if of_model.get("columns") is None or of_rows.get("columns") is None:
        return
    read = {each["name"]: each["role"] for each in of_model["columns"] if each["role"] != "left out"}
    there = {each["name"]: each for each in of_rows["columns"]}
    for name, role in read.items():
        found = there.get(name)
        if found is None:
            yield f"the model reads {_ROLES[role]} in column '{name}', which the dataset does not have"
        elif found["role"] != role and (role, found["role"]) != ("category", "number"):
            # numbers can be levels: 1 is true, and 7.0 is 7
            held = f"left out ({found['why']})" if found["role"] == "left out" else f"read as {_ROLES[found['role']]}"
            yield (
                f"the model reads {_ROLES[role]} in column '{name}', which was {held} when the file was uploaded: "
                f"upload it with that column in {_OPTIONS[role]}"
            )
    for name, found in there.items():
        if found["role"] == "text" and name not in read:
            yield (
                f"the dataset has texts in column '{name}', which the model does not read: upload the file with that "
                "column in ignore_columns"
            )
