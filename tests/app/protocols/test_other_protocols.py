import asyncio
import base64
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from asking import JSON, TestClient, bearer, problem
from fastapi import FastAPI
from serving import client, serving
from working import train, upload

from app.config import Settings
from app.datasets.recipe_schemas import TableColumns
from app.features.columns import SparseFeatures
from app.main import create_app
from app.protocols import adapter, annif, frames, label_studio, mlflow, open_inference

ANNIF = """
import sys
from annif_client import AnnifClient

address, key = sys.argv[1:]
annif = AnnifClient(f"http://user:{key}@{address}/v1/")
assert "Polymargin" in annif.api_info["title"]
assert [project["project_id"] for project in annif.projects] == ["foods"]
assert annif.get_project("foods")["is_trained"]
results = annif.suggest("foods", "a green leek", limit=2)
assert [result["label"] for result in results][0] == "vegetable" and len(results) == 2
assert all(0 <= result["score"] <= 1 for result in results)
assert annif.suggest("foods", "a green leek", threshold=1.0) == []
batch = annif.suggest_batch("foods", [{"text": "the sea", "document_id": "7"}, {"text": "leek"}], limit=1)
assert [(one["document_id"], one["results"][0]["label"]) for one in batch] == [("7", "water"), (None, "vegetable")]
learnt = [{"text": "a new bird", "subjects": [{"uri": "bird", "label": "bird"}]}]
annif.learn("foods", learnt)
try:
    annif.suggest("none", "text")
except ValueError as error:
    print(error)
"""
CHOICES = '<View><Text name="t" value="$body"/><Choices name="c" toName="t"><Choice value="water"/></Choices></View>'
TAXONOMY = CHOICES.replace("Choices", "Taxonomy")


@pytest.mark.slow
def test_annifs_own_client_asks_for_everything(models: TestClient, app: FastAPI, secrets: dict[str, str]) -> None:
    pytest.importorskip("annif_client")
    with serving(app) as address:
        assert "none" in client(ANNIF, address, secrets["editor"])
    (learnt,) = models.get("/api/v1/models/foods/feedback").json()["items"]
    assert (learnt["instance"], learnt["labels"]) == ({"text": "a new bird"}, ["bird"])


def basic(secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"anybody:{secret}".encode()).decode()}


@pytest.mark.parametrize("path", ["/v2", "/v1/projects", "/v1/models", "/mlflow/foods/ping", "/label-studio/foods"])
def test_the_key_may_be_the_password_of_http_basic_in_protocols_alone(
    models: TestClient, app: FastAPI, secrets: dict[str, str], path: str
) -> None:
    with TestClient(app) as client:
        assert client.get(path, headers=basic(secrets["viewer"])).status_code == 200
        problem(client.get(path, headers=basic("pm_wrong")), 401)
        problem(client.get(path, headers={"Authorization": "Basic !"}), 401)
        problem(client.get("/api/v1/models", headers=basic(secrets["viewer"])), 401)


def test_only_the_protocols_that_the_settings_name_are_spoken(
    models: TestClient, config: Settings, secrets: dict[str, str]
) -> None:
    only = create_app(config.model_copy(update={"protocols": "annif, kserve_v1"}))
    with TestClient(only, headers=bearer(secrets["viewer"])) as client:
        assert client.get("/v1/projects").status_code == 200
        assert client.get("/v1/models").status_code == 200
        problem(client.get("/v2"), 404)
    none = create_app(config.model_copy(update={"protocols": "none"}))
    with TestClient(none, headers=bearer(secrets["viewer"])) as client:
        problem(client.get("/v1/projects"), 404)
    with pytest.raises(ValueError, match="POLYMARGIN_PROTOCOLS names grpc"):
        create_app(config.model_copy(update={"protocols": "annif,grpc"}))


def test_kserve_lists_models_and_predicts(models: TestClient) -> None:
    assert set(models.get("/v1/models").json()["models"]) == {"letters", "foods", "shapes"}
    assert models.get("/v1/models/foods").json() == {"name": "foods", "ready": True}
    answer = models.post("/v1/models/foods:predict", json={"instances": ["a leek", {"text": "the sea"}], "top_k": 2})
    predictions = answer.json()["predictions"]
    assert [one["label"] for one in predictions] == ["vegetable", "water"]
    assert [len(one["top"]) for one in predictions] == [2, 2]
    assert models.post("/v1/models/shapes:predict", json={"instances": [[9, 1]]}).json()["predictions"][0]["label"]
    for body in ({}, {"instances": "x"}, {"instances": [1]}, {"instances": ["a"], "more": 1}):
        problem(models.post("/v1/models/foods:predict", json=body), 422)


@pytest.mark.parametrize(
    "body",
    [
        {"dataframe_split": {"columns": ["width", "height"], "data": [[9, 1], [1, 9]]}},
        {"dataframe_split": {"columns": ["height", "width"], "index": [0, 1], "data": [[1, 9], [9, 1]]}},
        {"dataframe_records": [{"width": 9, "height": 1}, {"height": 9, "width": 1}]},
        {"instances": [[9, 1], [1, 9]]},
        {"inputs": [[9, 1], [1, 9]]},
        {"inputs": {"width": [9, 1], "height": [1, 9]}},
    ],
)
def test_mlflow_takes_every_form_of_a_data_frame(models: TestClient, body: Any) -> None:
    assert models.post("/mlflow/shapes/invocations", json=body).json() == {"predictions": ["flat", "tall"]}


@pytest.mark.parametrize(
    "body",
    [
        {"dataframe_split": {"columns": ["width"], "data": [[9]]}},
        {"dataframe_records": [{"width": 9}, {"width": 1}]},
        {"inputs": {"width": [9, 1]}},
        "width\n9\n",
    ],
)
def test_mlflow_refuses_a_data_frame_without_a_column_of_the_model(models: TestClient, body: Any) -> None:
    sent: Any = {"json": body}
    if isinstance(body, str):
        sent = {"content": body, "headers": {"Content-Type": "text/csv"}}
    document = problem(models.post("/mlflow/shapes/invocations", **sent), 422)
    assert document["errors"][0]["detail"] == "the model reads the column 'height', which the data frame does not have"
    assert models.post("/mlflow/shapes/invocations", json={"instances": [{"width": 9}]}).json()["predictions"]


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"dataframe_split": {"columns": ["width", "height"], "data": [[9, 1], [9, None]]}}},
        {"json": {"dataframe_records": [{"width": 9, "height": 1}, {"width": 9, "height": None}]}},
        {"json": {"inputs": {"width": [9, 9], "height": [1, None]}}},
        {"content": "width,height\n9,1\n9,\n", "headers": {"Content-Type": "text/csv"}},
    ],
)
def test_mlflow_takes_no_missing_number_for_zero(models: TestClient, sent: Any) -> None:
    document = problem(models.post("/mlflow/shapes/invocations", **sent), 422)
    (error,) = document["errors"]
    assert error["pointer"] == "/instances/1"
    assert error["detail"].endswith("numbers, which feature 'height' is not")


@pytest.mark.parametrize(
    "body",
    [
        {"dataframe_split": {"columns": ["id", "text"], "data": [[1, "the sea"]]}},
        {"dataframe_split": {"columns": ["body"], "data": [["the sea"]]}},
        {"dataframe_records": [{"text": "the sea"}]},
        {"instances": ["the sea"]},
        {"inputs": ["the sea"]},
        {"inputs": {"body": ["the sea"]}},
        {"inputs": [["the sea"]]},
    ],
)
def test_mlflow_takes_texts_in_every_form(models: TestClient, body: Any) -> None:
    assert models.post("/mlflow/foods/invocations", json=body).json() == {"predictions": ["water"]}


def test_mlflow_says_that_nan_is_no_number_in_json(models: TestClient) -> None:
    sent = models.post("/mlflow/shapes/invocations", content=b'{"inputs":[[NaN,1]]}', headers=JSON)
    assert problem(sent, 400)["detail"].endswith("line 1, column 13: NaN is no number in JSON.")
    ended = problem(models.post("/mlflow/shapes/invocations", content=b'{"inputs":[[1', headers=JSON), 400)
    assert "parsing stopped at line 1, column 14" in ended["detail"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"dataframe_split": {"columns": ["a", "b", "c"], "data": [[1, 0, 0], [0, 1, 0]]}}, True),
        ({"dataframe_split": {"columns": [0, 1, 2], "data": [[1, 0, 0], [0, 1, 0]]}}, False),
        ({"dataframe_records": [{"a": 1, "b": 0, "c": 0}, {"c": 0, "b": 1, "a": 0}]}, True),
        ({"inputs": {"a": [1, 0], "b": [0, 1], "c": [0, 0]}}, True),
        ({"instances": [[1, 0, 0], [0, 1, 0]]}, False),
        (b"a,b,c\n1,0,0\n0,1,0\n", True),
        (b"0,1,2\n1,0,0\n0,1,0\n", False),
    ],
)
def test_mlflow_warns_that_names_are_not_read_where_the_version_has_none(
    client: TestClient, body: Any, named: bool
) -> None:
    upload(client, "plain", b"x 1:1\ny 2:1\nz 3:1\n" * 4, "svmlight")
    assert train(client, "plain", "plain", test_fraction=0.0)["state"] == "succeeded"
    sent = {"content": body, "headers": {"Content-Type": "text/csv"}} if isinstance(body, bytes) else {"json": body}
    answer = client.post("/mlflow/plain/invocations", **sent)
    assert answer.json() == {"predictions": ["x", "y"]}
    assert ("read by position" in answer.headers.get("Warning", "")) == named
    other = {"dataframe_records": [{"a": 1, "b": 0, "c": 0}, {"a": 1, "b": 0, "d": 0}]}
    fault = problem(client.post("/mlflow/plain/invocations", json=other), 422)["errors"]
    assert fault == [{"detail": "the row has other columns than the first row", "pointer": "/dataframe_records/1"}]


def test_mlflow_takes_csv_and_options(models: TestClient, config: Settings, secrets: dict[str, str]) -> None:
    csv = {"Content-Type": "text/csv"}
    answer = models.post("/mlflow/shapes/invocations", content=b"height,width\n1,9\n9,1\n", headers=csv)
    assert answer.json() == {"predictions": ["flat", "tall"]}
    answer = models.post("/mlflow/foods/invocations", content=b'text\n"the ""blue"", sea"\n', headers=csv)
    assert answer.json() == {"predictions": ["water"]}
    answer = models.post("/mlflow/foods/invocations", json={"inputs": ["sea"], "params": {"top_k": 3}})
    assert len(answer.json()["predictions"][0]["top"]) == 3
    assert models.get("/mlflow/foods/ping").status_code == models.get("/mlflow/foods/version").status_code == 200
    problem(models.get("/ping"), 404)
    named = create_app(config.model_copy(update={"mlflow_model": "foods"}))
    with TestClient(named, headers=bearer(secrets["viewer"])) as client:
        assert client.get("/ping", headers={"Authorization": ""}).text == "\n"
        problem(client.get("/mlflow/foods/ping", headers={"Authorization": ""}), 401)
        assert client.get("/version").headers["content-type"].startswith("text/plain")
        assert client.post("/invocations", json={"inputs": ["sea"]}).json() == {"predictions": ["water"]}


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"{}", "application/json", 422),
        (b'{"inputs": ["a"], "instances": ["a"]}', "application/json", 422),
        (b'{"inputs": 1}', "application/json", 422),
        (b'{"inputs": {"a": [1], "b": []}}', "application/json", 422),
        (b'{"dataframe_split": {"columns": ["a"], "data": [[1, 2]]}}', "application/json", 422),
        (b'{"dataframe_split": []}', "application/json", 422),
        (b'{"dataframe_records": [{"a": 1, "b": "x"}]}', "application/json", 422),
        (b'{"inputs": ["a"], "params": {"instances": []}}', "application/json", 422),
        (b"", "text/csv", 400),
        (b"a,b\n1\n", "text/csv", 422),
        (b"\xff\n", "text/csv", 400),
        (b"a", "text/plain", 415),
    ],
)
def test_mlflow_refuses_what_is_no_data_frame(models: TestClient, content: bytes, media_type: str, status: int) -> None:
    answer = models.post("/mlflow/foods/invocations", content=content, headers={"Content-Type": media_type})
    assert problem(answer, status)["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"dataframe_split": {"columns": ["width", "width", "height"], "data": [[9, 1, 1]]}},
        "width,width,height\n9,1,1\n",
        "width,height\n9_0,1\n",
    ],
)
def test_mlflow_loses_no_column_and_takes_no_number_that_only_python_reads(models: TestClient, body: Any) -> None:
    given = {"json": body} if isinstance(body, dict) else {"content": body, "headers": {"Content-Type": "text/csv"}}
    problem(models.post("/mlflow/shapes/invocations", **given), 422)


def test_annif_refuses_what_is_no_form_of_its_own(models: TestClient) -> None:
    url = "/v1/projects/foods/suggest"
    assert models.get("/v1/").status_code == 200
    assert models.post(url, data={"text": "a leek"}).json()["results"][0]["label"] == "vegetable"
    for form in ({}, {"limit": "3"}, *({"text": "a"} | more for more in ({"limit": "x"}, {"threshold": "2"}))):
        problem(models.post(url, data=form), 422)
    problem(models.post("/v1/projects/letters/suggest", data={"text": "a"}), 422)
    for body in ({}, {"documents": []}, {"documents": 3}, {"documents": [{"text": 1}]}, {"documents": ["a"]}):
        problem(models.post("/v1/projects/foods/suggest-batch", json=body), 422)


@pytest.mark.parametrize(
    ("config_text", "kind", "value"),
    [(CHOICES, "choices", {"choices": ["water"]}), (TAXONOMY, "taxonomy", {"taxonomy": [["water"]]})],
)
def test_label_studio_gets_pre_annotations(
    models: TestClient, config_text: str, kind: str, value: dict[str, Any]
) -> None:
    assert models.get("/label-studio/foods/health").json()["status"] == "UP"
    setup = models.post("/label-studio/foods/setup", json={"project": "1", "schema": config_text, "hostname": "x"})
    assert setup.json() == {"model_version": "foods/1"}
    tasks = [{"id": 5, "data": {"body": "the blue sea"}}]
    asked = {"tasks": tasks, "project": "1.2", "label_config": config_text, "params": {"context": None}}
    (result,) = models.post("/label-studio/foods/predict", json=asked).json()["results"]
    (region,) = result["result"]
    assert region == {"from_name": "c", "to_name": "t", "type": kind, "value": value}
    assert result["model_version"] == "foods/1"
    event = {"action": "START_TRAINING", "project": {}}
    assert models.post("/label-studio/foods/webhook", json=event).status_code == 200


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><View><Text name="t" value="$body"/>&b;</View>'


@pytest.mark.parametrize("config_text", ["", "<View>", "<View/>", BOMB, 3, None, '<View><Choices name="c"/></View>'])
def test_label_studio_is_told_of_a_configuration_without_choices(models: TestClient, config_text: Any) -> None:
    asked = {"tasks": [{"data": {"body": "x"}}], "label_config": config_text}
    refused = problem(models.post("/label-studio/foods/predict", json=asked), 422)
    assert refused["errors"][0]["pointer"] == "/label_config"


def test_label_studio_is_told_of_tasks_that_do_not_fit(models: TestClient) -> None:
    for tasks in (None, [1], [{"data": 1}], [{"data": {"other": "x"}}], [{"data": {"body": 1}}]):
        problem(models.post("/label-studio/foods/predict", json={"tasks": tasks, "label_config": CHOICES}), 422)


def test_label_studio_gets_answers_to_the_fields_that_a_model_knows_and_to_no_tasks(models: TestClient) -> None:
    asked = {"tasks": [{"data": {"width": 9, "body": ""}}], "label_config": CHOICES.replace("water", "flat")}
    (result,) = models.post("/label-studio/shapes/predict", json=asked).json()["results"]
    assert result["result"][0]["value"] == {"choices": ["flat"]}
    asked = {"tasks": [], "label_config": CHOICES}
    assert models.post("/label-studio/foods/predict", json=asked).json()["results"] == []


def test_label_studio_asks_models_of_tables_by_the_columns_that_they_know() -> None:
    columns = TableColumns(texts=("note",), numbers=("width",), categories=("kind",))
    loaded: Any = SimpleNamespace(features=SimpleNamespace(kind="table", columns=columns))
    control = label_studio._control(CHOICES, "")
    data = {"note": "x", "width": 9, "kind": "a", "body": "y"}
    found = label_studio._instances(loaded, control, [data, {"width": 1}])
    assert found == [{"record": {"note": "x", "width": 9, "kind": "a"}}, {"record": {"width": 1}}]


def test_label_studio_gets_scores_from_0_to_1_from_models_without_probabilities() -> None:
    sure: dict[str, Any] = {"labels": [{"label": "a", "score": 2.0}, {"label": "b", "score": 1.0}], "score": 2.0}
    assert label_studio._score(sure) == pytest.approx(0.7310585786)
    assert label_studio._score({"labels": [], "score": -1.0}) == pytest.approx(0.7310585786)
    assert label_studio._score({"labels": [], "score": -1e9}) == 1.0
    assert label_studio._score({"labels": [], "score": None}) is None


def test_a_body_that_is_not_json_is_refused_by_every_protocol(models: TestClient) -> None:
    for path in ("/v1/models/foods:predict", "/mlflow/foods/invocations", "/label-studio/foods/predict"):
        problem(models.post(path, content=b"{", headers=JSON), 400)
        problem(models.post(path, content=json.dumps([1]).encode(), headers=JSON), 422)


MANY = 1001
ROWS = [[9, 1]] * MANY


@pytest.mark.parametrize(
    "body",
    [
        {"dataframe_split": {"columns": ["width", "height"], "data": ROWS}},
        {"dataframe_records": [{"width": 9}] * MANY},
        {"instances": ROWS},
        {"inputs": {"width": [9] * MANY}},
        "width,height\n" + "9,1\n" * MANY,
        {"tasks": [{"data": {}}] * MANY, "label_config": CHOICES},
    ],
)
def test_too_many_instances_are_refused_before_anything_is_made_of_them(
    models: TestClient, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (frames, label_studio):
        monkeypatch.setattr(module, "_instance" if module is frames else "_instances", None)
    path = "/label-studio/shapes/predict" if "tasks" in body else "/mlflow/shapes/invocations"
    given = {"json": body} if isinstance(body, dict) else {"content": body, "headers": {"Content-Type": "text/csv"}}
    assert "send 1 to 1000 instances" in problem(models.post(path, **given), 422)["message"]


def test_the_names_of_features_are_listed_once_a_request(models: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    names = SparseFeatures.names
    monkeypatch.setattr(SparseFeatures, "names", lambda self: asked.append(1) or names(self))
    tasks = {"tasks": [{"data": {"width": 9}}] * 50, "label_config": CHOICES}
    for path, body in (("/label-studio/shapes/predict", tasks), ("/mlflow/shapes/invocations", {"inputs": ROWS[:50]})):
        asked.clear()
        assert models.post(path, json=body).status_code == 200
        assert len(asked) == 1


def test_no_protocol_parses_a_body_on_the_event_loop(models: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []

    def in_a_thread(function: Callable[..., Any]) -> Callable[..., Any]:
        def parse(*args: Any) -> Any:
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            parsed.append(function)
            return function(*args)

        return parse

    for module, name in (
        (adapter, "json_of"), (label_studio, "_control"), (mlflow, "from_csv"), (annif, "_form"),
        (open_inference, "_unpacked"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, in_a_thread(getattr(module, name)))
    text = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["sea"]}
    for path, body in (
        ("/label-studio/foods/setup", {"schema": CHOICES}),
        ("/label-studio/foods/predict", {"tasks": [{"data": {"body": "x"}}], "label_config": CHOICES}),
        ("/label-studio/foods/webhook", {}),
        ("/mlflow/foods/invocations", {"inputs": ["sea"]}),
        ("/v1/models/foods:predict", {"instances": ["sea"]}),
        ("/v1/projects/foods/suggest-batch", {"documents": [{"text": "sea"}]}),
        ("/v2/models/foods/infer", {"inputs": [text]}),
    ):
        parsed.clear()
        assert models.post(path, json=body).status_code == 200
        assert parsed
    assert models.post("/v1/projects/foods/suggest", data={"text": "sea"}).status_code == 200
    csv = {"Content-Type": "text/csv"}
    assert models.post("/mlflow/foods/invocations", content=b"text\nsea\n", headers=csv).status_code == 200


def test_a_labeling_configuration_that_is_too_long_is_not_parsed(
    models: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_studio.ElementTree, "fromstring", None)
    document = problem(models.post("/label-studio/foods/setup", json={"schema": CHOICES + " " * (256 << 10)}), 422)
    assert "at most 262144 characters" in document["message"]


def test_the_words_of_an_error_are_one_sentence_that_does_not_deny_what_was_sent(models: TestClient) -> None:
    for path, given, words in (
        ("/v1/projects/foods/suggest-batch", {"json": {"documents": [{}]}}, "a list of objects with a text"),
        ("/v1/projects/foods/suggest", {"data": {"limit": "3"}}, "a text is needed"),
        ("/v1/models/foods:predict", {"json": {}}, "a list of instances is needed"),
    ):
        message = problem(models.post(path, **given), 422)["message"]
        assert message.endswith(words)
        assert "must be" not in message
        assert ".;" not in message
