"""Deleted versions: previewed, held, brought back, removed with their files; tags and notes; what rules let go."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session
from version_facts import FACTS

from app.errors import Conflict, Forbidden, InvalidInput, NotFound, PreconditionFailed
from app.jobs import service as jobs
from app.jobs import wakeups as job_queue
from app.jobs.schemas import TrainRequest
from app.models import aliases, deletions, versions
from app.models import service as models
from app.models.schemas import VersionPatch
from app.operation import sweep
from app.store import tables
from app.store.db import db_now, new_id, writing
from app.store.files import files
from app.store.scope import DEFAULT, Scope, confine
from workers import sweeper


def _add(session: Session, model: str = "m") -> str:
    """A version with files of ten bytes; the path of these."""
    job_id = new_id()
    path = f"models/{job_id}.1"
    files().path(path).mkdir(parents=True)
    files().path(f"{path}/W.npy").write_bytes(b"0123456789")
    with writing(session):
        versions.add(session, model, replace(FACTS, job_id=job_id, path=path), {"test": {"error": 0.25}})
    return path


def _ages(session: Session) -> None:
    """All deleted versions were deleted long ago."""
    with writing(session):
        old = update(tables.ModelVersion).where(tables.ModelVersion.deleted_at.is_not(None))
        session.execute(old.values(deleted_at=db_now() - 1e9))


def test_a_preview_tells_what_a_deletion_does_and_changes_nothing(session: Session) -> None:
    _add(session)
    reported = deletions.delete_version(session, "m", 1, dry_run=True)
    assert (reported.dry_run, reported.versions, reported.size_bytes, reported.held) == (True, [1], 10, [])
    assert models.version(session, "m").version == 1
    done = deletions.delete_version(session, "m", 1)
    assert done == reported.model_copy(update={"dry_run": False, "restorable_until": done.restorable_until})
    with pytest.raises(NotFound, match="restore brings them back"):
        models.get(session, "m")


def test_a_deleted_version_is_found_nowhere_until_it_is_restored(session: Session) -> None:
    _add(session)
    _add(session)
    deletions.delete_version(session, "m", 2)
    assert models.version(session, "m").version == 1
    assert models.get(session, "m").versions == [1]
    assert [item.version for item in models.versions(session, "m")] == [1]
    with pytest.raises(NotFound, match="was deleted, and can be restored"):
        models.version(session, "m", 2)
    with pytest.raises(NotFound):
        aliases.set_alias(session, "m", "production", 2)
    assert deletions.restore_version(session, "m", 2).versions == [2]
    assert models.version(session, "m").version == 2
    assert models.version(session, "m").metrics == {"test": {"error": 0.25}}
    with pytest.raises(NotFound):
        deletions.restore_version(session, "m", 3)


def test_a_model_goes_with_all_its_versions_and_comes_back_with_those_that_went_together(session: Session) -> None:
    for _ in range(3):
        _add(session)
    _add(session, "other")
    deletions.delete_version(session, "m", 1)
    assert deletions.delete_model(session, "m").versions == [3, 2]
    assert [item.name for item in models.page(session).items] == ["other"]
    for ask in (models.get, models.version, models.versions, deletions.delete_model, deletions.retention):
        with pytest.raises(NotFound):
            ask(session, "m")
    assert deletions.restore_model(session, "m").versions == [3, 2]
    assert models.get(session, "m").versions == [3, 2]


def test_a_number_is_never_given_again(session: Session) -> None:
    _add(session)
    _add(session)
    deletions.delete_version(session, "m", 2)
    _ages(session)
    assert deletions.purge(session) == [("m", 2)]
    _add(session)
    assert models.get(session, "m").versions == [3, 1]


def test_an_alias_holds_its_version_and_its_model(session: Session) -> None:
    _add(session)
    _add(session)
    aliases.set_alias(session, "m", "production", 1)
    reported = deletions.delete_version(session, "m", 1, dry_run=True)
    assert [(each.version, "production" in each.reason) for each in reported.held] == [(1, True)]
    for refused in (lambda: deletions.delete_version(session, "m", 1), lambda: deletions.delete_model(session, "m")):
        with pytest.raises(Conflict) as caught:
            refused()
        assert "production" in caught.value.errors[0].detail
    assert models.get(session, "m").versions == [2, 1]
    aliases.delete_alias(session, "m", "production")
    assert deletions.delete_version(session, "m", 1).versions == [1]


def test_a_job_that_is_not_over_holds_what_it_measures_and_what_it_makes(
    session: Session, dataset: Callable[..., str]
) -> None:
    dataset_id = dataset()
    _add(session)
    with writing(session):
        id = job_queue.enqueue(session, "evaluate", dataset_id, {"kind": "evaluate", "model": "m", "version": 1}).id
    with pytest.raises(Conflict) as caught:
        deletions.delete_version(session, "m", 1)
    assert id in caught.value.errors[0].detail
    jobs.cancel(session, id)
    training = jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m")).id
    with pytest.raises(Conflict) as caught:
        deletions.delete_model(session, "m")
    assert training in caught.value.errors[0].detail
    jobs.cancel(session, training)
    assert deletions.delete_model(session, "m").versions == [1]


def _tidy(session: Session) -> None:
    for step in sweeper._TIDYING:
        step(session)


def test_rows_and_files_go_when_their_time_is_over_and_their_numbers_with_them(session: Session) -> None:
    first, second = _add(session), _add(session)
    deletions.delete_version(session, "m", 1)
    assert deletions.purge(session) == []
    _tidy(session)
    assert files().path(first).exists()
    _ages(session)
    _tidy(session)
    assert not files().path(first).exists()
    assert files().path(second).exists()
    deletions.delete_model(session, "m")
    assert deletions.purge(session, at_once=True) == [("m", 2)]
    assert session.scalars(select(func.count()).select_from(tables.ModelVersion)).one() == 0
    assert models.page(session).items == []
    for ask in (models.get, deletions.restore_model, deletions.delete_model):
        with pytest.raises(NotFound):
            ask(session, "m")
    _add(session)
    assert models.version(session, "m").version == 3


def test_a_name_without_versions_becomes_that_of_its_next_maker(session: Session) -> None:
    _add(confine(session, Scope(DEFAULT, "anna")))
    deletions.set_retention(session, "m", 1)
    deletions.delete_model(session, "m")
    deletions.purge(session, at_once=True)
    _add(confine(session, Scope(DEFAULT, "berta")))
    assert deletions.retention(session, "m").keep_last is None
    assert deletions.delete_model(session, "m").versions == [2]


def test_only_owners_bring_back_what_they_have_deleted(session: Session) -> None:
    _add(confine(session, Scope(DEFAULT, "anna")))
    deletions.delete_model(session, "m")
    confine(session, Scope(DEFAULT, "berta"))
    with pytest.raises(Forbidden):
        deletions.restore_version(session, "m", 1)
    with pytest.raises(Forbidden):
        deletions.restore_model(session, "m")
    confine(session, Scope(DEFAULT, "anna"))
    assert deletions.restore_model(session, "m").versions == [1]


def test_a_job_of_another_workspace_holds_no_version_of_a_model_of_the_same_name(
    session: Session, dataset: Callable[..., str]
) -> None:
    dataset_id = dataset()
    _add(session)
    _add(session)
    deletions.set_retention(session, "m", 1)
    with writing(session):
        id = job_queue.enqueue(session, "evaluate", dataset_id, {"kind": "evaluate", "model": "m", "version": 1}).id
        session.execute(update(tables.Job).where(tables.Job.id == id).values(workspace="elsewhere"))
    assert deletions.apply_retention(session) == [("m", 1)]


def test_storage_tells_before_it_frees(session: Session) -> None:
    _add(session)
    _add(session)
    files().path("models/gone.1").mkdir(parents=True)
    files().path("models/gone.1/x").write_bytes(b"abc")
    deletions.delete_version(session, "m", 1)
    reported = sweep.report(session, files())
    assert [(each.path, each.size_bytes) for each in reported.orphans] == [("models/gone.1", 3)]
    assert [(each.model, each.version) for each in reported.restorable] == [("m", 1)]
    assert (reported.collected, reported.versions, reported.size_bytes) == (False, [], 3)
    _ages(session)
    reported = sweep.report(session, files())
    done = sweep.collect(session, files())
    assert (done.collected, done.versions, done.orphans) == (True, reported.versions, reported.orphans)
    assert (done.size_bytes, reported.restorable) == (13, [])
    assert sweep.report(session, files()).size_bytes == 0
    deletions.delete_version(session, "m", 2)
    assert sweep.collect(session, files(), deleted=True).size_bytes == 10
    with pytest.raises(NotFound):
        deletions.restore_version(session, "m", 2)


def test_the_last_versions_stay_and_what_an_alias_names(session: Session) -> None:
    for _ in range(5):
        _add(session)
    aliases.set_alias(session, "m", "production", 2)
    reported = deletions.set_retention(session, "m", 2, dry_run=True)
    assert (reported.goes, [each.version for each in reported.held]) == ([3, 1], [2])
    assert deletions.retention(session, "m").keep_last is None
    assert deletions.apply_retention(session) == []
    deletions.set_retention(session, "m", 2)
    assert deletions.retention(session, "m").goes == [3, 1]
    assert deletions.apply_retention(session) == [("m", 3), ("m", 1)]
    assert models.get(session, "m").versions == [5, 4, 2]
    assert deletions.apply_retention(session) == []
    assert deletions.set_retention(session, "m", None).goes == []


def test_tags_and_notes_change_as_they_were_seen(session: Session) -> None:
    _add(session)
    changed = models.change_version(session, "m", 1, VersionPatch(tags={"stage": "try", "who": "a"}, notes="n"), 1)
    assert (changed.tags, changed.notes, changed.revision) == ({"stage": "try", "who": "a"}, "n", 2)
    changed = models.change_version(session, "m", 1, VersionPatch(tags={"stage": None, "who": "b"}))
    assert (changed.tags, changed.notes, changed.revision) == ({"who": "b"}, "n", 3)
    assert models.version(session, "m", 1) == changed
    with pytest.raises(PreconditionFailed, match="revision 3"):
        models.change_version(session, "m", 1, VersionPatch(notes=""), 2)
    with pytest.raises(InvalidInput):
        models.change_version(session, "m", 1, VersionPatch(tags={f"t{i}": "x" for i in range(100)}))
    assert models.version(session, "m", 1) == changed
