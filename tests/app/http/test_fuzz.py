import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from asking import JSON, MARKER, TestClient
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from working import SPARSE

LONG = 12 * MARKER
DESCRIPTION = schemathesis.openapi.from_path(str(Path(__file__).parents[3] / "docs" / "openapi.json"))
OPERATIONS = {
    operation.ok().label: operation.ok()
    for operation in DESCRIPTION.get_all_operations()
    if not operation.ok().path.endswith("/events")
}
MODES = {"good": GenerationMode.POSITIVE, "bad": GenerationMode.NEGATIVE}
# A request that takes nothing, no key either, cannot be wrong, and one that reads takes little.
TAKING_NOTHING = {"POST /api/v1/sign-in/device"}
# One example of each is quick; the many of the slow tests begin with the same one.
CASES = [
    pytest.param(label, mode, n_examples, marks=pytest.mark.slow if n_examples > 1 else ())
    for label in OPERATIONS
    for mode in MODES
    if mode == "good" or ("/api/" in label and label not in TAKING_NOTHING)
    for n_examples in (1, 8)
    if n_examples > 1 or not (mode == "good" or label.startswith("GET "))
]
few_and_many = pytest.mark.parametrize("n_examples", [1, pytest.param(8, marks=pytest.mark.slow)])


def examples(most: int) -> settings:
    return settings(
        max_examples=most,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.parametrize(("label", "mode", "n_examples"), CASES)
def test_no_request_makes_the_service_fail(models: TestClient, label: str, mode: str, n_examples: int) -> None:
    @examples(n_examples)
    @given(case=OPERATIONS[label].as_strategy(generation_mode=MODES[mode]))
    def ask(case: Case) -> None:
        request = case.as_transport_kwargs(base_url="http://127.0.0.1")
        request["headers"] = {name: value for name, value in request["headers"].items() if name != "Authorization"}
        request.pop("cookies")
        if isinstance(request.get("data"), bytes | str):
            request["content"] = request.pop("data")
        if request.get("files"):
            request["files"] = [(name, str(file).encode()) for name, file in request["files"]]
        try:
            sent = models.build_request(**request)
        except httpx.InvalidURL:
            # longer than this client can send
            reject()
        sent.read()
        response = models.send(sent)
        # Without a queue and workers the service is rightly not ready.
        assert response.status_code < 500 or label == "GET /readyz"
        assert response.status_code < 400 or response.headers["content-type"] == "application/problem+json"
        case.validate_response(response, checks=[response_schema_conformance, status_code_conformance])

    ask()


NESTED = st.recursive(
    st.just(LONG) | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([LONG, "text", "features", "indices", "values", "C", "min_df", "instances", "version"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
FIELDS = {
    "POST /api/v1/jobs": ["dataset", "model", "solver", "params", "text", "seed", "kind", "unseen_labels", LONG],
    "POST /api/v1/keys": ["name", "role", LONG],
    "PUT /api/v1/models/letters/aliases/a": ["version", LONG],
    "POST /api/v1/models/letters/predict": ["instances", "top_k", LONG],
    "POST /api/v1/models/foods/predict": ["instances", "top_k", LONG],
    "POST /api/v1/models/shapes/predict": ["instances", "top_k", LONG],
}


@few_and_many
@pytest.mark.parametrize("label", FIELDS)
def test_no_error_repeats_what_was_sent(models: TestClient, label: str, n_examples: int) -> None:
    method, path = label.split()

    @examples(n_examples)
    @given(body=st.dictionaries(st.sampled_from(FIELDS[label]), NESTED, max_size=4), cut=st.integers(0, 3))
    def ask(body: dict[str, Any], cut: int) -> None:
        content = json.dumps(body)
        response = models.request(method, path, content=content[: len(content) - cut // 3], headers=JSON)
        assert response.status_code < 500
        if response.status_code >= 400:
            assert LONG not in response.text
            assert len(response.content) < 10_000

    ask()


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/datasets?name={}&format=csv",
        "/api/v1/datasets?name=a&format={}",
        "/api/v1/hierarchies?name=a&format={}",
        "/api/v1/models/{}/predict",
    ],
)
def test_no_error_repeats_a_path_or_a_query(models: TestClient, path: str) -> None:
    response = models.post(path.format(f"{LONG}!"), content=SPARSE)
    assert response.status_code == 422
    assert LONG not in response.text
