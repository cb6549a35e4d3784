"""Training does not depend on the units of columns, and what floats cannot compute with is refused."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.errors import InvalidInput
from app.jobs import plans
from app.jobs import service as jobs
from app.jobs.request_schemas import Candidate, TuneRequest
from app.jobs.schemas import Job, TrainRequest
from app.models import aliases
from app.models import service as models
from app.store import tables
from workers.tasks import run

# what is computed, by statements that other tests of this file make on every database
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def table(nanosecond: float = 1.0) -> str:
    """Two columns, a time and a size, of which the classes need both."""
    rng = np.random.default_rng(0)
    rows = ["label,time,size"]
    for at in range(60):
        time = (1.7e18 + 1e16 * (at % 3) + 1e15 * rng.standard_normal()) * nanosecond
        rows.append(f"{'abc'[at % 3]},{time!r},{rng.uniform(0.5, 2.5):.4f}")
    return "\n".join(rows) + "\n"


def sparse(unit: str) -> str:
    return "".join(
        f"{label} {at}:{value}e{unit}\n" for label, at, value in 4 * [("a", 1, 3.7), ("b", 2, 3.5), ("c", 3, 2)]
    )


def dense(unit: str) -> str:
    """Three columns of numbers, of which the classes need all."""
    rng = np.random.default_rng(0)
    centres = 2 * np.random.default_rng(5).standard_normal((3, 3))
    rows = ["label,u,v,w"]
    for at in range(48):
        numbers = ",".join(f"{number:.4f}e{unit}" for number in centres[at % 3] + rng.standard_normal(3))
        rows.append(f"{'abc'[at % 3]},{numbers}")
    return "\n".join(rows) + "\n"


def moments(apart: float, codes: tuple[str, str, str]) -> str:
    """Times in nanoseconds, by class some multiples of `apart` later, beside an ordinary column and one of codes."""
    rng = np.random.default_rng(0)
    rows = ["label,time,size,code"]
    for at in range(60):
        time = 1_700_000_000_000_000_000 + int(apart * (3 * (at % 3) + rng.standard_normal()))
        rows.append(f"{'abc'[at % 3]},{time},{rng.uniform(0.5, 2.5):.4f},{codes[at % 3 if at % 2 else 1]}")
    return "\n".join(rows) + "\n"


def trained(database: sessionmaker[Session], **changes: object) -> Job:
    with database() as session:
        job = jobs.submit(session, TrainRequest.model_validate({"dataset": "digits", "model": "m", **changes}))
        run(job.id)
        return jobs.get(session, job.id)


@on_sqlite
@pytest.mark.parametrize("solver", ["weston_watkins", "lee_lin_wahba"])
def test_a_column_of_nanoseconds_trains_as_one_of_years(
    database: sessionmaker[Session], dataset: Callable[..., str], solver: str
) -> None:
    errors = []
    for unit in (1.0, 1e-18):
        dataset(table(unit), format="csv", name=f"in-{unit}")
        job = trained(database, dataset=f"in-{unit}", solver=solver, model=f"m-{unit}")
        assert (job.state, job.error) == ("succeeded", None)
        with database() as session:
            errors.append(models.version(session, f"m-{unit}").metrics["test"]["error"])
    assert errors[0] <= errors[1]
    assert errors[0] < 0.4


def test_columns_apart_are_scaled_by_default_and_the_plan_the_job_and_the_dataset_say_so(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset(table(), format="csv")
    with database() as session:
        request = TrainRequest(dataset="digits", model="m", solver="weston_watkins")
        reason = plans.plan(session, request).scaling
        assert reason is not None
        assert all(part in reason for part in ("standard", "bias=1", "'time'", "'size'"))
        job = jobs.submit(session, request)
        assert job.request["columns"]["scaling"] == "standard"
        assert job.request["params"]["bias"] == 1.0
        row = session.query(tables.DatasetVersion).one()
        assert "numbers_scaled" in {warning["code"] for warning in row.statistics["warnings"]}
        own = request.model_copy(update={"columns": None, "params": {"bias": 0.0}})
        assert jobs.submit(session, own).request["params"]["bias"] == 0.0
        of_order = request.model_copy(update={"solver": "adaboost_mh"})
        assert jobs.submit(session, of_order).request["columns"] is None
        tuning = TuneRequest(
            dataset="digits", model="m", space=[Candidate(solver="weston_watkins", grid={"bias": [0, 1]})], folds=2
        )
        stored = jobs.submit(session, tuning).request
        assert stored["columns"]["scaling"] == "standard"
        assert stored["space"][0]["params"] == {}


@pytest.mark.parametrize("solver", ["crammer_singer", "weston_watkins"])
@pytest.mark.parametrize("unit", ["19", "22", "60", "307", "-100", "-300"])
def test_sparse_numbers_far_from_one_are_divided_by_one_power_of_two(
    database: sessionmaker[Session], dataset: Callable[..., str], solver: str, unit: str
) -> None:
    dataset(sparse(unit))
    job = trained(database, solver=solver, test_fraction=0)
    assert (job.state, job.error) == ("succeeded", None)
    assert job.request["columns"]["scaling"] == "power_of_two"
    with database() as session:
        version = models.version(session, "m")
    assert version.converged
    assert version.metrics["train"]["error"] == 0


@on_sqlite
@pytest.mark.parametrize("unit", ["19", "22", "60", "307", "-100"])
def test_auto_takes_its_values_of_c_from_the_scaled_numbers(
    database: sessionmaker[Session], dataset: Callable[..., str], unit: str
) -> None:
    dataset(sparse(unit))
    job = trained(database, solver="auto", test_fraction=0)
    assert (job.state, job.error) == ("succeeded", None)
    with database() as session:
        assert models.version(session, "m").metrics["train"]["error"] == 0


@on_sqlite
@pytest.mark.parametrize("solver", ["auto", "crammer_singer"])
def test_tables_of_any_unit_are_answered_as_well_as_at_unit_scale(
    database: sessionmaker[Session], dataset: Callable[..., str], solver: str
) -> None:
    errors = {}
    for unit in ("0", "19", "22", "60", "-100"):
        dataset(dense(unit), format="csv", name=f"in-{unit}")
        job = trained(database, dataset=f"in-{unit}", solver=solver, model=f"m{unit}", test_fraction=0)
        assert (job.state, job.error) == ("succeeded", None)
        with database() as session:
            errors[unit] = models.version(session, f"m{unit}").metrics["train"]["error"]
    assert max(errors.values()) <= errors["0"] + 0.01 < 0.2
    dataset(dense("307"), format="csv", name="in-307")
    with pytest.raises(InvalidInput) as refused:
        trained(database, dataset="in-307", solver=solver)
    assert "divide" in refused.value.errors[0].detail


@on_sqlite
@pytest.mark.parametrize("solver", ["auto", "crammer_singer"])
def test_nanoseconds_and_codes_beside_ordinary_columns_are_trained_on(
    database: sessionmaker[Session], dataset: Callable[..., str], solver: str
) -> None:
    kinds = {"category_columns": ["code"], "number_columns": ["time", "size"]}
    cases: list[tuple[float, tuple[str, str, str], dict[str, Any]]] = [
        (1e9, ("7", "11", "42"), kinds),
        (1e12, ("7000000000000000000", "11", "4.2e60"), kinds),
        (1e12, ("7000000000000000000", "11", "4.2e60"), {}),
        (1e15, ("7", "11", "42"), {}),
    ]
    for at, (apart, codes, options) in enumerate(cases):
        dataset(moments(apart, codes), format="csv", name=f"d{at}", **options)
        job = trained(database, dataset=f"d{at}", solver=solver, model=f"m{at}", test_fraction=0)
        assert (job.state, job.error) == ("succeeded", None)
        with database() as session:
            assert models.version(session, f"m{at}").metrics["train"]["error"] < 0.1


def test_columns_of_numbers_too_large_to_be_centred_are_refused_with_the_way_out(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset(table(1e289), format="csv")
    with database() as session, pytest.raises(InvalidInput) as refused:
        jobs.submit(session, TrainRequest(dataset="digits", model="m", solver="weston_watkins"))
    assert "divide" in refused.value.errors[0].detail


def test_a_training_that_ends_at_its_last_epoch_says_so_and_why(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    job = trained(database, solver="weston_watkins", params={"max_epochs": 1, "tol": 1e-9, "C": 100})
    assert job.result is not None
    assert "1 epoch," in str(job.result.unconverged)
    assert "Raise max_epochs" in str(job.result.unconverged)
    with database() as session:
        assert models.version(session, "m").unconverged == job.result.unconverged
        assert aliases.set_alias(session, "m", "production", 1).unconverged == job.result.unconverged
    job = trained(database, solver="weston_watkins")
    assert job.result is not None
    assert job.result.unconverged is None


def test_a_limit_that_is_not_certified_says_which_level_is_not_and_what_to_use(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    params = {"max_epochs": 1, "tol": 1e-9, "loss": "lee_lin_wahba"}
    job = trained(database, solver="hard_margin", params=params)
    assert job.result is not None
    reason = str(job.result.unconverged)
    assert "training ended after 1 epoch, with a relative gap of " in reason
    assert "Not certified: the least loss (only among weights of length " in reason
    assert reason.endswith("use loss=crammer_singer, a larger tol, or lee_lin_wahba with a C of your choice.")


@pytest.mark.parametrize("solver", ["weston_watkins", "node_svm"])
def test_a_training_that_learns_nothing_says_so(
    database: sessionmaker[Session], dataset: Callable[..., str], solver: str
) -> None:
    labels = [[label] if solver == "node_svm" else label for label in "abcdabcd"]
    same = "".join(json.dumps({"label": label, "indices": [0], "values": [1]}) + "\n" for label in labels)
    dataset(same, format="jsonl", name="same")
    job = trained(database, dataset="same", solver=solver, model="same", test_fraction=0)
    assert (job.state, job.error) == ("succeeded", None)
    assert job.result is not None
    assert "has learnt nothing" in str(job.result.warning)
    with database() as session:
        assert models.version(session, "same").warning == job.result.warning
    dataset()
    job = trained(database, solver="weston_watkins")
    assert job.result is not None
    assert job.result.warning is None


def test_rounds_of_a_method_without_a_certificate_are_a_setting(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    job = trained(database, solver="adaboost_mh", params={"max_epochs": 3})
    assert job.result is not None
    assert job.result.unconverged is None


def test_a_path_names_its_versions_that_have_not_converged(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    job = trained(database, solver="weston_watkins", params={"max_epochs": 2, "tol": 1e-6}, path=[1e-6, 100])
    assert job.result is not None
    assert "version 2:" in str(job.result.unconverged)
    assert "version 1:" not in str(job.result.unconverged)
