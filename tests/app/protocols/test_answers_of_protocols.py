"""Sets of labels, empty sets and paths along a label tree, at the door of every protocol."""

import datetime
import io
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from asking import TestClient, bearer, problem
from typer.testing import CliRunner
from working import Home, living_in, run, train, upload

from app.cli import cli
from app.config import Settings
from app.main import create_app
from app.protocols.tensors import Tensor, as_bytes, as_json, read
from solvers.estimator import PolymarginClassifier

WORDS = {
    "Kitchen > Covers": "lid pot pan seal",
    "Kitchen > Knives": "blade chop edge steel",
    "Garden > Covers": "sheet frost bed fleece",
    "Garden > Spades": "dig soil handle shaft",
}
TREE = b"Kitchen > Covers\nKitchen > Knives\nGarden > Covers\nGarden > Spades\n"
SUBJECTS = {"bread": "flour oven dough", "soup": "broth ladle stock", "rain": "cloud wet drop"}
EDGES = b"parent,child\nroot,food\nroot,rain\nfood,bread\nfood,soup\n"
NODE_SVM = {"solver": "auto", "params": {"candidates": [{"solver": "node_svm", "params": {"C": 1.0}}]}}
WESTON = {"solver": "auto", "params": {"candidates": [{"solver": "weston_watkins", "params": {"C": 1.0}}]}}
# the lead of rain over bread is wide: the order of the labels does not hang on the last bit of a score
BOTH, NONE = "flour oven dough cloud wet drop drop drop drop", "nothing plain misc"


def _lines(rows: list[tuple[str, Any]]) -> bytes:
    return b"".join(json.dumps({"text": text, "label": label}).encode() + b"\n" for text, label in rows)


def _products() -> bytes:
    rng = np.random.default_rng(3)
    return _lines(
        [(" ".join(rng.choice(words.split(), 6)), label) for label, words in WORDS.items() for _ in range(15)]
    )


def _subjects() -> bytes:
    rng = np.random.default_rng(4)
    rows: list[tuple[str, Any]] = [(NONE, [])] * 15
    names = list(SUBJECTS)
    for at in range(90):
        chosen = [names[at % 3]] if at % 2 else sorted({names[at % 3], names[(at + 1) % 3]})
        words = [word for name in chosen for word in rng.choice(SUBJECTS[name].split(), 4)]
        rows.append((" ".join(words), chosen))
    return _lines(rows)


def _things() -> bytes:
    rows = [("hot", "red", 9), ("cold", "blue", 1), ("hot", "orange", 8), ("cold", "grey", 2)] * 8
    return b"label,color,width\n" + b"".join(b"%s,%s,%d\n" % (a.encode(), b.encode(), c) for a, b, c in rows)


def _flags() -> bytes:
    day, later = datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)
    rows = [
        (True, 7.0, day, "on"),
        (True, 11.0, later, "on"),
        (False, 7.0, later, "off"),
        (False, 11.0, day, "off"),
    ] * 4
    columns = dict(zip(("flag", "code", "day", "label"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), stream := io.BytesIO())
    return stream.getvalue()


def _vectors() -> bytes:
    rows = [("deep sea", [2.0, 0.0, 0.5], "ship"), ("blue sky", [0.0, 2.0, 0.5], "kite")] * 8
    table = pa.table(
        {"text": [row[0] for row in rows], "v": [row[1] for row in rows], "label": [row[2] for row in rows]}
    )
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


SIZES = [([9.0, 1.0], "flat"), ([1.0, 9.0], "tall"), ([8.0, 1.5], "flat"), ([1.5, 8.0], "tall")] * 5
TRAITS: list[tuple[list[float], list[str]]] = [
    ([1.0, 0.0], ["wide"]),
    ([0.0, 1.0], ["high"]),
    ([1.0, 1.0], ["high", "wide"]),
    ([0.0, 0.0], []),
] * 10


def _sizes() -> bytes:
    return b"label,width,height\n" + b"".join(b"%s,%g,%g\n" % (label.encode(), *x) for x, label in SIZES)


def _traits() -> bytes:
    rows = [{"label": labels, "features": {"height": x[1], "width": x[0]}} for x, labels in TRAITS]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture(scope="module")
def labelled_home(empty_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the models products (one label of a tree), flat (sets) and tree (sets along a tree)."""
    folder = tmp_path_factory.mktemp("labelled")
    shutil.copytree(empty_home[0], folder, dirs_exist_ok=True)
    with living_in(folder), TestClient(create_app(), headers=bearer(empty_home[1]["admin"])) as client:
        for name, format, content in (("goods", "paths", TREE), ("kinds", "csv", EDGES)):
            made = client.post("/api/v1/hierarchies", params={"name": name, "format": format}, content=content)
            assert made.status_code == 201, made.text
        assert upload(client, "products", _products(), "jsonl")["state"] == "ready"
        assert upload(client, "subjects", _subjects(), "jsonl")["state"] == "ready"
        things = upload(client, "things", _things(), "csv", category_columns="color", number_columns="width")
        assert things["state"] == "ready", things["error"]
        flags = upload(client, "flags", _flags(), "parquet", category_columns=["flag", "code", "day"])
        assert flags["state"] == "ready", flags["error"]
        signs = upload(client, "signs", _vectors(), "parquet", text_columns="text", number_columns="v")
        assert signs["state"] == "ready", signs["error"]
        assert upload(client, "sizes", _sizes(), "csv")["state"] == "ready"
        assert upload(client, "traits", _traits(), "jsonl")["state"] == "ready"
        for dataset, model, request in (
            ("products", "plain", WESTON),
            ("things", "things", {"solver": "weston_watkins"}),
            ("flags", "flags", {"solver": "weston_watkins"}),
            ("signs", "signs", {"solver": "weston_watkins"}),
            ("sizes", "sizes", {"solver": "weston_watkins", "test_fraction": 0}),
            ("traits", "traits", {**NODE_SVM, "test_fraction": 0}),
            ("products", "products", {**WESTON, "hierarchy": "goods"}),
            ("subjects", "flat", NODE_SVM),
            ("subjects", "tree", {**NODE_SVM, "hierarchy": "kinds"}),
        ):
            job = train(client, dataset, model, **request)
            assert job["state"] == "succeeded", job["error"]
    return folder


@pytest.fixture
def labelled(labelled_home: Path, config: Settings, client: TestClient) -> TestClient:
    shutil.copytree(labelled_home, config.home, dirs_exist_ok=True)
    return client


def rest(client: TestClient, model: str, texts: list[str], **more: Any) -> dict[str, Any]:
    asked = {"instances": [{"text": text} for text in texts], **more}
    response = client.post(f"/api/v1/models/{model}/predict", json=asked)
    assert response.status_code == 200, response.text
    return response.json()


def names(prediction: dict[str, Any]) -> list[str]:
    return [label["label"] for label in prediction["labels"]]


def infer(client: TestClient, model: str, texts: list[str], binary: bool = False, **parameters: Any) -> dict[str, Any]:
    """The outputs by name, as nested lists."""
    return infer_tensors(client, model, [Tensor("text", "BYTES", (len(texts),), texts)], binary, **parameters)


def infer_tensors(
    client: TestClient, model: str, tensors: list[Tensor], binary: bool = False, **parameters: Any
) -> dict[str, Any]:
    parameters["binary_data_output"] = binary
    entries = [as_bytes(tensor) for tensor in tensors] if binary else [(as_json(tensor), b"") for tensor in tensors]
    raw = b"".join(part for _, part in entries)
    head = json.dumps({"inputs": [entry for entry, _ in entries], "parameters": parameters}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    answer = client.post(f"/v2/models/{model}/infer", content=head + raw, headers=headers)
    assert answer.status_code == 200, answer.text
    length = int(answer.headers.get("inference-header-content-length", len(answer.content)))
    offset, found = 0, {}
    for at, output in enumerate(json.loads(answer.content[:length])["outputs"]):
        tensor, offset = read(output, at, answer.content[length:], offset)
        found[tensor.name] = np.array(tensor.values, object).reshape(tensor.shape).tolist()
    return found


def selected(outputs: dict[str, Any]) -> list[list[str]]:
    return [
        [label for label, chosen in zip(*row, strict=True) if chosen]
        for row in zip(outputs["labels"], outputs["selected"], strict=True)
    ]


def config_of(tag: str, inside: str, **attributes: str) -> str:
    given = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f'<View><Text name="t" value="$body"/><{tag} name="c" toName="t" {given}>{inside}</{tag}></View>'


def studio(client: TestClient, model: str, texts: list[str], config_text: str) -> list[dict[str, Any]]:
    asked = {"tasks": [{"data": {"body": text}} for text in texts], "label_config": config_text}
    answer = client.post(f"/label-studio/{model}/predict", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


FLAT = config_of("Choices", "".join(f'<Choice value="{name}"/>' for name in SUBJECTS), choice="multiple")


@pytest.mark.parametrize("model", ["flat", "tree"])
def test_every_protocol_gives_the_whole_set_and_the_empty_one(labelled: TestClient, model: str) -> None:
    texts = [BOTH, NONE, "flour oven oven dough"]
    answer = rest(labelled, model, texts)
    expected = [names(one) for one in answer["predictions"]]
    assert answer["set"] is True
    assert [set(row) for row in expected] == [{"bread", "rain"}, set(), {"bread"}]
    for one in answer["predictions"]:
        for label in one["labels"]:
            assert label["probability"] == pytest.approx(1 / (1 + np.exp(-label["score"])))
            path = ["food", "bread"] if (model, label["label"]) == ("tree", "bread") else [label["label"]]
            assert label["path"] == path
    kserve = labelled.post(f"/v1/models/{model}:predict", json={"instances": texts}).json()["predictions"]
    assert [names(one) for one in kserve] == expected
    mlflow = labelled.post(f"/mlflow/{model}/invocations", json={"inputs": texts}).json()["predictions"]
    assert mlflow == expected
    csv = "text\n" + "".join(f"{text}\n" for text in texts)
    answer = labelled.post(f"/mlflow/{model}/invocations", content=csv, headers={"Content-Type": "text/csv"})
    assert answer.json()["predictions"] == expected
    for binary in (False, True):
        for parameters in ({}, {"top_k": 3}):
            outputs = infer(labelled, model, texts, binary, **parameters)
            assert selected(outputs) == expected
            assert [len(row) for row in outputs["labels"]] == [3 if parameters else 2] * 3
    results = studio(labelled, model, texts, FLAT)
    assert [one["result"][0]["value"]["choices"] if one["result"] else [] for one in results] == expected
    assert all(0.5 < one["score"] <= 1 for one in results)


def test_a_single_choice_takes_the_best_label_of_a_set(labelled: TestClient) -> None:
    single = FLAT.replace('choice="multiple"', 'choice="single"')
    (best,) = rest(labelled, "flat", [BOTH])["predictions"]
    (result,) = studio(labelled, "flat", [BOTH], single)
    assert result["result"][0]["value"]["choices"] == names(best)[:1]


def test_labels_without_a_choice_are_left_out(labelled: TestClient) -> None:
    (result,) = studio(labelled, "flat", [BOTH], config_of("Choices", '<Choice value="rain"/>', choice="multiple"))
    assert result["result"][0]["value"]["choices"] == ["rain"]
    (result,) = studio(labelled, "flat", ["flour oven"], config_of("Choices", '<Choice value="rain"/>'))
    assert result["result"] == []


TAXONOMY = config_of(
    "Taxonomy",
    '<Choice value="Kitchen"><Choice value="Covers"/><Choice value="Knives" alias="K1"/></Choice>'
    '<Choice value="Garden"><Choice value="Covers"/><Choice value="Spades"/></Choice>',
)


@pytest.mark.parametrize(
    ("text", "path", "label"),
    [
        ("lid pot pan", ["Kitchen", "Covers"], "Kitchen > Covers"),
        ("sheet frost fleece", ["Garden", "Covers"], "Garden > Covers"),
        ("blade steel chop", ["Kitchen", "K1"], "Kitchen > Knives"),
    ],
)
def test_a_taxonomy_answers_by_its_own_choices_and_reads_them_back(
    labelled: TestClient, text: str, path: list[str], label: str
) -> None:
    (one,) = rest(labelled, "products", [text])["predictions"]
    assert names(one) == [label]
    assert one["labels"][0]["path"] == [label.split(" > ")[0], label]
    assert [step["label"] for step in one["path"]] == one["labels"][0]["path"]
    (result,) = studio(labelled, "products", [text], TAXONOMY)
    (region,) = result["result"]
    assert region["value"] == {"taxonomy": [path]}
    for config_text in (TAXONOMY, config_of("Taxonomy", "", apiUrl="https://example.org/items")):
        event = {
            "action": "ANNOTATION_CREATED",
            "project": {"label_config": config_text},
            "task": {"data": {"body": text}},
            "annotation": {"id": 7, "result": [region]},
        }
        if "K1" in path and config_text is not TAXONOMY:
            continue
        answer = labelled.post("/label-studio/products/webhook", json=event)
        assert answer.status_code == 200, answer.text
        kept = labelled.get("/api/v1/models/products/feedback").json()["items"]
        assert kept[0]["labels"] == [label]


def test_a_taxonomy_reads_values_where_choices_have_aliases(labelled: TestClient) -> None:
    region = {"from_name": "c", "to_name": "t", "type": "taxonomy", "value": {"taxonomy": [["Kitchen", "Knives"]]}}
    event = {
        "action": "ANNOTATION_CREATED",
        "project": {"label_config": TAXONOMY},
        "task": {"data": {"body": "blade"}},
        "annotation": {"id": 9, "result": [region]},
    }
    assert labelled.post("/label-studio/products/webhook", json=event).status_code == 200
    assert labelled.get("/api/v1/models/products/feedback").json()["items"][0]["labels"] == ["Kitchen > Knives"]


@pytest.mark.parametrize(("model", "kept"), [("products", None), ("plain", ["Kitchen > Mixers"])])
def test_a_choice_of_a_taxonomy_without_a_label_is_refused_where_labels_have_a_place(
    labelled: TestClient, model: str, kept: list[str] | None
) -> None:
    event = {
        "action": "ANNOTATION_CREATED",
        "project": {"label_config": config_of("Taxonomy", "", apiUrl="https://example.org/items")},
        "task": {"data": {"body": "whisk"}},
        "annotation": {"id": 9, "result": [{"from_name": "c", "value": {"taxonomy": [["Kitchen", "Mixers"]]}}]},
    }
    answer = labelled.post(f"/label-studio/{model}/webhook", json=event)
    feedback = labelled.get(f"/api/v1/models/{model}/feedback").json()["items"]
    if kept is None:
        (fault,) = problem(answer, 422)["errors"]
        assert fault["detail"].startswith("no label of the model's hierarchy matches the choice Kitchen > Mixers: add")
        assert feedback == []
    else:
        assert answer.status_code == 200, answer.text
        assert feedback[0]["labels"] == kept


def test_a_document_without_subjects_and_an_annotation_without_a_choice_are_the_empty_set(labelled: TestClient) -> None:
    event = {
        "action": "ANNOTATION_CREATED",
        "project": {"label_config": FLAT},
        "task": {"data": {"body": "more plain misc"}},
        "annotation": {"id": 7, "result": []},
    }
    learnt = labelled.post("/v1/projects/flat/learn", json=[{"text": "nothing at all", "subjects": []}])
    assert learnt.status_code == 204, learnt.text
    assert labelled.post("/label-studio/flat/webhook", json=event).status_code == 200
    skipped = event | {"annotation": {"id": 8, "result": [], "was_cancelled": True}}
    assert labelled.post("/label-studio/flat/webhook", json=skipped).status_code == 200
    kept = labelled.get("/api/v1/models/flat/feedback").json()["items"]
    assert [(each["instance"]["text"], each["labels"]) for each in kept] == [
        ("more plain misc", []),
        ("nothing at all", []),
    ]
    before = labelled.get("/api/v1/datasets/subjects").json()["n_rows"]
    run(labelled.post("/api/v1/models/flat/feedback/rows", json={}).json()["id"])
    rows = labelled.get("/api/v1/datasets/subjects/rows", params={"offset": before}).json()["rows"]
    assert [(row["text"], row["labels"]) for row in rows] == [("nothing at all", []), ("more plain misc", [])]
    for model, document in (("plain", {"text": "a", "subjects": []}), ("flat", {"text": "a"})):
        problem(labelled.post(f"/v1/projects/{model}/learn", json=[document]), 422)
    assert labelled.post("/label-studio/plain/webhook", json=event).status_code == 200
    assert labelled.get("/api/v1/models/plain/feedback").json()["items"] == []
    refused = labelled.post("/api/v1/models/plain/feedback", json={"instance": {"text": "a"}, "labels": []})
    assert "the model names one label" in problem(refused, 422)["errors"][0]["detail"]


@pytest.mark.usefixtures("wired")
def test_the_command_line_reports_the_empty_set_by_an_empty_label(
    labelled: TestClient, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYMARGIN_API_KEY", secrets["admin"])
    reported = CliRunner().invoke(cli, ["feedback", "report", "flat", "", "--text", "misc", "--json"])
    assert reported.exit_code == 0, reported.output
    assert labelled.get("/api/v1/models/flat/feedback").json()["items"][0]["labels"] == []


def test_the_choices_of_a_task_are_its_own(labelled: TestClient) -> None:
    asked = {
        "tasks": [{"data": {"body": "lid pot pan", "options": [{"value": "Kitchen", "children": ["Covers"]}]}}],
        "label_config": config_of("Taxonomy", "", value="$options"),
    }
    (result,) = labelled.post("/label-studio/products/predict", json=asked).json()["results"]
    assert result["result"][0]["value"] == {"taxonomy": [["Kitchen", "Covers"]]}


def test_a_label_says_whether_it_is_sure_and_which_ancestor_is(labelled: TestClient) -> None:
    (one,) = rest(labelled, "tree", ["flour ladle"], threshold=0.0)["predictions"]
    assert all(label["sure"] for label in one["labels"])
    answer = rest(labelled, "products", ["lid lid sheet"], threshold=1.0)
    assert answer["predictions"][0]["labels"][0]["sure"] is False


def test_probes_of_the_open_inference_protocol_need_no_key(labelled: TestClient) -> None:
    nobody = {"Authorization": ""}
    assert labelled.get("/v2/health/live", headers=nobody).json() == {"live": True}
    assert labelled.get("/v2/health/ready", headers=nobody).json() == {"ready": True}
    problem(labelled.get("/v2/models/flat/ready", headers=nobody), 401)
    assert problem(labelled.get("/v2/nothing"), 404)["error"]


def test_an_input_of_another_name_is_refused(labelled: TestClient) -> None:
    entry = {"name": "features", "datatype": "BYTES", "shape": [1], "data": ["soup"]}
    answer = labelled.post("/v2/models/flat/infer", json={"inputs": [entry]})
    assert "the model's input is text" in problem(answer, 422)["error"]


def test_a_classification_has_values_places_and_labels(labelled: TestClient) -> None:
    entry = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["lid pot"]}
    outputs = [{"name": "scores", "parameters": {"classification": 2}}, {"name": "labels"}]
    answer = labelled.post("/v2/models/products/infer", json={"inputs": [entry], "outputs": outputs}).json()
    scores, labels = answer["outputs"]
    assert (scores["datatype"], scores["shape"], labels["shape"]) == ("BYTES", [1, 2], [1, 1])
    value, place, label = scores["data"][0].split(":")
    assert label == labels["data"][0] == "Kitchen > Covers"
    assert int(place) < 4
    assert float(value) <= 0
    outputs = [{"name": "labels", "parameters": {"classification": 2}}]
    problem(labelled.post("/v2/models/products/infer", json={"inputs": [entry], "outputs": outputs}), 422)


# Each cell of the matrix is the answer of one door to one kind of row. The page of protocols shows it; with
# WRITE_MATRIX=1 this test writes the page again.
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "protocols.md"
MARKS = ("<!-- matrix -->\n", "<!-- end of matrix -->")
KINDS: dict[str, tuple[str, Any]] = {
    "text, one label": ("plain", {"text": "lid pot pan"}),
    "record, one label": ("things", {"record": {"color": "red", "width": 9.0}}),
    "record with a flag, a whole float and a date, one label": (
        "flags",
        {"record": {"flag": True, "code": 7.0, "day": "2024-02-01"}},
    ),
    "record with a vector, one label": ("signs", {"record": {"text": "deep sea", "v": [0.0, 2.0, 0.5]}}),
    "numbers, one label": ("sizes", {"features": {"width": 7.0, "height": 2.0}}),
    "numbers, set": ("traits", {"features": {"width": 1.0, "height": 1.0}}),
    "numbers, empty set": ("traits", {"features": {"width": 0.0, "height": 0.0}}),
    "text, one label of a tree": ("products", {"text": "lid pot pan"}),
    "text, set": ("flat", {"text": BOTH}),
    "text, empty set": ("flat", {"text": NONE}),
    "text, set under a tree": ("tree", {"text": BOTH}),
    "text, empty set under a tree": ("tree", {"text": NONE}),
}
CSV = {"Content-Type": "text/csv"}


def _by_rest(client: TestClient, model: str, row: Any) -> list[str]:
    answer = client.post(f"/api/v1/models/{model}/predict", json={"instances": [row]})
    return names(answer.json()["predictions"][0])


def _by_rest_batch(client: TestClient, model: str, row: Any) -> list[str]:
    answer = client.post(f"/api/v1/models/{model}/predict", json={"instances": [row] * 3, "top_k": 2})
    (found,) = {tuple(names(one)) for one in answer.json()["predictions"]}
    return list(found)


def _by_kserve(client: TestClient, model: str, row: Any) -> list[str]:
    return names(client.post(f"/v1/models/{model}:predict", json={"instances": [row]}).json()["predictions"][0])


def _of_mlflow(answer: Any) -> list[str]:
    (found,) = answer.json()["predictions"]
    return found if isinstance(found, list) else [found]


def _columns(row: Any) -> dict[str, Any]:
    return row.get("record") or row.get("features") or row


def _by_mlflow_json(client: TestClient, model: str, row: Any) -> list[str]:
    return _of_mlflow(client.post(f"/mlflow/{model}/invocations", json={"dataframe_records": [_columns(row)]}))


def _by_mlflow_csv(client: TestClient, model: str, row: Any) -> list[str]:
    cells = _columns(row)
    line = ",".join(f'"{cell}"' if isinstance(cell, list) else str(cell) for cell in cells.values())
    content = f"{','.join(cells)}\n{line}\n"
    return _of_mlflow(client.post(f"/mlflow/{model}/invocations", content=content, headers=CSV))


def _feature_names(model: str) -> list[str]:
    return ["height", "width"] if model == "traits" else ["width", "height"]


def _tensor(name: str, value: Any) -> Tensor:
    if isinstance(value, str):
        return Tensor(name, "BYTES", (1,), [value])
    if isinstance(value, bool):
        return Tensor(name, "BOOL", (1,), np.array([value]))
    return Tensor(name, "FP64", (1, *np.shape(value)), np.ravel(value))


def _by_open_inference(client: TestClient, model: str, row: Any, binary: bool) -> list[str]:
    if "features" in row:
        dense = np.array([row["features"][name] for name in _feature_names(model)])
        tensors = [Tensor("features", "FP64", (1, len(dense)), dense)]
    else:
        tensors = [_tensor(name, value) for name, value in _columns(row).items()]
    outputs = infer_tensors(client, model, tensors, binary)
    return selected(outputs)[0] if "selected" in outputs else outputs["labels"][0]


def _by_annif(client: TestClient, model: str, row: Any) -> list[str] | None:
    if "text" not in row:
        return None
    answer = client.post(f"/v1/projects/{model}/suggest", data={"text": row["text"], "threshold": "0.5"})
    return [one["uri"] for one in answer.json()["results"]]


def _by_label_studio(client: TestClient, model: str, row: Any) -> list[str]:
    labels = [*WORDS, *SUBJECTS, "hot", "cold", "on", "off", "ship", "kite", "flat", "tall", "wide", "high"]
    choices = "".join(f'<Choice value="{label.replace(">", "&gt;")}"/>' for label in labels)
    config_text = config_of("Choices", choices, choice="multiple")
    data = {"body": "", **_columns(row), **({"body": row["text"]} if "text" in row else {})}
    asked = {"tasks": [{"data": data}], "label_config": config_text}
    (result,) = client.post(f"/label-studio/{model}/predict", json=asked).json()["results"]
    return result["result"][0]["value"]["choices"] if result["result"] else []


JOB_OPTIONS: dict[str, dict[str, Any]] = {
    "things": {"category_columns": "color", "number_columns": "width"},
    "flags": {"category_columns": ["flag", "code", "day"]},
    "signs": {"text_columns": "text", "number_columns": "v"},
}


def _as_file(row: Any, format: str) -> tuple[bytes, str]:
    """A file of one row in this format where it is one of files with such columns, else JSON lines."""
    columns = _columns(row)
    if format == "parquet":
        table = {
            name: [datetime.date.fromisoformat(value) if name == "day" else value] for name, value in columns.items()
        }
        pq.write_table(pa.table(table), stream := io.BytesIO())
        return stream.getvalue(), "parquet"
    if format == "csv" and not any(isinstance(value, list) for value in columns.values()):
        return f"{','.join(columns)}\n{','.join(map(str, columns.values()))}\n".encode(), "csv"
    return json.dumps(row.get("record", row)).encode() + b"\n", "jsonl"


def _by_job(client: TestClient, model: str, row: Any, format: str) -> list[str]:
    name = f"rows-{uuid4().hex}"
    content, of_file = _as_file(row, format)
    rows = upload(client, name, content, of_file, unlabelled="true", **JOB_OPTIONS.get(model, {}))
    assert rows["state"] == "ready", rows["error"]
    asked = {"kind": "predict", "model": model, "dataset": name, "format": format}
    made = client.post("/api/v1/jobs", json=asked)
    assert made.status_code == 202, made.text
    run(made.json()["id"])
    content = client.get(f"/api/v1/jobs/{made.json()['id']}/predictions").content
    if format == "parquet":
        (found,) = pq.read_table(io.BytesIO(content)).to_pylist()
    elif format == "xlsx":
        book = openpyxl.load_workbook(io.BytesIO(content))
        head, cells = book["Rows"].values
        found = dict(zip(head, cells, strict=True))
    elif format == "csv":
        (found,) = pacsv.read_csv(io.BytesIO(content)).to_pylist()
    else:
        found = json.loads(content)
    if "labels" not in found:
        return [found["label"]]
    if format in ("csv", "xlsx"):
        return found["labels"].split(";") if found["labels"] else []
    return found["labels"]


def _by_estimator(client: TestClient, model: str, row: Any) -> list[str] | None:
    """The machine that the service has, trained by the estimator on the same rows; it takes numbers alone."""
    if "features" not in row:
        return None
    asked = [[row["features"]["width"], row["features"]["height"]]]
    if model == "sizes":
        fitted = PolymarginClassifier("weston_watkins").fit(*map(list, zip(*SIZES, strict=True)))
        return [str(label) for label in fitted.predict(asked)]
    X, sets = map(list, zip(*TRAITS, strict=True))
    edges = [("root", "wide"), ("root", "high")]
    (found,) = PolymarginClassifier("node_svm", hierarchy=edges, C=1.0).fit(X, sets).predict(asked)
    return sorted(found)


def _by_onnx(client: TestClient, model: str, row: Any) -> list[str] | None:
    """The exported graph; a version that no graph holds is refused."""
    answer = client.get(f"/api/v1/models/{model}/versions/1/export", params={"format": "onnx"})
    if answer.status_code == 422:
        assert problem(answer, 422, "invalid_input")["errors"]
        return None
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = runtime.InferenceSession(answer.content, providers=["CPUExecutionProvider"])
    asked = np.array([[row["features"][name] for name in _feature_names(model)]], np.float32)
    return [str(label) for label in session.run(["label"], {"features": asked})[0]]


DOORS: dict[str, Callable[[TestClient, str, Any], list[str] | None]] = {
    "REST, one row": _by_rest,
    "REST, several rows": _by_rest_batch,
    "KServe": _by_kserve,
    "MLflow, JSON": _by_mlflow_json,
    "MLflow, CSV": _by_mlflow_csv,
    "Open Inference, JSON": partial(_by_open_inference, binary=False),
    "Open Inference, binary": partial(_by_open_inference, binary=True),
    "Annif": _by_annif,
    "Label Studio": _by_label_studio,
    "file job, Parquet": partial(_by_job, format="parquet"),
    "file job, CSV": partial(_by_job, format="csv"),
    "file job, JSON lines": partial(_by_job, format="jsonl"),
    "file job, Excel": partial(_by_job, format="xlsx"),
    "estimator": _by_estimator,
    "ONNX": _by_onnx,
}


@pytest.mark.slow
def test_every_door_gives_the_same_answer_to_every_kind_of_row(labelled: TestClient) -> None:
    lines = [f"| | {' | '.join(KINDS)} |", f"|---|{'---|' * len(KINDS)}"]
    expected: dict[str, list[str]] = {}
    for door, ask in DOORS.items():
        cells = []
        for kind, (model, row) in KINDS.items():
            found = ask(labelled, model, row)
            if found is not None:
                assert found == expected.setdefault(kind, found), (door, kind)
            cells.append("-" if found is None else ", ".join(found) or "(none)")
        lines.append(f"| {door} | {' | '.join(cells)} |")
    table = "\n".join(lines) + "\n"
    page = PAGE.read_text()
    before, rest_of_page = page.split(MARKS[0])
    written, after = rest_of_page.split(MARKS[1])
    if os.environ.get("WRITE_MATRIX"):
        PAGE.write_text(before + MARKS[0] + table + MARKS[1] + after)
    else:
        assert table == written, "write the page again: WRITE_MATRIX=1 and this test"
