"""No route takes text that a database cannot store: each is asked, in each place that a request has for text."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from asking import JSON, TestClient, problem

from app.json_text import faults, repaired

BAD = ["a\0b", "\ud800", "b\udfffc"]
_JSON = "application/json"


def _operations(client: TestClient) -> Iterator[tuple[str, str, dict[str, Any]]]:
    description: dict[str, Any] = client.app.openapi()  # type: ignore[attr-defined]
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _url(path: str, text: str = "letters") -> str:
    return re.sub(r"\{[^}]*\}", text, re.sub(r"\{(number|version)\}", "1", path))


def _properties(client: TestClient, operation: dict[str, Any]) -> list[str]:
    """Names of the fields of the operation's JSON body."""
    description: dict[str, Any] = client.app.openapi()  # type: ignore[attr-defined]
    schema = operation.get("requestBody", {}).get("content", {}).get(_JSON, {}).get("schema", {})
    found: list[str] = []
    for each in schema.get("anyOf", [schema]):
        name = each.get("$ref", "").rpartition("/")[2]
        found += description["components"]["schemas"].get(name, each).get("properties", {})
    return found


def test_no_body_of_any_route_has_unstorable_text(models: TestClient) -> None:
    client = models
    forms = itertools.cycle((lambda bad: bad, lambda bad: [[{"x": bad}]], lambda bad: {"x~/": [bad]}))
    places, bads = itertools.cycle(("", "/0/0/x", "/x~0~1/0")), itertools.cycle(BAD[:2])
    n_asked = 0
    for method, path, operation in _operations(client):
        for name, form, place, bad in zip(_properties(client, operation), forms, places, bads, strict=False):
            answer = client.request(method, _url(path), headers=JSON, content=json.dumps({name: form(bad)}))
            document = problem(answer, 422)
            assert document["errors"] == [{"detail": _reason(bad), "pointer": f"/{name}{place}"}], (method, path)
            n_asked += 1
    assert n_asked > 100


def test_no_name_of_a_field_is_unstorable(client: TestClient) -> None:
    answer = client.post("/api/v1/jobs", headers=JSON, content=json.dumps({"tags": {BAD[0]: "x", BAD[1]: "y"}}))
    errors = problem(answer, 422)["errors"]
    assert {each["pointer"] for each in errors} == {"/tags/a\ufffdb", "/tags/\ufffd"}


def test_escapes_of_other_characters_are_taken(client: TestClient) -> None:
    body = r'{"name": "n", "role": "viewer", "note": "\\u0000 \ud83d\ude00"}'
    errors = problem(client.post("/api/v1/keys", headers=JSON, content=body), 422)["errors"]
    assert [each["pointer"] for each in errors] == ["/note"]
    assert "unknown field" in errors[0]["detail"]


@pytest.mark.parametrize("bad", ["a%00b", "%ED%A0%80", "%FF"])
def test_no_query_and_no_path_of_any_route_has_unstorable_text(client: TestClient, bad: str) -> None:
    for method, path, operation in _operations(client):
        given = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
        for name in (given or ["other"])[:2]:
            document = problem(client.request(method, f"{_url(path)}?{name}={bad}", headers=JSON), 422)
            assert [each["pointer"] for each in document["errors"]] == [f"/query/{name}"]
        if "{" in path and "%00" in bad:
            document = problem(client.request(method, _url(path, bad), headers=JSON), 422)
            assert [each["pointer"] for each in document["errors"]] == ["/path"]


def test_no_header_and_no_name_of_a_part_has_a_zero(client: TestClient) -> None:
    document = problem(client.get("/api/v1/jobs", headers=[(b"X-Note", b"a\0b")]), 422)
    assert [each["pointer"] for each in document["errors"]] == ["/header/x-note"]
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a\0.csv"\r\n\r\na 1:1\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = client.post("/api/v1/datasets?name=d&format=svmlight", headers=headers, content=form)
    assert answer.status_code in (400, 422)
    assert client.get("/api/v1/datasets").json()["items"] == []


def _reason(bad: str) -> str:
    return next(reason for _, reason in faults([bad]))


def test_what_is_repaired_can_be_stored() -> None:
    value = {"a\0": ["\ud800", {"b": "c\udc00\0"}, 1, None, True], "d": "\U0001f600"}
    assert list(faults(repaired(value))) == []
    assert repaired(value)["d"] == "\U0001f600"
    assert repaired(value)["a\ufffd"][0] == "\ufffd"
