"""Which columns of a table a version reads."""

from typing import Any

import pytest
from asking import TestClient, problem
from working import run, train, upload


def test_a_version_names_the_columns_that_it_reads(models: TestClient) -> None:
    found = {name: models.get(f"/api/v1/models/{name}/inputs").json() for name in ("letters", "foods", "shapes")}
    assert [each["instance"] for each in found.values()] == ["numbers", "text", "features"]
    assert found["foods"]["text_columns"] == ["text"]
    assert found["shapes"]["number_columns"] == ["width", "height"]
    problem(models.get("/api/v1/models/none/inputs"), 404)


_LABELS = ("red", "green")
_CASES: list[tuple[str, str, dict[str, Any], str]] = [
    ("texts", "id,title,label\n", {"text_columns": "title", "id_column": "id"}, "{n},{label} thing,{label}\n"),
    ("numbers", "w,h,label\n", {}, "{n},{m},{label}\n"),
    (
        "table",
        "title,town,size,label\n",
        {"text_columns": "title", "number_columns": "size", "category_columns": "town", "missing": "keep"},
        "{label} thing,town{n},{m},{label}\n",
    ),
]


@pytest.mark.parametrize(("name", "header", "options", "row"), _CASES, ids=[case[0] for case in _CASES])
def test_a_version_keeps_the_columns_that_it_reads_when_its_dataset_is_deleted(
    client: TestClient, name: str, header: str, options: dict[str, Any], row: str
) -> None:
    rows = [row.format(n=n % 2 * 3, m=7 - n % 2 * 5, label=_LABELS[n % 2]) for n in range(24)]
    for dataset in ("rows", "others"):
        assert upload(client, dataset, (header + "".join(rows)).encode(), "csv", **options)["state"] == "ready"
    assert train(client, "rows", "m")["state"] == "succeeded"
    reads = client.get("/api/v1/models/m/inputs").json()
    before = _read_for(client, name, header, rows)
    assert client.delete("/api/v1/datasets/rows", params={"force": "true"}).status_code == 204
    assert _read_for(client, f"{name}-again", header, rows) == before
    assert client.get("/api/v1/models/m/inputs", params={"version": 1}).json() == reads
    # a copy that is made afterwards reads the same
    copy = {"kind": "compress", "model": "m", "float16": True, "dataset": "others"}
    run(client.post("/api/v1/jobs", json=copy).json()["id"])
    assert client.get("/api/v1/models/m/inputs", params={"version": 2}).json() == reads | {"version": 2}


def _read_for(client: TestClient, name: str, header: str, rows: list[str]) -> Any:
    """How the rows are read for the model."""
    found = upload(client, name, (header + "".join(rows)).encode(), "csv", for_model="m")
    assert found["state"] == "ready", found["error"]
    request = client.get(f"/api/v1/jobs/{found['job']}").json()["request"]
    return {option: value for option, value in request.items() if "sha256" not in option}


def test_quotes_are_read_as_those_of_the_training_data_were(client: TestClient) -> None:
    lines = "".join(f'{_LABELS[n % 2]},"{n} of\n' for n in range(24))
    made = upload(client, "rows", f"label,text\n{lines}".encode(), "csv", quotes=False)
    assert made["state"] == "ready", made["error"]
    assert train(client, "rows", "m")["state"] == "succeeded"
    assert upload(client, "same", b'text\n"some of\n', "csv", for_model="m")["state"] == "ready"
    assert upload(client, "lines", b'{"text": "\\"some of"}\n', "jsonl", for_model="m")["state"] == "ready"
    quoted = upload(client, "quoted", b'text\n"some of\n', "csv", for_model="m", quotes=True)
    assert "quote is never closed" in str(quoted["error"])


def test_rows_are_read_with_the_decimals_delimiter_and_missing_values_of_the_training_data(client: TestClient) -> None:
    lines = [f"{n % 2 * 3},5;{7 - n % 2 * 5},25;{_LABELS[n % 2]}\n" for n in range(24)]
    written: dict[str, Any] = {"decimal": "comma", "delimiter": "semicolon", "missing": "keep", "missing_values": "NA"}
    assert upload(client, "rows", ("w;h;label\n" + "".join(lines)).encode(), "csv", **written)["state"] == "ready"
    assert train(client, "rows", "m")["state"] == "succeeded"
    assert client.delete("/api/v1/datasets/rows", params={"force": "true"}).status_code == 204

    def request(name: str, content: str, format: str | None = "csv", **options: Any) -> dict[str, Any]:
        found = upload(client, name, content.encode(), format, for_model="m", **options)
        assert found["state"] == "ready", found["error"]
        asked: dict[str, Any] = client.get(f"/api/v1/jobs/{found['job']}").json()["request"]
        return {each: asked.get(each) for each in ("decimal", "delimiter", "missing_values")}

    same = {"decimal": "comma", "delimiter": "semicolon", "missing_values": ["NA"]}
    # a header with more commas than semicolons
    assert request("same", "w;h;a,b,c,d\n3,5;NA;x\n") == same
    assert request("other", "w,h\n3.5,NA\n", decimal="point") == same | {"decimal": "point", "delimiter": None}
    assert request("excel", 'sep=,\nw,h\n"3,5",NA\n') == same | {"delimiter": None}
    assert request("tabs", "w\th\n3,5\tNA\n", "tsv") == same | {"delimiter": None}
    assert request("lines", '{"w": 3.5, "h": null}\n', "jsonl") == same | {"decimal": "point", "delimiter": None}
    refused = upload(client, "points", b"w;h\n1.500;2\n", "csv", for_model="m")
    assert refused["state"] == "failed"
    assert "1.500" in str(refused["error"])
