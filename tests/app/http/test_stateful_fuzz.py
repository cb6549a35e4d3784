"""Every check of schemathesis: what operations take and refuse, and chains in which one uses what another made."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from asking import TestClient, bearer
from fastapi import FastAPI
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.python.asgi import shutdown_lifespans
from sqlalchemy.orm import Session, sessionmaker
from working import SPARSE, TABLE, TEXTS, trained

from app.access import keys
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.plain_file import plain_file
from app.hierarchies import service as hierarchies
from app.hierarchies.schemas import HierarchyOptions
from app.main import create_app

# Streams have no end; without a queue and workers the service is rightly not ready.
LEFT_OUT = "(/events|/readyz)$"
ROLES: tuple[Any, ...] = ("viewer", "editor", "admin")
# What a description can't say of a body: whether its Idempotency-Key is new, it is what its format says, a time will
# come, and what goes with what. Of a page token: whether a page gave it.
WITH_BODIES = "^(POST|PUT|PATCH) "
# Paths that match a parameter of another path: the methods of the other are allowed there, rightly.
SHADOWED = "(/datasets/example|/datasets/columns|/jobs/plan|/models/import|/feedback/rows|:predict)$"
# jobs of most kinds have none
NOT_OF_ALL = "/jobs/.id./predictions$"
ANSWERS = ["2xx", "3xx", "401", "403", "404", "409", "412", "413", "429", "507"]


def read_here(
    path: Path, format: str, options: HierarchyOptions, bounds: Bounds, _check: Callable[[], None]
) -> Vocabulary:
    """A label tree, read as the process does that the service starts for it: a hundred of them take a minute."""
    with plain_file(path) as plain:
        return parse_hierarchy(plain, format, options, bounds)


@pytest.fixture
def lived_in(
    database: sessionmaker[Session], configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[FastAPI, dict[str, str]]]:
    """A service with three models, and a key of each role."""
    monkeypatch.setattr(hierarchies, "read_hierarchy", read_here)
    configure(log_level="critical", failed_keys_per_minute=0, requests_per_second=0)
    with database() as session:
        secrets = {role: keys.create(session, f"the-{role}", role).secret for role in ROLES}
    app = create_app()
    with TestClient(app, headers=bearer(secrets["admin"])) as client:
        trained(client, "letters", SPARSE, "svmlight")
        trained(client, "foods", TEXTS, "jsonl")
        trained(client, "shapes", TABLE, "csv")
    yield app, secrets
    # started again for schemathesis, which keeps it to the end of the process
    shutdown_lifespans()
    app.state.sessions.kw["bind"].dispose()


def _paged(app: FastAPI) -> str:
    """A pattern of the names of operations that take page tokens."""
    return "|".join(
        f"^{method.upper()} {re.escape(path)}$"
        for path, methods in app.openapi()["paths"].items()
        for method, route in methods.items()
        if any(parameter["name"] == "page_token" for parameter in route.get("parameters", []))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "database"), [("viewer", "sqlite"), ("editor", "postgresql"), ("admin", "sqlite")], indirect=["database"]
)
def test_requests_and_chains_of_them_keep_to_the_description_whoever_asks(
    lived_in: tuple[FastAPI, dict[str, str]], role: str
) -> None:
    app, secrets = lived_in
    config = SchemathesisConfig.from_dict(
        {
            "headers": bearer(secrets[role]),
            "base-url": "http://127.0.0.1",
            "seed": 1,
            "workers": 1,
            "continue-on-failure": True,
            # zero bytes are refused everywhere, which no description can say
            "generation": {
                "deterministic": True,
                "database": "none",
                "no-shrink": True,
                "max-examples": 4,
                "allow-x00": False,
            },
            "phases": {
                # each value of each parameter in turn: thousands of requests
                "coverage": {"enabled": role == "admin"},
                "stateful": {"max-steps": 20, "generation": {"max-examples": 15}},
            },
            "checks": {"positive_data_acceptance": {"expected-statuses": ANSWERS}},
            "operations": [
                {
                    "include-name-regex": f"{WITH_BODIES}|{_paged(app)}",
                    "checks": {"positive_data_acceptance": {"expected-statuses": [*ANSWERS, "422"]}},
                },
                {
                    "include-path-regex": NOT_OF_ALL,
                    "checks": {"ensure_resource_availability": {"enabled": False}},
                },
                {
                    "include-path-regex": SHADOWED,
                    "checks": {
                        "allow_header_conformance": {"enabled": False},
                        "unsupported_method": {"enabled": False},
                    },
                },
            ],
        }
    )
    description = schemathesis.openapi.from_dict(app.openapi(), config=config).exclude(path_regex=LEFT_OUT)
    description.app = app
    asked: Counter[str] = Counter()
    failures: dict[str, str] = {}
    for event in from_schema(description).execute():
        assert not isinstance(event, events.NonFatalError | events.FatalError), event
        if isinstance(event, events.ScenarioFinished):
            asked[event.phase.name] += len(event.recorder.interactions)
            for id, checks in event.recorder.checks.items():
                label = event.recorder.cases[id].value.operation.label
                for check in checks:
                    if check.failure_info is not None:
                        answer = event.recorder.interactions[id].response
                        reported = f"{check.failure_info.failure} {check.failure_info.code_sample:.2000}"
                        failures.setdefault(f"{label}: {check.name}", f"{reported}: {answer and answer.text}")
    assert not failures, "\n".join(f"{what}: {failure}" for what, failure in failures.items())
    assert asked["FUZZING"] > 300
    assert asked["STATEFUL_TESTING"] > 100
