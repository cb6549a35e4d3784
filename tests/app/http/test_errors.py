import json
import logging

import pytest
from asking import JSON, MARKER, TestClient, bearer, problem
from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.config import Settings
from app.errors import InvalidInput
from app.http.bodies import JsonBody
from app.jobs.schemas import TrainRequest
from app.main import create_app

JOBS = "/api/v1/jobs"


def test_an_unknown_path_and_a_wrong_method_are_problems(client: TestClient) -> None:
    problem(client.get(f"/api/v1/{MARKER}"), 404, "not_found")
    response = client.delete("/api/v1/solvers")
    problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "GET"
    problem(client.get("/api/v1/datasets/"), 404)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "empty"),
        (b'{"dataset": "a",}', 400, "line 1, column"),
        (b'{"dataset": "\xff"}', 400, "not JSON"),
        (b'{"params": {"C": NaN}}', 400, "not JSON"),
        (b"[" * 200_000, 400, "not JSON"),
        (b'{"params": ' + b"[" * 100 + b"]" * 100 + b"}", 422, "nested deeper"),
        (b"[]", 422, "JSON object"),
        (b"3", 422, "JSON object"),
    ],
)
def test_a_body_that_is_no_json_object_says_so(client: TestClient, body: bytes, status: int, words: str) -> None:
    assert words in problem(client.post(JOBS, content=body, headers=JSON), status)["detail"]


def test_another_content_type_is_refused(client: TestClient) -> None:
    for headers in ({"Content-Type": "text/plain"}, {}):
        problem(client.post(JOBS, content=b"{}", headers=headers), 415, "unsupported_format")


def test_faults_of_a_body_have_pointers_and_no_values(client: TestClient) -> None:
    body = {
        "dataset": f"{MARKER} !",
        "model": 3,
        "solver": "weston_watkins",
        "seed": -1,
        "text": {"min_df": MARKER},
        "kind": MARKER,
    }
    document = problem(client.post(JOBS, json=body), 422, "invalid_input")
    assert {item["pointer"] for item in document["errors"]} == {
        "/dataset",
        "/model",
        "/seed",
        "/text/min_df",
        "/kind",
    }
    assert MARKER not in json.dumps(document)


def test_a_misspelt_field_is_answered_with_the_nearest(client: TestClient) -> None:
    document = problem(client.post(JOBS, json={"solvr": 1, "text": {"min_fd": 1}}), 422)
    assert document["errors"] == [
        {"pointer": "/solvr", "detail": "unknown field; did you mean 'solver'?"},
        {"pointer": "/text/min_fd", "detail": "unknown field; did you mean 'min_df'?"},
    ]


def test_a_misspelt_field_of_an_object_in_a_list_is_answered_with_the_nearest(client: TestClient) -> None:
    space = [{"solver": "softmax", "ranges": {"C": {"low": 1, "high": 2}}}]
    body = {"kind": "tune", "dataset": "a", "model": "b", "space": space, "texts": [{}, {"ngrammax": 2}]}
    document = problem(client.post(JOBS, json=body), 422)
    assert document["errors"] == [
        {"pointer": "/texts/1/ngrammax", "detail": "unknown field; did you mean 'ngram_max'?"}
    ]


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        ("NaN", "NaN is no number in JSON"),
        ("-Infinity", "Infinity is no number in JSON"),
        ("1e400", "the number is too large"),
    ],
)
def test_numbers_that_json_has_not_are_named_as_the_fault(client: TestClient, number: str, fault: str) -> None:
    body = '{"dataset": "a", "model": "b", "params": {"C": ' + number + "}}"
    document = problem(client.post(JOBS, content=body, headers=JSON), 400)
    assert fault in document["detail"]


def test_a_version_without_its_model_is_told_how_it_is_written(client: TestClient) -> None:
    body = {"dataset": "a", "model": "b", "solver": "weston_watkins", "warm_start": "topics"}
    document = problem(client.post(JOBS, json=body), 422)
    assert document["errors"] == [
        {"pointer": "/warm_start", "detail": "a version is MODEL@NUMBER or MODEL@ALIAS, as topics@3"}
    ]


def test_what_two_values_break_together_is_told_in_its_own_words(client: TestClient) -> None:
    document = problem(client.post(JOBS, json={"dataset": "a", "model": "b", "text": {"char_ngrams": [5, 3]}}), 422)
    assert document["errors"] == [
        {"pointer": "/text/char_ngrams", "detail": "the first length must not exceed the second"}
    ]


def test_a_million_unknown_fields_make_twenty_faults_without_their_names(client: TestClient) -> None:
    body = json.dumps({f"{MARKER}-{number}-{'x' * 90}": 0 for number in range(60_000)})
    response = client.post(JOBS, content=body, headers=JSON)
    assert len(problem(response, 422)["errors"]) == 20
    assert MARKER not in response.text
    assert len(response.content) < 10_000


@pytest.mark.parametrize("name", ["a%0A", "-a", "a%20b", "%C3%A9", "a" * 129, "a%2Fb".replace("%2F", "%5C")])
@pytest.mark.parametrize("path", ["/datasets/{}", "/models/{}", "/jobs/{}", "/models/{}/versions", "/solvers/{}"])
def test_names_outside_the_pattern_are_refused_in_paths(client: TestClient, path: str, name: str) -> None:
    document = problem(client.get("/api/v1" + path.format(name)), 422)
    assert "letters, digits" in document["errors"][0]["detail"]


@pytest.mark.parametrize("name", ["a\n", "", "../a", "a b", "a" * 129])
def test_names_outside_the_pattern_are_refused_in_bodies_and_queries(client: TestClient, name: str) -> None:
    answers = [
        client.post(JOBS, json={"dataset": "a", "model": name, "solver": "weston_watkins"}),
        client.post("/api/v1/keys", json={"name": name}),
        client.post("/api/v1/datasets", params={"name": name, "format": "csv"}, content=b"x"),
        client.post("/api/v1/models/a/predict", params={"alias": name}, json={"instances": [{"text": "a"}]}),
    ]
    for answer in answers:
        assert "letters, digits" in problem(answer, 422)["errors"][0]["detail"]


@pytest.mark.parametrize(
    "query",
    ["page_size=0", "page_size=1001", f"page_size={MARKER}", f"page_token={MARKER}", f"page_token={'x' * 200}"],
)
def test_pages_that_cannot_be_are_refused(client: TestClient, query: str) -> None:
    for path in ("datasets", "jobs", "models", "keys"):
        response = client.get(f"/api/v1/{path}?{query}")
        problem(response, 422)
        assert MARKER not in response.text


def test_numbers_beyond_any_integer_are_refused(client: TestClient) -> None:
    huge = 10**30
    for path in (f"models/a/versions/{huge}", f"jobs/a/steps?after={huge}", f"datasets/a/rows?offset={huge}"):
        problem(client.get(f"/api/v1/{path}"), 422)
    problem(client.put("/api/v1/models/a/aliases/b", json={"version": huge}), 422)
    problem(client.post(f"/api/v1/models/a/predict?version={huge}", json={"instances": [[1.0]]}), 422)


def test_what_nobody_foresaw_is_a_problem_without_details(
    app: FastAPI, secrets: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    @app.get("/crash")
    def crash() -> None:
        raise RuntimeError(MARKER)

    with TestClient(app, headers=bearer(secrets["admin"])) as client:
        response = client.get("/crash")
    document = problem(response, 500, "internal")
    assert MARKER not in response.text
    line = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert line["request_id"] == document["request_id"]
    assert MARKER in line["exception"]


def test_a_sane_request_id_is_kept_and_another_is_replaced(client: TestClient) -> None:
    assert client.get("/healthz", headers={"X-Request-ID": "job-7.a:b"}).headers["x-request-id"] == "job-7.a:b"
    for name in ("a b", "x" * 65, "<script>"):
        answer = client.get("/healthz", headers={"X-Request-ID": name})
        assert answer.headers["x-request-id"] != name
        assert len(answer.headers["x-request-id"]) == 32


def test_the_log_has_one_line_for_a_request(
    client: TestClient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from app import logs

    logs.configure(logging.getLevelName(logging.INFO).lower())
    capsys.readouterr()
    response = client.get("/api/v1/solvers")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["status"], line["path"]) for line in lines] == [("request", 200, "/api/v1/solvers")]
    assert lines[0]["request_id"] == response.headers["x-request-id"]


def test_a_zero_byte_in_the_query_is_refused(client: TestClient) -> None:
    problem(client.get("/api/v1/hierarchies/t/nodes?parent=%00"), 422, "invalid_input")


def test_a_method_that_a_path_does_not_take_is_answered_with_all_that_it_takes(client: TestClient) -> None:
    for path, methods in (
        ("/api/v1/datasets", "GET, POST"),
        ("/api/v1/datasets/d", "DELETE, GET"),
        ("/api/v1/models/m/aliases/a", "DELETE, PUT"),
    ):
        answer = client.patch(path)
        assert answer.status_code == 405
        assert answer.headers["allow"] == methods


def test_the_log_says_which_key_acted(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    from app import logs

    logs.configure("info")
    client.get("/api/v1/datasets")
    line = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert line["key"] == "the-admin"
    assert len(line["key_id"]) == 32


def test_a_whole_number_with_a_point_is_an_integer_as_in_json_schema() -> None:
    body = JsonBody(TrainRequest)
    content = b'{"dataset": "d", "model": "m", "solver": "softmax", "shards": %s, "params": {"C": 1.5, "tol": 1e-3}}'
    request = body.parse(content % b"2.0")
    assert (request.shards, type(request.shards), request.params) == (2, int, {"C": 1.5, "tol": 1e-3})
    for wrong in (b"2.5", b"1e300", b'"2"', b"true"):
        with pytest.raises(InvalidInput):
            body.parse(content % wrong)


@pytest.mark.parametrize(
    ("path", "name", "detail"),
    [
        ("/api/v1/datasets?page_sise=5", "page_sise", "unknown field; did you mean 'page_size'?"),
        ("/api/v1/jobs?tagg=x&kind=train", "tagg", "unknown field; did you mean 'tag'?"),
        ("/api/v1/jobs?q=x", "q", "unknown field; known are page_size, page_token, state, tag, kind"),
        ("/api/v1/status?page_size=5", "page_size", "unknown field; there are none here"),
        ("/api/v1/figures/job?jb=x", "jb", "unknown field; did you mean 'job'?"),
    ],
)
def test_a_query_that_a_route_does_not_have_is_answered_with_the_nearest(
    client: TestClient, path: str, name: str, detail: str
) -> None:
    assert problem(client.get(path), 422)["errors"] == [{"pointer": f"/query/{name}", "detail": detail}]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("encoding=utf-7", "The parameter encoding is not valid."),
        ("encoding=utf-7&decimal=dot", "The parameters encoding, decimal are not valid."),
        ("a=1&b=1&c=1&d=1", "The parameters a, b, c, ... are not valid."),
    ],
)
def test_an_error_begins_with_the_names_of_the_parameters(client: TestClient, query: str, said: str) -> None:
    assert problem(client.post(f"/api/v1/datasets?name=x&{query}", content=b"a"), 422)["detail"] == said


def test_every_route_of_the_api_refuses_an_unknown_query_and_no_other_route_does(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for method, said in methods.items():
            asked = path.replace("{", "").replace("}", "")
            answer = client.request(method, f"{asked}?limt_=5", content=b"")
            refused = answer.status_code == 422 and "/query/limt_" in answer.text
            assert refused == path.startswith("/api/v1/"), (method, path, answer.text)
            assert not refused or "422" in said["responses"], (method, path)
    for path in ("/docs?x=1", "/healthz?x=1", "/metrics?x=1", "/v1/projects?x=1", "/v2?x=1"):
        assert client.get(path).status_code < 400, path


def test_applications_of_one_process_check_a_query_once(app: FastAPI, config: Settings) -> None:
    def checks(app: FastAPI) -> list[int]:
        return [len(route.dependant.dependencies) for route in app.routes if isinstance(route, APIRoute)]

    first = checks(app)
    assert sum(first) > 100
    assert checks(create_app(config)) == first


def test_an_unknown_query_is_told_to_nobody_without_a_key(client: TestClient) -> None:
    problem(client.get("/api/v1/jobs?q=x", headers={"Authorization": "Bearer no"}), 401)


def test_a_list_that_is_too_short_is_told_what_it_lacks(client: TestClient) -> None:
    body = {"dataset": "d", "model": "m", "text": {"char_ngrams": [3]}}
    assert problem(client.post(JOBS, json=body), 422)["errors"] == [
        {"pointer": "/text/char_ngrams/1", "detail": "2 values or more were expected"}
    ]
