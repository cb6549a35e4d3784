"""Prediction jobs, from the request to the file."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from interrupting import Crash, expire
from sqlalchemy.orm import Session, sessionmaker

from app.datasets import service as datasets
from app.errors import Conflict, InvalidInput, NotFound
from app.hierarchies.version_labels import VersionLabels
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.operation import sweep as sweeping
from app.predictions import batch_predictions
from app.predictions.model_cache import ModelCache
from app.predictions.schemas import BatchPredictRequest
from app.predictions.service import predict
from app.store import tables
from app.store.corpus import open_corpus
from app.store.files import files
from app.store.scope import DEFAULT
from solvers.metrics.ranking import Ranking
from workers.job_kinds import predicting
from workers.job_kinds.answer_files import Answers
from workers.tasks import run

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def trained(session: Session, **changes: Any) -> None:
    job = jobs.submit(
        session, TrainRequest(**({"dataset": "digits", "model": "m", "solver": "weston_watkins"} | changes))
    )
    run(job.id)
    assert jobs.get(session, job.id).state == "succeeded", jobs.get(session, job.id).error


def submitted(session: Session, **changes: Any) -> str:
    return jobs.submit(session, BatchPredictRequest.model_validate({"dataset": "digits", "model": "m"} | changes)).id


def predicted(session: Session, **changes: Any) -> Path:
    id = submitted(session, **changes)
    run(id)
    job = jobs.get(session, id)
    assert (job.state, job.error) == ("succeeded", None)
    assert job.result is not None
    assert (job.result.predictions, job.result.version) == (id, 1)
    return batch_predictions.of_job(session, id).path


def asked(database: sessionmaker[Session], dataset_path: str, top_k: int) -> list[dict[str, Any]]:
    """What the API answers to each row."""
    loaded = ModelCache(database, 1 << 30).get((DEFAULT, "m", None, None))
    X = open_corpus(files(), dataset_path).X
    assert X is not None
    rows = [{"indices": X[i].indices.tolist(), "values": X[i].data.tolist()} for i in range(X.shape[0])]
    found: list[dict[str, Any]] = predict(loaded, {"instances": rows, "top_k": top_k}, 1000)["predictions"]
    return found


@pytest.mark.parametrize("solver", ["weston_watkins", "orthogonal_transfer"])
def test_every_row_has_the_answer_that_the_api_gives(
    solver: str, session: Session, database: sessionmaker[Session], dataset: Callable[..., str],
    hierarchy: Callable[..., str],
) -> None:  # fmt: skip
    id = dataset()
    hierarchy()
    trained(session, solver=solver, hierarchy="tree")
    row = session.get(tables.Dataset, id)
    assert row is not None
    table = pq.read_table(predicted(session, top_k=3)).to_pylist()
    answered = asked(database, str(row.path), 3)
    assert [line["row"] for line in table] == list(range(60))
    for line, answer in zip(table, answered, strict=True):
        for place, entry in enumerate(answer["top"], 1):
            suffix = "" if place == 1 else f"_{place}"
            assert line[f"label{suffix}"] == entry["label"]
            assert line[f"score{suffix}"] == pytest.approx(entry["score"], abs=1e-5)


@on_sqlite
def test_every_format_has_the_same_rows(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    trained(session)
    parquet = pq.read_table(predicted(session)).to_pylist()
    csv = pacsv.read_csv(io.BytesIO(predicted(session, format="csv").read_bytes())).to_pylist()
    lines = [json.loads(line) for line in predicted(session, format="jsonl").read_text().splitlines()]
    assert parquet == lines
    assert [(line["row"], line["label"]) for line in csv] == [(line["row"], line["label"]) for line in parquet]


@on_sqlite
def test_files_tell_how_many_terms_of_each_text_are_known(
    session: Session, database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    known = [("red apple", "a"), ("blue sea", "b"), ("red sea", "b"), ("apple", "a")] * 4
    dataset("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in known), format="jsonl")
    trained(session)
    asked = ["red red apple", "qwertz", "", "the sea"]
    rows = "".join(json.dumps({"text": text, "label": "a"}) + "\n" for text in asked)
    dataset(rows, "asked", format="jsonl")
    lines = pq.read_table(predicted(session, dataset="asked")).to_pylist()
    assert [line["known_terms"] for line in lines] == [2, 0, 0, 1]
    loaded = ModelCache(database, 1 << 30).get((DEFAULT, "m", None, None))
    answered = predict(loaded, {"instances": [{"text": text} for text in asked]}, 1000)["predictions"]
    assert [one["known_terms"] for one in answered] == [2, 0, 0, 1]


@on_sqlite
def test_models_that_name_sets_give_lists(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset()
    hierarchy()
    trained(session, solver="node_svm", hierarchy="tree")
    table = pq.read_table(predicted(session)).to_pylist()
    assert all(isinstance(line["labels"], list) for line in table)
    assert any("class0" in line["labels"] and "even" not in line["labels"] for line in table)
    assert all(path[-1] == label for line in table for path, label in zip(line["paths"], line["labels"], strict=True))
    csv = pacsv.read_csv(io.BytesIO(predicted(session, format="csv").read_bytes())).to_pylist()
    assert [json.loads(line["paths"]) for line in csv] == [line["paths"] for line in table]
    assert [line["labels"] for line in csv] == [";".join(line["labels"]) for line in table]
    listed = pq.read_table(predicted(session, top_k=4)).to_pylist()
    assert all(len(line["labels"]) + len(line["alternatives"]) <= max(4, len(line["labels"])) for line in listed)
    assert any(line["alternatives"] for line in listed)
    assert not any(set(line["labels"]) & set(line["alternatives"]) for line in listed)


@on_sqlite
def test_a_job_whose_worker_died_goes_on_after_the_pieces_that_are_there(
    session: Session, dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    trained(session)
    monkeypatch.setattr(predicting, "PART_ROWS", 8)
    whole = pq.read_table(predicted(session))
    write, written = predicting.write_part, []

    def dies(path: Path, table: Any) -> None:
        if len(written) == 3:
            raise Crash
        written.append(path.name)
        write(path, table)

    monkeypatch.setattr(predicting, "write_part", dies)
    id = submitted(session)
    with pytest.raises(Crash):
        run(id)
    expire(session, id)

    def again(path: Path, table: Any) -> None:
        written.append(path.name)
        write(path, table)

    monkeypatch.setattr(predicting, "write_part", again)
    run(id)
    assert jobs.get(session, id).attempt == 2
    assert len(written) == len(set(written)) == 8
    assert pq.read_table(batch_predictions.of_job(session, id).path).equals(whole)
    assert not files().path(f"jobs/{id}").exists()


@on_sqlite
def test_the_training_part_may_be_all_rows(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    dataset("label,x,split\na,1,train\nb,2,train\n", "split", "csv")
    trained(session, dataset="split")
    assert pq.read_table(predicted(session, dataset="split", part="train")).num_rows == 2


@on_sqlite
def test_what_cannot_be_predicted_is_refused(session: Session, dataset: Callable[..., str]) -> None:
    id = dataset()
    with pytest.raises(NotFound):
        submitted(session)
    trained(session)
    with pytest.raises(NotFound):
        submitted(session, dataset="none")
    with pytest.raises(NotFound):
        submitted(session, version=9)
    for part in ("test", "validation"):
        with pytest.raises(InvalidInput):
            submitted(session, part=part)
    queued = submitted(session)
    with pytest.raises(Conflict):
        batch_predictions.of_job(session, queued)
    with pytest.raises(NotFound, match="makes no predictions"):
        batch_predictions.of_job(session, jobs.page(session).items[-1].id)
    run(queued)
    dataset('{"text": "a b", "label": "x"}\n', name="texts", format="jsonl")
    with pytest.raises(InvalidInput) as refused:
        submitted(session, dataset="texts")
    assert "the model reads numbers" in refused.value.errors[0].detail
    datasets.delete(session, id, force=True)
    wrong = submitted(session, dataset="texts")
    run(wrong)
    error = jobs.get(session, wrong).error
    assert error is not None
    assert "the model reads numbers" in error.detail


@on_sqlite
def test_files_are_kept_for_a_time(
    session: Session, dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    dataset()
    trained(session)
    path = predicted(session)
    sweeping.tidy(session, files())
    assert path.is_file()
    configure(keep_predictions_seconds=0)
    sweeping.tidy(session, files())
    assert not path.is_file()


def test_the_prediction_comes_first_even_where_the_order_differs_in_the_last_bits() -> None:
    model = SimpleNamespace(classes=("a", "b", "c"), back_off=None, names_sets=False)
    version = SimpleNamespace(model="m", version=1)
    loaded: Any = SimpleNamespace(model=model, tree=None, labels=VersionLabels(), version=version)
    request = BatchPredictRequest(model="m", dataset="d", top_k=3)
    values = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, -np.inf]])
    table = Answers(loaded, request).table(np.arange(2), Ranking(values, predicted=np.array([1, 1]))).to_pylist()
    assert [table[0][name] for name in ("label", "label_2", "label_3")] == ["b", "a", "c"]
    assert [table[1][name] for name in ("label", "label_2", "label_3")] == ["b", "a", None]
    request = request.model_copy(update={"top_k": 9})
    table = Answers(loaded, request).table(np.arange(2), Ranking(values, tells_probabilities=True)).to_pylist()
    assert table[1]["probability_3"] is None
    assert {"label_3", "name_3", "probability_3"} < table[0].keys()
    assert "label_4" not in table[0]
