"""Only administrators, and keys with the right to promote, move protected aliases."""

from collections.abc import Callable
from typing import Any

import pytest
from asking import TestClient, bearer, problem
from fastapi import FastAPI
from working import SPARSE, upload

PRODUCTION = "/api/v1/models/letters/aliases/production"
RULE = {
    "name": "nightly",
    "model": "letters",
    "cron": "0 0 29 2 *",
    "promote": {"alias": "production", "dataset": "held", "part": "all"},
}


@pytest.fixture
def editors(
    app: FastAPI, models: TestClient, secrets: dict[str, str], configure: Callable[..., None]
) -> dict[str, TestClient]:
    configure(log_level="error", failed_keys_per_minute=0, protected_aliases="production, stable")
    made = models.post("/api/v1/keys", json={"name": "release", "role": "editor", "promotes": True}).json()
    assert (made["promotes"], made["role"]) == (True, "editor")
    return {
        name: TestClient(app, headers=bearer(secret))
        for name, secret in {"without": secrets["editor"], "with": made["secret"]}.items()
    }


def test_a_protected_alias_is_moved_and_removed_by_those_alone_who_may(
    models: TestClient, editors: dict[str, TestClient]
) -> None:
    refused = problem(editors["without"].put(PRODUCTION, json={"version": 1}), 403, "forbidden")
    assert "'production' is protected" in refused["detail"]
    assert editors["without"].put(PRODUCTION.replace("production", "trial"), json={"version": 1}).status_code == 200
    assert editors["with"].put(PRODUCTION, json={"version": 1}).status_code == 200
    problem(editors["without"].delete(PRODUCTION), 403, "forbidden")
    assert editors["with"].delete(PRODUCTION).status_code == 204
    assert models.put(PRODUCTION, json={"version": 1}).status_code == 200
    assert "Protected: ask an administrator" in editors["without"].get("/models/letters").text
    assert "Protected" not in editors["with"].get("/models/letters").text


def test_a_rule_that_promotes_to_a_protected_alias_is_made_by_those_alone_who_may(
    models: TestClient, editors: dict[str, TestClient]
) -> None:
    upload(models, "held", SPARSE, "svmlight")
    problem(editors["without"].post("/api/v1/rules", json=RULE), 403, "forbidden")
    assert editors["without"].post("/api/v1/rules", json=RULE | {"promote": None}).status_code == 201
    made = editors["with"].post("/api/v1/rules", json=RULE | {"name": "other"})
    assert made.status_code == 201, made.text


def test_a_rule_from_before_the_protection_is_switched_off_but_not_on(
    app: FastAPI, models: TestClient, secrets: dict[str, str], configure: Callable[..., None]
) -> None:
    upload(models, "held", SPARSE, "svmlight")
    editor = TestClient(app, headers=bearer(secrets["editor"]))
    assert editor.post("/api/v1/rules", json=RULE).status_code == 201
    configure(log_level="error", failed_keys_per_minute=0, protected_aliases="production")
    assert editor.patch("/api/v1/rules/nightly", json={"enabled": False}).status_code == 200
    problem(editor.patch("/api/v1/rules/nightly", json={"enabled": True}), 403, "forbidden")


@pytest.mark.parametrize("role", ["viewer", "clerk"])
def test_the_right_needs_an_editors_key(models: TestClient, role: str) -> None:
    body: dict[str, Any] = {"name": "k", "role": role, "promotes": True}
    refused = problem(models.post("/api/v1/keys", json=body), 422, "invalid_input")
    assert f"the key's role is {role}" in str(refused["errors"])


def test_keys_say_who_may(models: TestClient) -> None:
    found = {key["name"]: key["promotes"] for key in models.get("/api/v1/keys").json()["items"]}
    assert found == {"the-viewer": False, "the-clerk": False, "the-editor": False, "the-admin": True}
