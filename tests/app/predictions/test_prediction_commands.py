"""``predict-dataset`` and its client method, against canned answers."""

import errno
import json
from pathlib import Path

import pytest
from canned import DATASET, Canned, problem, status_of

from app.client import Client
from app.predictions.commands import _way, sure_sentences
from app.predictions.schemas import PathStep, SureRows

JOB = {
    "id": "p1",
    "kind": "predict",
    "state": "queued",
    "dataset": "d1",
    "request": {},
    "attempt": 1,
    "worker": None,
    "progress": None,
    "result": None,
    "error": None,
    "created_at": "2026-01-01T00:00:00Z",
    "started_at": None,
    "finished_at": None,
}
RESULT = {"model": "topics", "version": 3, "predictions": "p1", "n_rows": 2, "warning": "1 of 2 rows are known"}
DONE = JOB | {"state": "succeeded", "result": RESULT}
FILE = b"row,label\n0,a\n1,b\n"


@pytest.fixture
def job(canned: Canned) -> Canned:
    canned.answer("POST /jobs", JOB)
    canned.answer("GET /jobs/p1", DONE)
    canned.answer("GET /jobs/p1/events", f"event: state\ndata: {json.dumps(DONE)}\n\n".encode())
    canned.answer("GET /jobs/p1/predictions", FILE)
    return canned


def test_a_folder_that_is_not_there_is_told_before_a_job_is_made(
    job: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nowhere" / "answers.csv"
    assert status_of(monkeypatch, "predict-dataset", "topics", "papers", str(file)) == 2
    assert "folder not found" in capsys.readouterr().err
    assert job.asked == []


@pytest.mark.parametrize("command", ["code", "predict-dataset"])
def test_a_file_of_rows_is_not_overwritten_by_its_answers(
    command: str, job: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("text\nan apple\n")
    link = tmp_path / "link.csv"
    link.symlink_to(file)
    for output in (file, link):
        given = [str(file), str(output)] if command == "predict-dataset" else [str(file), "--output", str(output)]
        assert status_of(monkeypatch, command, "topics", *given) == 2
        assert "is the file of rows" in " ".join(capsys.readouterr().err.split())
    assert file.read_text() == "text\nan apple\n"
    assert job.asked == []


def test_a_dataset_is_predicted_into_a_file(
    job: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.csv"
    assert (
        status_of(
            monkeypatch, "predict-dataset", "topics", "papers", "--output", str(file), "--top-k", "3", "--version", "3"
        )
        == 0
    )
    assert file.read_bytes() == FILE
    out = capsys.readouterr().out
    assert "2 rows" in out
    assert "Warning: 1 of 2 rows are known" in out
    asked = json.loads(job.asked[0].body)
    assert {name: asked[name] for name in ("kind", "format", "top_k", "version")} == {
        "kind": "predict", "format": "csv", "top_k": 3, "version": 3
    }  # fmt: skip
    assert status_of(monkeypatch, "predict-dataset", "topics", "papers", str(file), "--json") == 0
    assert json.loads(capsys.readouterr().out)["result"]["predictions"] == "p1"


def test_a_file_is_uploaded_predicted_and_removed_again(
    job: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows, file = tmp_path / "rows.csv", tmp_path / "answers.csv"
    rows.write_text("text\na\nb\n")
    ready = DATASET | {"id": "d9", "state": "ready"}
    job.answer("POST /datasets", ready, 202)
    job.answer("GET /datasets/d9", ready)
    job.answer("DELETE /datasets/d9", b"", 204)
    options = ("--min-precision", "0.9", "--no-inputs", "--include", "x", "--include", "y", "--id-column", "text")
    assert status_of(monkeypatch, "predict-dataset", "topics", str(rows), str(file), *options) == 0
    assert file.read_bytes() == FILE
    calls = [(each.method, each.path) for each in job.asked]
    assert (calls[0], calls[-1]) == (("POST", "/datasets"), ("DELETE", "/datasets/d9"))
    (asked,) = [json.loads(each.body) for each in job.asked if (each.method, each.path) == ("POST", "/jobs")]
    assert asked["dataset"] == "d9"
    assert (asked["min_precision"], asked["inputs"], asked["include"]) == (0.9, False, ["x", "y"])
    assert status_of(monkeypatch, "predict-dataset", "topics", "papers", str(file), "--id-column", "text") != 0


def test_a_file_of_another_format_is_not_begun(job: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert status_of(monkeypatch, "predict-dataset", "topics", "papers", str(tmp_path / "answers.ods")) != 0
    assert not job.asked


def test_the_client_saves_what_the_job_has_made(job: Canned, tmp_path: Path) -> None:
    with Client() as client:
        done = client.predict_dataset("topics", "papers", format="csv").wait()
        assert done.save_predictions(tmp_path / "answers.csv") == len(FILE)
    assert (tmp_path / "answers.csv").read_bytes() == FILE


def test_who_gives_a_text_to_a_model_of_records_is_told_of_instances(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = {
        "detail": 'this model takes records: an instance needs {"record": {column: value}}',
        "pointer": "/instances/0",
    }
    canned.answer("POST /models/topics/predict", problem(422, "invalid_input", errors=[fault]), 422)
    assert status_of(monkeypatch, "predict", "topics", "--text", "a green leek") != 0
    assert "pass instances with --instance or --file" in capsys.readouterr().err


def test_instances_are_given_as_json(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prediction = {"label": "a", "score": 1.5, "top": [{"label": "a", "score": 1.5}]}
    answer = {"model": "topics", "version": 3, "version_sha256": "0" * 64, "gap": 0.05}
    canned.answer("POST /models/topics/predict", answer | {"predictions": [prediction, prediction]})
    records = [{"record": {"price": 3.5, "colour": "red"}}, {"record": {}}]
    options = [word for record in records for word in ("--instance", json.dumps(record))]
    assert status_of(monkeypatch, "predict", "topics", *options) == 0
    assert json.loads(canned.asked[-1].body)["instances"] == records
    for wrong, words in (
        (["--instance", "{price: 3}"], "invalid JSON"),
        (["--instance", "{}", "--text", "red"], "--text / --instance / --file"),
        ([], "--text / --instance / --file"),
    ):
        assert status_of(monkeypatch, "predict", "topics", *wrong) != 0
        assert words in capsys.readouterr().err


def test_names_in_one_language_are_shown_and_what_is_not_sure_has_a_dash(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"label": "a", "name": "leek", "score": -0.2, "probability": 0.8}
    answer = {"model": "topics", "version": 3, "version_sha256": "0" * 64, "gap": 0.05, "sure_from": {"threshold": 0.9}}
    canned.answer("POST /models/topics/predict", answer | {"predictions": [one | {"top": [one]}]})
    asked = ["predict", "topics", "--text", "a", "--language", "en", "--threshold", "0.9"]
    assert status_of(monkeypatch, *asked) == 0
    head, row = capsys.readouterr().out.splitlines()[:2]
    assert head.split() == ["instance", "label", "name", "score", "probability", "sure"]
    assert row.split() == ["0", "a", "leek", "-0.2000", "0.8000", "-"]


def test_a_file_of_another_format_is_pointed_to_predict_dataset(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "rows.svm"
    file.write_text("1 1:0.5\n")
    assert status_of(monkeypatch, "predict", "topics", "--file", str(file)) != 0
    said = capsys.readouterr().err
    assert "Row 1" in said
    assert "and use predict-dataset" in said


def test_a_blank_text_is_said_to_have_no_features(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"label": "a", "score": -1e-9, "top": [{"label": "a", "score": -1e-9}]}
    answer = {"model": "topics", "version": 3, "version_sha256": "0" * 64, "gap": None, "predictions": [one, one]}
    canned.answer("POST /models/topics/predict", answer)
    assert status_of(monkeypatch, "predict", "topics", "--text", "a leek", "--text", " ") == 0
    said = capsys.readouterr().out
    assert "Instance 1 is a blank text without features" in said
    assert "Instance 0" not in said
    assert "-0.0000" not in said


def test_a_file_is_coded_in_one_command_that_says_what_is_sure(
    job: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sure = {"threshold": 0.7, "precision": 0.96, "lower_bound": 0.951, "answered": 0.6, "asked": 0.95}
    sure |= {"n_rows": 2, "n_sure": 1, "n_broader": 1, "levels": [1, 1], "sure_level": "leaves"}
    done = DONE | {"result": DONE["result"] | {"sure": sure}}  # type: ignore[operator]
    job.answers["GET /jobs/p1"].clear()
    job.answers["GET /jobs/p1/events"].clear()
    job.answer("GET /jobs/p1", done)
    job.answer("GET /jobs/p1/events", f"event: state\ndata: {json.dumps(done)}\n\n".encode())
    rows, file = tmp_path / "rows.xlsx", tmp_path / "out.xlsx"
    rows.write_bytes(b"PK")
    ready = DATASET | {"id": "d9", "state": "ready"}
    job.answer("POST /datasets", ready, 202)
    job.answer("GET /datasets/d9", ready)
    job.answer("DELETE /datasets/d9", b"", 204)
    options = ["--output", str(file), "--min-precision", "0.95", "--missing-values", "NA,k. A.", "--decimal", "comma"]
    assert status_of(monkeypatch, "code", "topics", str(rows), *options, "--delimiter", "semicolon") == 0
    assert file.read_bytes() == FILE
    sent = next(each for each in job.asked if (each.method, each.path) == ("POST", "/datasets"))
    assert (sent.query["for_model"], sent.query["format"]) == ("topics", "xlsx")
    assert (sent.query["decimal"], sent.query["delimiter"]) == ("comma", "semicolon")
    assert sent.lists["missing_values"] == ["NA", "k. A."]
    answers = tmp_path / "answers.parquet"
    options = ["--encoding", "cp1252", "--no-quotes"]
    assert status_of(monkeypatch, "predict-dataset", "topics", str(rows), str(answers), *options) == 0
    last = [each for each in job.asked if (each.method, each.path) == ("POST", "/datasets")][-1]
    assert (last.query["encoding"], last.query["quotes"]) == ("cp1252", "false")
    asked = next(json.loads(each.body) for each in job.asked if (each.method, each.path) == ("POST", "/jobs"))
    assert (asked["format"], asked["top_k"], asked["min_precision"]) == ("xlsx", 3, 0.95)
    said = capsys.readouterr().out
    assert "1 of 2 rows (50.0%) have a sure label" in said
    assert "1 more rows have a broader sure node only; by the deepest sure node: 1 at level 1, 1 at level 2" in said
    assert "60.0% of the held-out rows had a sure label; of these, 96.0% were right (at least 95.1%, with a" in said


def test_a_file_that_cannot_be_read_is_named_as_the_person_named_it(
    job: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rows := tmp_path / "rows.csv").write_text("x\n")
    job.answer("POST /datasets", DATASET | {"id": "d9", "state": "importing"}, 202)
    fault = problem(422, "invalid_input", "The file is not valid", [{"detail": "row 2: a formula", "pointer": None}])
    job.answer("GET /datasets/d9", DATASET | {"id": "d9", "state": "failed", "error": fault})
    job.answer("DELETE /datasets/d9", b"", 204)
    assert status_of(monkeypatch, "code", "topics", str(rows), "--output", str(tmp_path / "out.csv")) != 0
    shown = capsys.readouterr()
    said = "".join((shown.out + shown.err).split())
    assert "".join(f"{rows} cannot be read: The file is not valid".split()) in said
    assert "topics-rows-" not in said
    assert ("DELETE", "/datasets/d9") in [(each.method, each.path) for each in job.asked]


def test_with_a_level_only_its_nodes_are_called_sure() -> None:
    promised = {"threshold": 0.3, "precision": 0.88, "lower_bound": 0.81, "answered": 0.9, "asked": 0.8}
    counts = {"n_answered": 8, "n_sure": 1, "n_broader": 7, "n_at_level": 8}
    sure = SureRows(**promised, sure_level=2, counted="nodes", n_rows=10, levels=[0, 8, 0], **counts)
    said = [*sure_sentences(sure)]
    assert said[0] == (
        "8 of 10 rows (80.0%) have a sure node at level 2: in 1 it is the label, in 7 a broader node (sure_ancestor)"
    )
    assert said[1].startswith("90.0% of the held-out rows had a sure node at level 2; of these, 88.0% were right")
    assert len(said) == 2


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (["Home", "Home > Kitchen", "Home > Kitchen > Pans"], "Home - > Kitchen - > Pans -"),
        (["a", "a/b", "a/b/c"], "a - > b - > c -"),
        (["01", "011", "0110"], "01 - > 011 - > 0110 -"),
        (["1", "1.1", "Home > Pans"], "1 - > 1.1 - > Home > Pans -"),
    ],
)
def test_labels_that_are_paths_do_not_repeat_the_labels_above(labels: list[str], shown: str) -> None:
    assert _way([PathStep(label=label, margin=None) for label in labels]) == shown


def test_a_coded_file_becomes_a_review_queue_before_its_rows_are_deleted(
    job: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, file = tmp_path / "rows.csv", tmp_path / "out.csv"
    rows.write_bytes(b"text\nx\n")
    ready = DATASET | {"id": "d9", "state": "ready"}
    job.answer("POST /datasets", ready, 202)
    job.answer("GET /datasets/d9", ready)
    job.answer("DELETE /datasets/d9", b"", 204)
    queue = {"id": "r", "name": "august", "owner": "ann", "job": "p1", "model": "m", "version": 1, "dataset": "d9"}
    queue |= {"dataset_version": 1, "sure_share": 0.1, "seed": 0, "opinions": 1, "created_at": "2026-01-02T03:04:05Z"}
    queue |= {"n_rows": 7, "states": {"open": 7}, "people": [], "agreement": None}
    job.answer("POST /reviews", queue | {"promised_precision": 0.95, "measured_precision": None}, 201)
    options = ["--output", str(file), "--threshold", "0.9", "--sure-level", "2", "--review", "august"]
    assert status_of(monkeypatch, "code", "topics", str(rows), *options, "--sure-share", "0.1") == 0
    jobs = [json.loads(each.body) for each in job.asked if (each.method, each.path) == ("POST", "/jobs")]
    assert [(each["threshold"], each["sure_level"]) for each in jobs] == [(0.9, 2)] * 2
    formats = [json.loads(each.body)["format"] for each in job.asked if (each.method, each.path) == ("POST", "/jobs")]
    assert formats == ["csv", "parquet"]
    asked = [(each.method, each.path) for each in job.asked]
    assert asked.index(("POST", "/reviews")) < asked.index(("DELETE", "/datasets/d9"))
    sent = next(each for each in job.asked if (each.method, each.path) == ("POST", "/reviews"))
    assert json.loads(sent.body) == {"name": "august", "job": "p1", "sure_share": 0.1, "seed": 0, "opinions": 1}
    assert "Review august: 7 rows to decide" in capsys.readouterr().out


def test_a_full_disk_is_named_with_the_file_that_it_has_no_room_for(
    job: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", no_room)
    file = tmp_path / "answers.csv"
    assert status_of(monkeypatch, "predict-dataset", "topics", "papers", str(file)) == 1
    error = capsys.readouterr().err.replace("\n", "")
    assert f"{file}: No space left on device; " in error
    assert f"bytes are free in {tmp_path}" in error
    assert not list(tmp_path.iterdir())
