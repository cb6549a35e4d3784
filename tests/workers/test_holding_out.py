"""Rows that were held out stay held out, whatever comes later."""

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.datasets import appending, versions
from app.datasets import service as datasets
from app.datasets.corrections import correct_labels
from app.datasets.schemas import CorrectionsRequest, LabelCorrection, NewRows
from app.hierarchies.version_labels import VersionLabels
from app.jobs import service as jobs
from app.jobs.schemas import Job, TrainRequest
from app.store.corpus import Corpus, open_corpus
from app.store.files import files
from solvers.selection.splits import stratified
from workers.phases.holding_out import Arrival, arrivals, held_out
from workers.running.job_context import LeaseHeartbeat
from workers.tasks import run

REQUEST = TrainRequest(dataset="d", model="m", seed=3)


def corpus(names: list[list[str]], sets: bool) -> Corpus:
    labels = sorted({name for row in names for name in row})
    y = np.array([labels.index(name) for row in names for name in row], np.int32)
    indptr = np.cumsum([0, *map(len, names)]).astype(np.int64) if sets else None
    return Corpus("text", labels, y, None, (), None, None, label_indptr=indptr)


def rows(n: int, sets: bool, seed: int = 0, more: str = "") -> list[list[str]]:
    rng = np.random.default_rng(seed)
    names = ["b", "d", "f", *more]
    return [sorted({str(rng.choice(names)) for _ in range(2 if sets else 1)}) for _ in range(n)]


def dealt(*parts: list[list[str]], sets: bool, relabelled: bool = False) -> np.ndarray:
    every, ends = [row for part in parts for row in part], np.cumsum([0, *map(len, parts)])
    whole = corpus(every, sets)
    given = [Arrival(whole, begin, end) for begin, end in pairwise(ends)]
    if relabelled:  # rows as they came, and others' labels as they are now
        given[0] = Arrival(corpus(parts[0], sets), 0, len(parts[0]))
    return held_out(given, REQUEST, None, VersionLabels())


@pytest.mark.parametrize("sets", [False, True])
def test_appended_rows_with_labels_that_sort_between_others_move_none(sets: bool) -> None:
    first, second = rows(200, sets), rows(100, sets, 1, more="ace")
    before, after = dealt(first, sets=sets), dealt(first, second, sets=sets)
    np.testing.assert_array_equal(after[:200], before)
    assert 0.15 < after[200:].mean() < 0.25
    np.testing.assert_array_equal(dealt(first, second, sets=sets, relabelled=True), after)


@pytest.mark.parametrize("sets", [False, True])
def test_of_many_small_appends_a_fifth_is_held_out_as_of_one_large_one(sets: bool) -> None:
    parts = [rows(3, sets, seed) for seed in range(100)]
    assert 0.15 < dealt(rows(40, sets, 7), *parts, sets=sets)[40:].mean() < 0.25


def test_the_first_rows_are_held_out_as_any_rows_are() -> None:
    names = rows(200, sets=False)
    of = corpus(names, sets=False)
    np.testing.assert_array_equal(dealt(names, sets=False).astype(bool), stratified(of.y, 0.2, 3))


@pytest.mark.parametrize("sets", [False, True])
def test_the_first_row_of_a_label_trains(sets: bool) -> None:
    out = dealt(rows(40, sets), [["new"], ["other"]], [["new"]] * 40, sets=sets)
    assert not out[40:42].any()
    assert out[42:].any()


def _next_version(database: sessionmaker[Session], change: Callable[[Session], Job]) -> None:
    with database() as session:
        job = change(session)
    run(job.id)
    with database() as session:
        assert jobs.get(session, job.id).state == "succeeded"


def _deleted(*numbers: int) -> Callable[[Session], Job]:
    given = CorrectionsRequest(corrections=[LabelCorrection(row=row, delete=True) for row in numbers])
    return lambda session: correct_labels(session, "digits", given)


def _appended(first: int) -> Callable[[Session], Job]:
    def append(session: Session) -> Job:
        upload = files().upload()
        upload.write("".join(f"class{i % 4} 1:{first + i}\n" for i in range(20)).encode())
        return appending.append(session, "digits", NewRows(format="svmlight"), upload)

    return append


def test_rows_stay_in_their_part_when_others_are_deleted(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset("".join(f"class{i % 3} 1:{i + 1}\n" for i in range(60)))
    _next_version(database, _appended(101))

    def read(number: int) -> dict[float, int]:
        """The part of each row by its only number."""
        with database() as session:
            heartbeat = cast(LeaseHeartbeat, SimpleNamespace(read=lambda ask: ask(session)))
            id = datasets.get(session, "digits").id
            version = versions.find(session, id, number)
            assert version is not None
            corpus = open_corpus(files(), version.path)
            given = arrivals(heartbeat, files(), id, number, corpus, VersionLabels())
        assert corpus.X is not None
        split = corpus.present(held_out(given, REQUEST, None, VersionLabels()))
        return dict(zip(corpus.X.data.tolist(), split.tolist(), strict=True))

    before = read(2)
    gone = [1.0, 120.0, next(value for value, part in before.items() if part == 1)]
    numbers = {value: row for row, value in enumerate(before)}
    _next_version(database, _deleted(*(numbers[value] for value in gone)))
    _next_version(database, _appended(201))
    after = read(4)
    assert len(after) == 60 + 20 - 3 + 20
    assert {value: part for value, part in after.items() if value < 201} == {
        value: part for value, part in before.items() if value not in gone
    }
    assert 0 < sum(part for value, part in after.items() if value > 200) < 10
