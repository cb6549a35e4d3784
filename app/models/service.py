"""Models and their versions: shown, described and tagged."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, select, tuple_
from sqlalchemy.orm import Session

from app.datasets.rows import languages_at
from app.datasets.statistics_schemas import Languages
from app.errors import InvalidInput, NotFound, PreconditionFailed
from app.features.base import OF_TEXTS
from app.models import aliases, convergence
from app.models.schemas import MAX_TAGS, Model, ModelAbout, ModelVersion, PathOverC, Selection, VersionPatch
from app.schemas import Page
from app.store import tables
from app.store.db import reading, writing
from app.store.files import files
from app.store.lookup import MAX_PAGE, by_id, by_ref, newest, to_schema

V = tables.ModelVersion

# a measure of one level of a label tree is stored as its name and the level: f1_2
_OF_LEVEL = re.compile(r"(.+)_([0-9]+)")

# the share of texts from which their most common language is that of the version
_MOST_TEXTS = 0.5


def get(session: Session, ref: str) -> Model:
    """A model by id or name; raises NotFound."""
    with reading(session):
        return _show_models(session, [model_row(session, ref)])[0]


def page(session: Session, page_size: int = 100, page_token: str | None = None) -> Page[Model]:
    """Models, newest first."""
    with reading(session):
        query = select(tables.Model).where(live_versions().exists())
        rows, token = newest(session, tables.Model, query, page_size, page_token)
        return Page[Model](items=_show_models(session, rows), next_page_token=token)


def version(session: Session, ref: str, number: int | None = None, alias: str | None = None) -> ModelVersion:
    """One version by its number or by an alias; where neither is given, the latest that is no smaller copy.

    Raises
    ------
    NotFound
        No such model, version or alias.
    InvalidInput
        Both a number and an alias are given.
    """
    with reading(session):
        model = by_ref(session, tables.Model, ref)
        return show_versions(session, [aliases.version_of(session, model, number, alias)])[0]


def version_by_id(session: Session, id: str) -> ModelVersion:
    """One version by its id, be it deleted; raises NotFound."""
    with reading(session):
        return show_versions(session, [by_id(session, V, id)])[0]


def version_row(
    session: Session, ref: str, number: int | None = None, alias: str | None = None, lock: bool = False
) -> tables.ModelVersion:
    """As :func:`version`, the row itself, in the caller's transaction; ``lock``: it is not deleted before its end."""
    return aliases.version_of(session, by_ref(session, tables.Model, ref, lock=lock), number, alias)


def model_row(session: Session, ref: str, lock: bool = False) -> tables.Model:
    """The row of a model that has versions; raises NotFound."""
    model = by_ref(session, tables.Model, ref, lock=lock)
    if session.scalars(select(V.id).where(V.model_id == model.id, V.deleted_at.is_(None)).limit(1)).first() is None:
        raise NotFound(f"the versions of the model {model.name!r} were deleted; restore brings them back for a time")
    return model


def live_versions() -> Select[Any]:
    """Ids of the versions of a row of models that are not deleted, to be used in a query of models."""
    return select(V.id).where(V.model_id == tables.Model.id, V.deleted_at.is_(None))


def versions(session: Session, ref: str) -> list[ModelVersion]:
    """The newest thousand versions of a model, newest first."""
    return version_page(session, ref, MAX_PAGE).items


def version_page(session: Session, ref: str, page_size: int = 100, page_token: str | None = None) -> Page[ModelVersion]:
    """Versions of a model, newest first."""
    with reading(session):
        model = model_row(session, ref)
        query = select(V).where(V.model_id == model.id, V.deleted_at.is_(None))
        rows, token = newest(session, V, query, page_size, page_token)
        return Page[ModelVersion](items=show_versions(session, rows), next_page_token=token)


def folder(session: Session, version_id: str) -> str:
    """Where the files of a version are kept; raises NotFound."""
    with reading(session):
        path = session.scalars(select(V.path).where(V.id == version_id)).one_or_none()
    if path is None:
        raise NotFound(f"no model version has the id {version_id!r:.80}")
    return path


def stored_metrics(session: Session, version_id: str) -> dict[str, dict[str, float]]:
    """All measures of a version as they are stored: part, name, value."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    query = select(tables.Metric).where(tables.Metric.version_id == version_id)
    for metric in session.scalars(query.order_by(tables.Metric.part, tables.Metric.name)):
        found[metric.part][metric.name] = metric.value
    return dict(found)


def selection(session: Session, ref: str, number: int) -> Selection:
    """How a version was chosen, from its artefact's manifest; raises NotFound."""
    with reading(session):
        row = aliases.version_of(session, by_ref(session, tables.Model, ref), number, None)
    try:
        record = files().manifest(f"{row.path}/model").get("record", {})
    except (OSError, ValueError):
        raise NotFound(f"the files of version {number} cannot be read") from None
    return Selection.model_validate({"trials": [], "members": [], **record})


def path_over_c(session: Session, ref: str, number: int) -> PathOverC:
    """The path over all C of a version; raises NotFound, also where it was not trained along one."""
    found = selection(session, ref, number).path
    if found is None:
        raise NotFound(f"version {number} was not trained with every_c, so it has no path over C")
    return found


def _show_models(session: Session, rows: Sequence[tables.Model]) -> list[Model]:
    ids = [row.id for row in rows]
    numbers: dict[str, list[int]] = defaultdict(list)
    latest: dict[str, str] = {}
    query = (
        select(V.model_id, V.number, V.id).where(V.model_id.in_(ids), V.deleted_at.is_(None)).order_by(*aliases.LATEST)
    )
    for model_id, number, version_id in session.execute(query):
        numbers[model_id].append(number)
        latest.setdefault(model_id, version_id)
    shown = session.scalars(select(V).where(V.id.in_(latest.values())))
    newest_versions = {row.id: row for row in show_versions(session, list(shown))}
    named = aliases.of_models(session, ids)
    return [
        to_schema(
            Model,
            row,
            about=ModelAbout.model_validate(row.about or {}),
            versions=sorted(numbers[row.id], reverse=True),
            aliases=[alias for _, alias in named[row.id]],
            latest=newest_versions[latest[row.id]] if row.id in latest else None,
        )
        for row in rows
    ]


def show_versions(session: Session, rows: Sequence[tables.ModelVersion]) -> list[ModelVersion]:
    """Versions as the API shows them."""
    model_ids = {row.model_id for row in rows}
    query = select(tables.Model.id, tables.Model.name).where(tables.Model.id.in_(model_ids))
    names = {row.id: row.name for row in session.execute(query)}
    metrics: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for metric in session.scalars(
        select(tables.Metric).where(tables.Metric.version_id.in_([row.id for row in rows])).order_by(tables.Metric.name)
    ):
        metrics[metric.version_id][metric.part][metric.name] = metric.value
    named: dict[str, list[str]] = defaultdict(list)
    for of_model in aliases.of_models(session, model_ids).values():
        for version_id, alias in of_model:
            named[version_id].append(alias.name)
    return [
        to_schema(
            ModelVersion,
            row,
            model=names[row.model_id],
            version=row.number,
            job=row.job_id,
            dataset=row.dataset_id,
            hierarchy=row.hierarchy_id,
            unconverged=convergence.unconverged(row),
            warning=convergence.unlearnt(metrics[row.id]),
            report=row.report or {},
            metrics={part: _whole(values) for part, values in metrics[row.id].items()},
            levels={part: found for part, values in metrics[row.id].items() if (found := _by_level(values))},
            aliases=named[row.id],
            tags=row.tags or {},
            notes=row.notes or "",
        )
        for row in rows
    ]


def _whole(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if not _OF_LEVEL.fullmatch(name)}


def _by_level(values: Mapping[str, float]) -> list[dict[str, float]]:
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for name, value in values.items():
        match = _OF_LEVEL.fullmatch(name)
        if match is not None:
            found[int(match[2])][match[1]] = value
    return [found[level] for level in sorted(found)]


def of_texts(session: Session, versions: Sequence[ModelVersion]) -> set[str]:
    """The ids of those versions whose instances are texts: by dataset and request, or by stored features."""
    data = tables.Dataset
    with reading(session):
        trained_on = {version.dataset for version in versions if version.dataset}
        rows = session.execute(select(data.id, data.kind).where(data.id.in_(trained_on))).all()
        of_dataset = {row.id: row.kind for row in rows}
        kinds = {version.id: of_dataset.get(version.dataset) for version in versions}
        kinds |= dict.fromkeys(_weighing_fields(session, versions), "table")
        others = select(V.id, V.path).where(V.id.in_([id for id, kind in kinds.items() if kind is None]))
        paths = session.execute(others).all()
    for id, path in paths:
        kinds[id] = files().manifest(f"{path}/features")["kind"]
    return {id for id, kind in kinds.items() if kind in OF_TEXTS}


def _weighing_fields(session: Session, versions: Sequence[ModelVersion]) -> list[str]:
    """The ids of those versions that weigh several text columns, and so read records."""
    with_fields = [version for version in versions if (version.request.get("text") or {}).get("fields")]
    weighed = {version.id: (version.dataset, version.dataset_sha256) for version in with_fields if version.dataset}
    if not weighed:
        return []
    of = tables.DatasetVersion
    query = select(of.dataset_id, of.sha256, of.statistics["columns"])
    columns = session.execute(query.where(tuple_(of.dataset_id, of.sha256).in_(set(weighed.values()))))
    several = {
        (dataset, sha256)
        for dataset, sha256, found in columns
        if sum(column["role"] == "text" for column in found or []) > 1
    }
    return [version for version, place in weighed.items() if place in several]


def training_languages(session: Session, version: ModelVersion) -> frozenset[str]:
    """The languages of at least 1 % of a version's training texts, and those of its recipe; empty if not known."""
    recipe = version.request.get("text") or {}
    named = {*(recipe.get("by_language") or ()), *(recipe.get("lemmas") or ()), recipe.get("language")} - {None, "auto"}
    data = tables.DatasetVersion
    query = select(data.statistics["languages"]).where(
        data.dataset_id == version.dataset, data.number == (version.request.get("dataset_version") or 1)
    )
    with reading(session):
        found = session.execute(query).scalar()
    shares = Languages.model_validate(found).shares if found else []
    return frozenset(named | {each.language for each in shares} - {"other"})


def languages_of(session: Session, versions: Sequence[ModelVersion]) -> dict[str, str]:
    """The language of each version that has one, by the version's id.

    It is the one that the recipe of texts names, or else the one that most texts of the dataset are in.
    """
    found: dict[str, str] = {}
    for version in versions:
        language = (version.request.get("text") or {}).get("language")
        if language not in (None, "auto"):
            found[version.id] = language
    trained_on = {
        (version.dataset, version.dataset_sha256) for version in versions if version.dataset and version.id not in found
    }
    if not trained_on:
        return found
    data = tables.DatasetVersion
    query = select(data.dataset_id, data.sha256, data.path, data.statistics["languages"]).where(
        tuple_(data.dataset_id, data.sha256).in_(trained_on)
    )
    with reading(session):
        rows = session.execute(query).all()
    by_data = {
        (dataset, sha256): Languages.model_validate(shares) if shares else languages_at(path)
        for dataset, sha256, path, shares in rows
    }
    for version in versions:
        languages = by_data.get((version.dataset or "", version.dataset_sha256))
        if version.id not in found and languages is not None and languages.shares:
            first = languages.shares[0]
            if first.language != "other" and first.share >= _MOST_TEXTS:
                found[version.id] = first.language
    return found


def describe(session: Session, ref: str, about: ModelAbout) -> Model:
    """Change what is said about a model: fields that are not given stay, and null removes one.

    Raises
    ------
    NotFound
        No such model.
    """
    with writing(session):
        model = model_row(session, ref, lock=True)
        session.refresh(model)
        changed = (model.about or {}) | about.model_dump(mode="json", exclude_unset=True)
        model.about = ModelAbout.model_validate(changed).stored
        session.flush()
        return get(session, ref)


def change_version(
    session: Session, ref: str, number: int, patch: VersionPatch, if_match: int | None = None
) -> ModelVersion:
    """Change tags and notes of a version, if it still has the revision that the change is based on.

    Parameters
    ----------
    if_match : int, optional
        The revision that the version must have now; None: whatever it has.

    Raises
    ------
    NotFound
        No such model or version.
    PreconditionFailed
        The version has another revision.
    InvalidInput
        There would be too many tags.
    """
    with writing(session):
        row = version_row(session, ref, number, lock=True)
        session.refresh(row)
        if if_match is not None and if_match != row.revision:
            raise PreconditionFailed(f"the version has revision {row.revision}; If-Match names {if_match}")
        tags = {name: value for name, value in {**(row.tags or {}), **(patch.tags or {})}.items() if value is not None}
        if len(tags) > MAX_TAGS:
            raise InvalidInput(f"the version would have {len(tags)} tags; at most {MAX_TAGS} are allowed")
        row.tags = tags
        if patch.notes is not None:
            row.notes = patch.notes
        row.revision += 1
        session.flush()
        return show_versions(session, [row])[0]
