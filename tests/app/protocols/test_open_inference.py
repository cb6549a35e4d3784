import json
from typing import Any

import numpy as np
import pytest
from asking import JSON, TestClient, problem
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from serving import client, serving

from app.errors import InvalidInput, PolymarginError
from app.protocols import open_inference
from app.protocols.tensors import KINDS, Tensor, as_bytes, as_json, read

TEXT = {"name": "text", "datatype": "BYTES", "shape": [2], "data": ["a green leek", "the blue sea"]}
SHAPES = {"name": "features", "datatype": "FP32", "shape": [2, 2], "data": [9, 1, 1, 9]}

TRITON = """
import sys
import numpy as np
import tritonclient.http as http

url, key = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"}
client = http.InferenceServerClient(url)
assert client.is_server_live(headers=headers) and client.is_server_ready(headers=headers)
assert client.is_model_ready("foods", headers=headers) and client.is_model_ready("foods", "1", headers=headers)
assert not client.is_model_ready("none", headers=headers)
assert client.get_server_metadata(headers=headers)["name"] == "polymargin"
metadata = client.get_model_metadata("shapes", headers=headers)
assert metadata["inputs"] == [{"name": "features", "datatype": "FP64", "shape": [-1, 2]}], metadata

texts = np.array(["a green leek", "the blue s\\u00e9a"], object)
for binary in (True, False):
    asked = http.InferInput("text", [2], "BYTES")
    asked.set_data_from_numpy(texts, binary_data=binary)
    for compressed in (None, "gzip", "deflate"):
        answer = client.infer("foods", [asked], headers=dict(headers), request_compression_algorithm=compressed)
        assert [label.decode() for label in answer.as_numpy("labels").ravel()] == ["vegetable", "water"]
        assert answer.as_numpy("scores").shape == (2, 1)
    outputs = [http.InferRequestedOutput("labels", binary_data=binary)]
    answer = client.infer("foods", [asked], outputs=outputs, headers=dict(headers), parameters={"top_k": 3})
    assert answer.as_numpy("labels").shape == (2, 3) and answer.as_numpy("scores") is None

features = http.InferInput("features", [2, 2], "FP32")
features.set_data_from_numpy(np.array([[9, 1], [1, 9]], np.float32))
answer = client.infer("shapes", [features], model_version="1", headers=dict(headers))
assert [label.decode() for label in answer.as_numpy("labels").ravel()] == ["flat", "tall"]
try:
    client.infer("foods", [features], headers=dict(headers))
except Exception as error:
    print(error)
"""


@pytest.mark.slow
def test_tritons_own_client_asks_for_everything(models: TestClient, app: FastAPI, secrets: dict[str, str]) -> None:
    pytest.importorskip("tritonclient")
    with serving(app) as address:
        assert "this model takes texts" in client(TRITON, address, secrets["viewer"])


def infer(client: TestClient, model: str, entry: Any, **more: Any) -> Any:
    return client.post(f"/v2/models/{model}/infer", json={"inputs": [entry], **more})


def test_texts_and_features_get_labels_and_scores(models: TestClient) -> None:
    answer = infer(models, "foods", TEXT, id="7", parameters={"top_k": 2}).json()
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("foods", "1", "7")
    labels, scores = answer["outputs"]
    assert labels["shape"] == scores["shape"] == [2, 2]
    assert labels["data"][::2] == ["vegetable", "water"]
    assert infer(models, "shapes", SHAPES).json()["outputs"][0]["data"] == ["flat", "tall"]
    nested = {**SHAPES, "data": [[9, 1], [1, 9]]}
    assert infer(models, "shapes", nested).json()["outputs"][0]["data"] == ["flat", "tall"]


def test_binary_tensors_are_read_and_written(models: TestClient) -> None:
    entry, raw = as_bytes(Tensor("text", "BYTES", (2,), TEXT["data"]))
    head = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    answer = models.post("/v2/models/foods/infer", content=head + raw, headers=headers)
    length = int(answer.headers["inference-header-content-length"])
    outputs = json.loads(answer.content[:length])["outputs"]
    labels, _ = read(outputs[0], 0, answer.content[length:], 0)
    assert labels.values == ["vegetable", "water"]


def test_bytes_that_belong_to_no_input_are_refused(models: TestClient) -> None:
    for entry in (TEXT, {**TEXT, "shape": [1], "data": None, "parameters": {"binary_data_size": 7}}):
        head = json.dumps({"inputs": [entry]}).encode()
        headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
        response = models.post("/v2/models/foods/infer", content=head + b"\3\0\0\0sea" * 2, headers=headers)
        assert response.status_code == 400, response.text
        assert "bytes follow those of the inputs" in response.json()["error"]


def test_no_column_of_a_record_comes_twice() -> None:
    column = Tensor("a", "FP64", (1,), np.ones(1))
    with pytest.raises(InvalidInput, match="does not fit"):
        open_inference._records([column, column], {}, 10)


def test_an_error_says_what_is_wrong_where_clients_of_this_protocol_look(models: TestClient) -> None:
    document = problem(infer(models, "foods", SHAPES), 422)
    assert "this model takes texts" in document["error"]
    document = problem(models.get("/v2/models/none"), 404)
    assert "none" in document["error"]
    assert "name" in problem(models.get("/v2/models/-"), 422)["error"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({**TEXT, "data": ["a"]}, "1 values for a shape of 2"),
        ({**TEXT, "data": [1, 2]}, "strings"),
        ({**TEXT, "shape": [-1]}, "of at least 0"),
        ({**TEXT, "datatype": "TEXT"}, "supported datatypes"),
        ({**TEXT, "parameters": {"binary_data_size": 100}}, "ends before"),
        ({**TEXT, "parameters": {"binary_data_size": "x"}}, "number of bytes"),
        ({**SHAPES, "datatype": "INT8", "data": [128, 1, 1, 1]}, "128 does not fit INT8, which is from -128 to 127"),
        ({**SHAPES, "datatype": "UINT8", "data": [300, 1, 1, 1]}, "300 does not fit UINT8, which is from 0 to 255"),
        ({**SHAPES, "datatype": "INT64", "data": [1.5, 1, 1, 1]}, "INT64 are integers in JSON, and 1.5 is given"),
        ({**SHAPES, "datatype": "INT64", "data": [2**63, 1, 1, 1]}, "does not fit INT64"),
        ({**SHAPES, "datatype": "BOOL", "data": [2, 1, 1, 1]}, "BOOL are true, false, 0 or 1"),
        ({**SHAPES, "datatype": "FP64", "data": [True, 1, 1, 1]}, "FP64 are numbers in JSON, and True is given"),
        ({**SHAPES, "datatype": "FP32", "data": [1e300, 1, 1, 1]}, "a value does not fit FP32"),
        ({**SHAPES, "data": ["1", 2, 3, 4]}, "numbers"),
        ({**SHAPES, "shape": [4, 1]}, "1 numbers, expected 2"),
        ({**SHAPES, "shape": [2**40, 0], "data": []}, "a dimension is 0"),
        ({**SHAPES, "shape": [0, 2], "data": []}, "a dimension is 0"),
        ({**SHAPES, "shape": [2**62] * 8}, "4 values for a shape of"),
        ({**SHAPES, "shape": [2] + [1] * 8, "data": [1, 2]}, "at most 8 dimensions"),
        ({**SHAPES, "shape": [1001, 1], "data": [1] * 1001}, "send 1 to 1000 instances"),
        ({**TEXT, "shape": [1001], "data": ["a"] * 1001}, "send 1 to 1000 instances"),
        ("x", "an input has"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(models: TestClient, entry: Any, words: str) -> None:
    model = "foods" if isinstance(entry, dict) and entry.get("name") == "text" else "shapes"
    response = infer(models, model, entry)
    assert response.status_code in (400, 422), response.text
    assert words in response.json()["error"]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{", {}),
        (b"{}", {"Inference-Header-Content-Length": "3"}),
        (b"{}", {"Inference-Header-Content-Length": "-1"}),
        (b"{}", {"Content-Encoding": "gzip"}),
        (b"{}", {"Content-Encoding": "br"}),
        (b"[]", {}),
        (b'{"inputs": []}', {}),
        (b'{"inputs": [], "parameters": 1}', {}),
    ],
)
def test_a_body_that_is_no_request_is_refused(models: TestClient, body: bytes, headers: dict[str, str]) -> None:
    response = models.post("/v2/models/foods/infer", content=body, headers=JSON | headers)
    assert response.status_code in (400, 422), response.text


_STORABLE = st.characters(exclude_characters="\0", exclude_categories=["Cs"])


@given(st.lists(st.text(_STORABLE, max_size=20), min_size=1, max_size=9), st.sampled_from(sorted(KINDS)), st.data())
def test_every_tensor_is_read_as_it_was_written(texts: list[str], datatype: str, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=9))
    array = np.array(numbers, KINDS[datatype])
    for tensor in (Tensor("t", "BYTES", (len(texts),), texts), Tensor("t", datatype, (len(array),), array)):
        entry, raw = as_bytes(tensor)
        found, end = read(entry, 0, raw, 0)
        assert end == len(raw)
        assert list(found.values) == list(tensor.values)
        assert list(read(as_json(tensor), 0, b"", 0)[0].values) == list(tensor.values)


@given(st.binary(max_size=40), st.sampled_from(["BYTES", *KINDS]), st.integers(0, 5))
def test_any_bytes_are_read_or_refused(raw: bytes, datatype: str, size: int) -> None:
    entry = {"name": "t", "datatype": datatype, "shape": [size], "parameters": {"binary_data_size": len(raw)}}
    try:
        tensor, _ = read(entry, 0, raw, 0)
    except PolymarginError:
        return
    assert len(tensor.values) == size
