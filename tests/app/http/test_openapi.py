import json
from pathlib import Path

import orjson
from fastapi import FastAPI

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.json"

OPEN = {"/healthz", "/readyz", "/metrics", "/v2/health/live", "/v2/health/ready", "/ping"}
# a program signs in by these, without a key
SIGNING_IN = {("post", "/api/v1/sign-in/device"), ("post", "/api/v1/sign-in/token")}


def test_the_written_description_is_that_of_the_code(app: FastAPI) -> None:
    # compared first, as pytest would explain the difference of two documents over pages
    current = json.loads(DOCUMENT.read_bytes()) == app.openapi()
    assert current, (
        "run .venv/bin/python -m app.main > docs/openapi.json, and then .venv/bin/python -m docs_site.generate"
    )


def test_every_route_is_described_with_its_errors_and_its_key(app: FastAPI) -> None:
    described = app.openapi()
    names = set()
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            names.add(route["operationId"])
            assert route["description"], path
            assert route["tags"], path
            assert "application/problem+json" in route["responses"]["500"]["content"]
            assert all(status[0] != "4" or "problem" in str(body) for status, body in route["responses"].items())
            assert ("security" in route) == (path not in OPEN and (method, path) not in SIGNING_IN), (method, path)
    assert len(names) == sum(len(methods) for methods in described["paths"].values())


def test_every_reference_leads_somewhere(app: FastAPI) -> None:
    described = app.openapi()
    schemas = described["components"]["schemas"]
    text = orjson.dumps(described).decode()
    references = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert references <= schemas.keys()
    assert {"TrainRequest", "KeyRequest", "AliasTarget", "PredictRequest", "ProblemDocument"} <= references
