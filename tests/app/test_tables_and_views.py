"""Tables go to the service, answers come back as tables, and objects show themselves."""

import asyncio
import io
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from canned import DATASET, JOB, SUCCEEDED, Canned, problem
from pyarrow import parquet
from scipy.sparse import csr_matrix

from app.async_client import AsyncClient
from app.client import Client
from app.display.html import Card, curve, html
from app.jobs.client import Job
from app.predictions.client import Predictions
from app.remote import progress
from app.remote.errors import ClientError, UnauthenticatedError, UnexpectedAnswerError

ROWS = [{"text": "red apple", "label": "fruit"}, {"text": "blue sea", "label": "water"}]
TEXTS = {"model": "m", "version": 3, "instance": "text", "text_columns": ["text"], "max_instances": 2}
ANSWER: dict[str, Any] = {"model": "m", "version": 3, "version_sha256": "0", "gap": None, "predictions": []}


def _answered(*labels: str) -> dict[str, Any]:
    each = [{"label": label, "score": 1.0, "top": [{"label": label, "score": 1.0}]} for label in labels]
    return ANSWER | {"predictions": each}


def _frame(package: str, columns: dict[str, list[Any]], **options: Any) -> Any:
    module = pytest.importorskip(package)
    return module.table(columns) if package == "pyarrow" else module.DataFrame(columns, **options)


@pytest.mark.parametrize("package", ["pyarrow", "pandas", "polars"])
def test_a_table_is_sent_as_parquet_without_its_index(package: str, canned: Canned) -> None:
    canned.answer("POST /datasets", DATASET, 202)
    with Client() as client:
        client.upload(_frame(package, {"text": ["a", None], "y": [1, 2]}), "papers", label_column="y")
    (asked,) = canned.asked
    assert asked.query == {"name": "papers", "format": "parquet", "label_column": "y"}
    assert parquet.read_table(io.BytesIO(asked.body)).to_pydict() == {"text": ["a", None], "y": [1, 2]}


def test_rows_are_sent_as_json_lines(canned: Canned) -> None:
    canned.answer("POST /datasets", DATASET, 202)
    when = datetime(2025, 1, 2, tzinfo=UTC)
    with Client() as client:
        client.upload([*ROWS, {"text": float("nan"), "label": ["a"], "at": when}], "papers")
    lines = canned.asked[0].body.decode().splitlines()
    assert lines[0] == '{"text":"red apple","label":"fruit"}'
    assert lines[2] == '{"text":null,"label":["a"],"at":"2025-01-02T00:00:00+00:00"}'
    assert canned.asked[0].query["format"] == "jsonl"


@pytest.mark.parametrize(
    ("data", "options", "why"),
    [
        (
            pa.table({"text": ["a"], "lable": ["b"]}),
            {},
            "no column 'label'.*Its columns are text, lable. Is it 'lable'",
        ),
        (pa.table({"text": ["a"], "y": ["b"]}), {"label_column": "z"}, "no column 'z', which label_column names"),
        (pa.table({"text": [], "label": []}), {}, "no rows"),
        ([], {}, "no rows"),
        (7, {}, "int cannot be uploaded"),
        (["a text"], {}, "Item 0 is of type str"),
        (ROWS, {"name": None}, "give the dataset one"),
    ],
)
def test_what_cannot_be_uploaded_is_refused_before_anything_is_sent(
    data: Any, options: dict[str, Any], why: str, canned: Canned
) -> None:
    with Client() as client, pytest.raises(ClientError, match=why):
        client.upload(data, **{"name": "papers", **options})
    assert canned.asked == []


def test_intervals_of_pandas_are_sent_as_texts(canned: Canned) -> None:
    pandas = pytest.importorskip("pandas")
    canned.answer("POST /datasets", DATASET, 202)
    frame = pandas.DataFrame({"text": ["a", "b", "c"], "label": pandas.cut([1.0, 9.0, float("nan")], [0, 5, 10])})
    with Client() as client:
        client.upload(frame, "papers")
    sent = parquet.read_table(io.BytesIO(canned.asked[0].body)).to_pydict()
    assert sent == {"text": ["a", "b", "c"], "label": ["(0, 5]", "(5, 10]", None]}


def test_a_column_of_several_types_is_named(canned: Canned) -> None:
    pandas = pytest.importorskip("pandas")
    mixed = pandas.DataFrame({"text": ["a", "b"], "label": ["x", 1]}, dtype=object)
    with Client() as client, pytest.raises(ClientError, match=r"Column 'label' has values of several types.*astype"):
        client.upload(mixed, "papers")


@pytest.mark.parametrize("package", ["pyarrow", "pandas", "polars"])
def test_a_table_is_predicted_in_requests_that_one_version_answers(package: str, canned: Canned) -> None:
    canned.answer("GET /models/m/inputs", TEXTS)
    canned.answer("POST /models/m/predict", _answered("a", "b"))
    canned.answer("POST /models/m/predict", _answered("c"))
    with Client() as client:
        found = client.predict("m", _frame(package, {"text": ["x", "y", "z"], "other": [1, 2, 3]}))
    asked = [each for each in canned.asked if each.method == "POST"]
    assert [each.query for each in asked] == [{"version": "3"}] * 2
    assert b'{"text":"z"}' in asked[1].body
    assert b"other" not in asked[0].body
    assert [row["label"] for row in found.to_rows()] == ["a", "b", "c"]


def test_the_answer_has_the_index_of_what_was_predicted(canned: Canned) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    canned.answer("GET /models/m/inputs", TEXTS)
    canned.answer("POST /models/m/predict", _answered("a", "b"))
    frame = pandas.DataFrame({"text": ["x", "y"]}, index=[7, 3])
    with Client() as client:
        for given in (frame, frame["text"]):
            assert client.predict("m", given).to_pandas()["label"].to_dict() == {7: "a", 3: "b"}
        answer = client.predict("m", polars.Series(["x", "y"])).to_polars()
    assert answer["label"].to_list() == ["a", "b"]


@pytest.mark.parametrize(
    ("reads", "columns", "instance"),
    [
        ({"text_columns": ["a", "b"]}, {"b": ["2"], "a": ["1"]}, {"text": "1\n2"}),
        ({"text_columns": []}, {"any": ["x"]}, {"text": "x"}),
        (
            {"instance": "record", "text_columns": [], "number_columns": ["n"], "category_columns": ["c"]},
            {"c": [None], "n": [float("nan")], "label": ["y"]},
            {"record": {"n": None, "c": None}},
        ),
        ({"instance": "features", "number_columns": ["n"]}, {"n": [1.5], "label": ["y"]}, {"features": {"n": 1.5}}),
        ({"instance": "numbers", "n_numbers": 2}, {"0": [1.0], "1": [2.0]}, [1.0, 2.0]),
    ],
)
def test_rows_become_what_the_version_reads(
    reads: dict[str, Any], columns: dict[str, list[Any]], instance: Any, canned: Canned
) -> None:
    canned.answer("GET /models/m/inputs", TEXTS | reads)
    canned.answer("POST /models/m/predict", _answered("a"))
    with Client() as client:
        client.predict("m", pa.table(columns))
    assert orjson.loads(canned.asked[-1].body)["instances"] == [instance]


@pytest.mark.parametrize(
    ("instances", "why"),
    [
        (pa.table({"title": ["x"], "n": [1]}), "m@3 reads the column 'text', which the table does not have"),
        (pa.table({"text": ["x", None]}), r"1 rows have no text \(None or NaN; rows 1, counted from 0\).*dropna"),
        (pa.table({"text": pa.array([], pa.string())}), "no rows to predict"),
        ([], "no rows to predict"),
        (["a", float("nan")], "1 rows have no text"),
    ],
)
def test_what_cannot_be_predicted_is_refused_with_the_way_out(instances: Any, why: str, canned: Canned) -> None:
    canned.answer("GET /models/m/inputs", TEXTS)
    with Client() as client, pytest.raises(ClientError, match=why):
        client.predict("m", instances)
    assert not [each for each in canned.asked if each.method == "POST"]


@pytest.mark.parametrize("package", ["pyarrow", "pandas", "polars"])
@pytest.mark.parametrize(
    "reads",
    [
        {"instance": "features", "number_columns": ["p", "q"]},
        {"instance": "features", "number_columns": []},
        {"instance": "numbers", "n_numbers": 2},
    ],
)
def test_a_missing_number_is_no_zero(package: str, reads: dict[str, Any], canned: Canned) -> None:
    canned.answer("GET /models/m/inputs", TEXTS | reads)
    frame = _frame(package, {"p": [1.0, 2.0], "q": [0.5, None]})
    with Client() as client, pytest.raises(ClientError, match=r"1 cell has no number.*row 1 column 'q'"):
        client.predict("m", frame)
    assert not [each for each in canned.asked if each.method == "POST"]


@pytest.mark.parametrize("package", ["pyarrow", "pandas", "polars"])
def test_named_columns_are_not_read_by_their_order(package: str, canned: Canned) -> None:
    canned.answer("GET /models/m/inputs", TEXTS | {"instance": "numbers", "n_numbers": 2})
    for names in ("qp", "10"):
        frame = _frame(package, {name: [1.0, 2.0] for name in names})
        with (
            Client() as client,
            pytest.raises(ClientError, match=r"reads 2 numbers by their order.*frame.to_numpy\(\)"),
        ):
            client.predict("m", frame)
    assert not [each for each in canned.asked if each.method == "POST"]


@pytest.mark.parametrize("reads", [{"instance": "numbers"}, {"instance": "features", "number_columns": list("abc")}])
def test_a_sparse_matrix_of_too_few_columns_is_refused(reads: dict[str, Any], canned: Canned) -> None:
    canned.answer("GET /models/m/inputs", TEXTS | {"n_numbers": 3} | reads)
    with Client() as client:
        with pytest.raises(ClientError, match=r"The matrix has 2 columns, but m@3 reads 3.*n_features=3"):
            client.predict("m", csr_matrix((4, 2)))
        with pytest.raises(ClientError, match="no rows to predict"):
            client.predict("m", csr_matrix((0, 3)))
    assert not [each for each in canned.asked if each.method == "POST"]


def test_matrices_of_any_layout_are_sent(canned: Canned) -> None:
    canned.answer("GET /models/m/inputs", TEXTS | {"instance": "numbers", "n_numbers": 3})
    canned.answer("POST /models/m/predict", _answered("a", "b"))
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    sparse = csr_matrix(([1.0, 1.5, 0.5, 3.0], [0, 2, 2, 1], [0, 3, 4]), shape=X.shape)
    with Client() as client:
        for given in (X, np.asfortranarray(X), X.tolist(), csr_matrix(X), csr_matrix(X).tocoo(), sparse):
            client.predict("m", given)
        with pytest.raises(ClientError, match="cannot be written: Type is not JSON serializable: object"):
            client.predict("m", [object()])
    sent = [orjson.loads(each.body)["instances"] for each in canned.asked if each.method == "POST"]
    assert sent[:3] == [X.tolist()] * 3
    assert sent[3:] == [[{"indices": [0, 2], "values": [1.0, 2.0]}, {"indices": [1], "values": [3.0]}]] * 3


def test_no_column_that_the_version_reads_is_to_be_renamed(canned: Canned) -> None:
    canned.answer("GET /models/m/inputs", TEXTS | {"instance": "features", "number_columns": ["f9", "f39"]})
    with Client() as client:
        with pytest.raises(ClientError, match="'f39', which the table does not have: add it"):
            client.predict("m", pa.table({"f9": [1.0], "other": [2.0]}))
        with pytest.raises(ClientError, match="'f39', which the table does not have: rename 'F39'"):
            client.predict("m", pa.table({"f9": [1.0], "F39": [2.0]}))


def test_answers_of_sets_are_lists() -> None:
    first = {"label": "a", "score": 1.0, "probability": 0.9}
    each = {**first, "top": [first], "labels": [first, {**first, "label": "b"}], "subtree": []}
    answer = Predictions.model_validate(ANSWER | {"set": True, "predictions": [each]})
    assert answer.to_rows()[0]["labels"] == ["a", "b"]


def test_objects_show_themselves_in_a_line_and_markup_in_names_is_text(canned: Canned) -> None:
    name = "<script>alert(1)</script>"
    canned.answer("GET /jobs/j1", JOB | {"request": {"model": name}})
    steps = [
        {"number": n, "attempt": 1, "epoch": n, "primal": 2.0, "dual": 1.0, "gap": 10.0**-n, "violation": 0.1,
         "seconds": float(n)}
        for n in range(4)
    ]  # fmt: skip
    canned.answer("GET /jobs/j1/steps", {"steps": steps})
    canned.answer("GET /datasets", {"items": [DATASET]})
    with Client() as client:
        job = client.jobs.get("j1")
        assert repr(job) == str(job) == f"<Job j1 train {name}: running>"
        assert [each.path for each in canned.asked] == ["/jobs/j1"], "a short form makes no request"
        shown = job._repr_html_()
        assert "<svg" in shown
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown
        assert repr(client.datasets.list()) == "<Page 1 item, papers>"
        assert repr(client) == f"<Client of {canned.url}>"


def test_a_view_is_there_although_the_service_is_away(canned: Canned) -> None:
    canned.answer("GET /jobs/j1", SUCCEEDED)
    with Client() as client:
        job = client.jobs.get("j1")
    job._transport.url = "http://127.0.0.1:9"
    assert "version 3" in job._repr_html_()
    assert "<svg" not in job._repr_html_()


def test_the_client_for_event_loops_has_the_same_views_and_tables(canned: Canned) -> None:
    canned.answer("GET /jobs/j1", SUCCEEDED)
    canned.answer("POST /datasets", DATASET, 202)

    async def use() -> tuple[str, str, str]:
        async with AsyncClient() as client:
            job = await client.jobs.get("j1")
            dataset = await client.upload(ROWS, "papers")
            return repr(client), job._repr_html_(), repr(dataset)

    shown = asyncio.run(use())
    assert shown[0] == f"<AsyncClient of {canned.url}>"
    assert "train topics" in shown[1]
    assert shown[2] == "<Dataset papers: importing>"


def test_a_wrong_key_is_reported_in_an_event_loop_too(canned: Canned) -> None:
    canned.answer("GET /solvers", problem(401, "unauthenticated"), 401)

    async def use() -> None:
        async with AsyncClient() as client:
            await client.solvers()

    with pytest.raises(UnauthenticatedError):
        asyncio.run(use())


def test_errors_are_short_in_a_notebook_and_have_no_chain(canned: Canned) -> None:
    with Client("http://127.0.0.1:9", "k", attempts=1) as client, pytest.raises(ClientError) as away:
        client.solvers()
    assert away.value.__suppress_context__
    canned.answer("GET /solvers", {"something": "else"})
    with (
        Client() as client,
        pytest.raises(UnexpectedAnswerError, match=r"not a SolverList.*items: Field required") as odd,
    ):
        client.solvers()
    assert len(str(odd.value).splitlines()) == 1
    lines = odd.value._render_traceback_()
    assert lines[-1] == f"UnexpectedAnswerError: {odd.value}"
    assert any("client.solvers()" in line for line in lines)
    assert not any("transport" in line for line in lines)


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_waiting_has_a_bar_in_a_terminal_and_none_elsewhere(canned: Canned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr("app.remote.transport.POLL_SECONDS", 0.0)
    now = {"epoch": 3, "fraction": 0.25, "gap": 0.01, "phase": "training", "eta_seconds": 8}

    def waited(out: io.StringIO, **options: Any) -> str:
        monkeypatch.setattr(sys, "stderr", out)
        for body in (JOB, JOB | {"progress": now}, SUCCEEDED):
            canned.answer("GET /jobs/j1", body)
        with Client() as client:
            client.jobs.get("j1").wait(**options)
        canned.answers.clear()
        return out.getvalue()

    assert "train topics" in waited(_Tty())
    assert waited(_Tty(), progress=False) == ""
    assert waited(io.StringIO()) == ""


def test_a_notebook_has_the_bar_of_tqdm_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Bar:
        n = 0.0

        def __init__(self, **options: Any) -> None:
            made.append(options)

        def update(self, by: float) -> None:
            self.n += by
            made.append(self.n)

        def set_postfix_str(self, *_: Any, **__: Any) -> None: ...
        def refresh(self) -> None: ...
        def close(self) -> None:
            made.append("closed")

    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=Bar))
    with progress.progress_bar(None, "Uploading", 4.0, "B") as update:
        update(1.0, "")
        update(4.0, "")
    assert made[1:] == [1.0, 4.0, "closed"]
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with progress.progress_bar(None, "Uploading", 4.0) as update:
        update(1.0, "")
    assert len(made) == 4


def test_a_curve_needs_two_points_and_keeps_its_picture_small() -> None:
    assert curve([(0.0, 0.1)]) == ""
    assert curve([(0.0, 0.1), (1.0, 0.0), (2.0, float("nan"))]) == ""
    assert len(curve([(float(n), 1 / (n + 1)) for n in range(100_000)])) < 20_000
    assert "<td" in html("X", Card("t", facts=[("a", 1), ("b", None)]))


def test_a_job_is_still_a_schema_of_the_api() -> None:
    assert Job.model_json_schema()["properties"].keys() == Job.model_fields.keys()


def test_importing_the_client_loads_no_package_of_tables(tmp_path: Path) -> None:
    import subprocess

    script = (
        "import sys, app.client, app.async_client\n"
        "assert not {'pandas', 'polars', 'pyarrow', 'tqdm', 'numpy', 'IPython'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
