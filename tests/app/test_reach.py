"""Every route and every field of a request is within reach of the Python client and of the command line."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from canned import Canned
from pydantic import BaseModel

from app.access.schemas import KeyRequest, TokenRequest
from app.client import Client
from app.command_line.request_fields import flat_fields
from app.curation.schemas import SuggestRowsRequest, WrongLabelsRequest
from app.datasets.schemas import CorrectionsRequest, ImportOptions, NewRows, TableSample
from app.evaluations.schemas import ComparisonRequest, EvaluateRequest
from app.hierarchies.schemas import HierarchyOptions
from app.jobs.plan_schemas import PreviewRequest
from app.jobs.request_schemas import AdoptRequest, CompressRequest, TuneRequest
from app.jobs.schemas import JobPatch, TrainRequest
from app.models.schemas import AliasTarget, ModelAbout, RetentionRule, VersionPatch
from app.predictions.inspection_schemas import NearestRequest
from app.predictions.schemas import BatchPredictRequest, PredictRequest
from app.remote import credentials
from app.remote.credentials import Credential
from app.remote.errors import ClientError
from app.reviews.schemas import ClaimRequest, DecidedRowsRequest, DecisionRequest, ReleaseRequest, ReviewRequest
from app.rules.schemas import FeedbackRequest, FeedbackRowsRequest, RulePatch, RuleRequest
from app.webhooks.schemas import WebhookRequest
from docs_site import commands

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())
ROUTES = {
    f"{method.upper()} {path.removeprefix('/api/v1')}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if path.startswith("/api/v1/") or path in ("/healthz", "/readyz")  # the others speak to other programs
}
FILE = __file__
JOB = {
    "id": "j", "kind": "train", "state": "queued", "dataset": None, "request": {"measure": "accuracy", "texts": None},
    "attempt": 0, "worker": None,
    "progress": None, "result": None, "error": None, "created_at": "2025-01-02T03:04:05Z", "started_at": None,
    "finished_at": None,
}  # fmt: skip
CODE = {"device_code": "x", "user_code": "A", "verification_uri": "http://127.0.0.1", "expires_in": 60}
TRAIN = {"kind": "train", "dataset": "d", "model": "m"}

Call = Callable[[Client], Any]
# How each route is reached. A new one belongs here, with its way in both.
REACH: dict[str, tuple[Call, list[str]]] = {
    "GET /datasets": (lambda c: c.datasets.list(), ["datasets", "list"]),
    "POST /datasets": (lambda c: c.datasets.upload(FILE, "d", "csv"), ["datasets", "upload", FILE, "--format", "csv"]),
    "POST /datasets/example": (lambda c: c.datasets.example(), ["datasets", "example"]),
    "POST /datasets/columns": (lambda c: c.datasets.propose_columns(FILE, "csv"), ["datasets", "columns", FILE]),
    "POST /uploads": (lambda c: c.uploads.begin(1), []),
    "GET /uploads/{id}": (lambda c: c.uploads.get("x"), ["uploads", "show", "x"]),
    "PATCH /uploads/{id}": (lambda c: c.uploads.send("x", 0, b"a"), []),
    "DELETE /uploads/{id}": (lambda c: c.uploads.discard("x"), ["uploads", "discard", "x"]),
    "GET /datasets/{ref}": (lambda c: c.datasets.get("x"), ["datasets", "show", "x"]),
    "GET /datasets/{ref}/errors": (lambda c: c.datasets.error_report("x"), ["datasets", "errors", "x"]),
    "GET /datasets/{ref}/rows": (lambda c: c.datasets.rows("x"), ["datasets", "rows", "x"]),
    "GET /datasets/{ref}/statistics": (lambda c: c.datasets.statistics("x"), []),
    "GET /datasets/{ref}/versions": (lambda c: c.datasets.versions("x"), ["datasets", "versions", "x"]),
    "POST /datasets/{ref}/rows": (lambda c: c.datasets.append("x", FILE), ["datasets", "append", "x", FILE]),
    "POST /datasets/{ref}/corrections": (
        lambda c: c.datasets.correct("x", {1: "a"}),
        ["datasets", "correct", "x", "1", "a"],
    ),
    "DELETE /datasets/{ref}": (lambda c: c.datasets.delete("x"), ["datasets", "delete", "x"]),
    "GET /hierarchies": (lambda c: c.hierarchies.list(), ["hierarchies", "list"]),
    "POST /hierarchies": (
        lambda c: c.hierarchies.upload(FILE, "d", "csv"),
        ["hierarchies", "upload", FILE, "--format", "csv"],
    ),
    "GET /hierarchies/{ref}": (lambda c: c.hierarchies.get("x"), ["hierarchies", "show", "x"]),
    "GET /hierarchies/{ref}/nodes": (
        lambda c: c.hierarchies.nodes("x"),
        ["hierarchies", "show", "x", "--parent", "root"],
    ),
    "GET /hierarchies/{ref}/changes": (
        lambda c: c.hierarchies.changes("x", "y"),
        ["hierarchies", "changes", "x", "--since", "y"],
    ),
    "GET /hierarchies/{ref}/retired": (lambda c: c.hierarchies.retired("x"), ["hierarchies", "retired", "x"]),
    "DELETE /hierarchies/{ref}": (lambda c: c.hierarchies.delete("x"), ["hierarchies", "delete", "x"]),
    "GET /solvers": (lambda c: c.solvers(), ["solvers"]),
    "GET /solvers/{name}": (lambda c: c.solver("x"), []),
    "GET /jobs": (lambda c: c.jobs.list(), ["jobs", "list"]),
    "POST /jobs": (lambda c: c.train("d", "m"), ["train", "d", "--model", "m"]),
    "POST /jobs/plan": (lambda c: c.jobs.plan(TRAIN), ["train", "d", "--model", "m", "--plan"]),
    "GET /jobs/{id}": (lambda c: c.jobs.get("x"), ["jobs", "show", "x"]),
    "PATCH /jobs/{id}": (
        lambda c: c.jobs.get("j").change(priority="high"),
        ["jobs", "change", "j", "--priority", "high", "--tag", "a=b"],
    ),
    "GET /jobs/{id}/trials": (lambda c: c.jobs.get("j").trials(), ["jobs", "trials", "j"]),
    "GET /jobs/{id}/log": (lambda c: c.jobs.get("j").log(), ["jobs", "log", "j"]),
    "POST /jobs/{id}/cancel": (lambda c: c.jobs.get("j").cancel(), ["jobs", "cancel", "j"]),
    "POST /jobs/{id}/retry": (lambda c: c.jobs.get("j").retry(), ["jobs", "retry", "j"]),
    "GET /jobs/{id}/predictions": (lambda c: c.jobs.get("j").save_predictions("p.csv"), []),
    "GET /jobs/{id}/suggested-rows": (lambda c: c.jobs.get("j").suggested_rows(), []),
    "GET /jobs/{id}/wrong-labels": (lambda c: c.jobs.get("j").wrong_labels(), []),
    "GET /jobs/{id}/steps": (lambda c: c.jobs.get("j").steps(), ["jobs", "steps", "j"]),
    "GET /jobs/{id}/events": (lambda c: list(c.jobs.get("j").events()), ["jobs", "watch", "j"]),
    "GET /rules": (lambda c: c.rules.list(), ["rules", "list"]),
    "POST /rules": (
        lambda c: c.rules.create("r", "m", cron="0 2 * * *"),
        ["rules", "create", "r", "--model", "m", "--cron", "0 2 * * *", "--promote-alias", "production"],
    ),
    "GET /rules/{ref}": (lambda c: c.rules.get("r"), ["rules", "show", "r"]),
    "PATCH /rules/{ref}": (lambda c: c.rules.enable("r", False), ["rules", "disable", "r"]),
    "DELETE /rules/{ref}": (lambda c: c.rules.delete("r"), ["rules", "delete", "r"]),
    "GET /rules/{ref}/runs": (lambda c: c.rules.runs("r"), ["rules", "runs", "r"]),
    "POST /rules/{ref}/runs": (lambda c: c.rules.start("r"), ["rules", "start", "r"]),
    "GET /models": (lambda c: c.models.list(), ["models", "list"]),
    "GET /models/{ref}": (lambda c: c.models.get("x"), ["models", "show", "x"]),
    "DELETE /models/{ref}": (lambda c: c.models.delete("x"), ["models", "delete", "x"]),
    "POST /models/{ref}/restore": (lambda c: c.models.restore("x"), ["models", "restore", "x"]),
    "GET /models/{ref}/versions": (lambda c: c.models.versions("x"), ["models", "versions", "x"]),
    "GET /models/{ref}/versions/{number}": (
        lambda c: c.models.version("x", 1),
        ["models", "show", "x", "--version", "1"],
    ),
    "PATCH /models/{ref}": (
        lambda c: c.models.describe("x", license="CC0-1.0"),
        ["models", "describe", "x", "--license", "CC0-1.0"],
    ),
    "PATCH /models/{ref}/versions/{number}": (
        lambda c: c.models.change("x", 1, notes="n"),
        ["models", "tag", "x", "1", "--notes", "n"],
    ),
    "DELETE /models/{ref}/versions/{number}": (
        lambda c: c.models.delete("x", 1),
        ["models", "delete", "x", "--version", "1"],
    ),
    "POST /models/{ref}/versions/{number}/restore": (
        lambda c: c.models.restore("x", 1),
        ["models", "restore", "x", "--version", "1"],
    ),
    "GET /models/{ref}/versions/{number}/selection": (
        lambda c: c.models.selection("x", 1),
        ["models", "trials", "x", "--version", "1"],
    ),
    "GET /models/{ref}/versions/{number}/code": (lambda c: c.models.code("x", 1), ["models", "code", "x", "1"]),
    "GET /models/{ref}/versions/{number}/terms": (
        lambda c: c.models.terms("x", 1, "a"),
        ["models", "terms", "x", "1", "a"],
    ),
    "GET /models/{ref}/versions/{number}/thresholds": (
        lambda c: c.models.thresholds("x", 1),
        ["models", "thresholds", "x", "1"],
    ),
    "GET /models/{ref}/inputs": (lambda c: c.models.inputs("x"), []),
    "POST /models/{ref}/nearest": (lambda c: c.models.nearest("x", "t"), ["models", "nearest", "x", "--text", "t"]),
    "GET /models/{ref}/versions/{number}/drift": (lambda c: c.models.drift("x", 1), ["models", "drift", "x", "1"]),
    **{
        f"GET /figures/{figure}": (
            lambda c, figure=figure, of=of: c.picture(figure, **of),  # type: ignore[misc]
            ["picture", figure, "/dev/null", *(f"--{name}={value}" for name, value in of.items())],
        )
        for figure, of in {
            "job": {"job": "a"},
            "tuning": {"job": "a", "of": "time"},
            "reliability": {"evaluation": "a"},
            "confusions": {"evaluation": "a"},
            "thresholds": {"model": "x", "version": 1},
            "path": {"model": "x", "version": 1},
            "classes": {"dataset": "x"},
            "spread": {"dataset": "x", "of": "lengths"},
        }.items()
    },
    "POST /datasets/{ref}/preview": (lambda c: c.datasets.preview("x", 1), ["datasets", "preview", "x", "1"]),
    "GET /figures/drift": (
        lambda c: c.models.drift_picture("x", 1),
        ["models", "drift", "x", "1", "--picture", "/dev/null"],
    ),
    "GET /figures/code": (
        lambda c: c.models.code_picture("x", 1),
        ["models", "code", "x", "1", "--picture", "/dev/null"],
    ),
    "GET /models/{ref}/versions/{number}/export": (
        lambda c: c.models.export("x", 1, Path("none.npz")),
        ["models", "export", "x", "--version", "1"],
    ),
    "POST /models/import": (lambda c: c.models.import_archive(FILE), ["models", "import", FILE]),
    "GET /models/{ref}/retention": (lambda c: c.models.retention("x"), ["models", "retention", "x"]),
    "PUT /models/{ref}/retention": (
        lambda c: c.models.set_retention("x", 1),
        ["models", "retention", "x", "--keep-last", "1"],
    ),
    "PUT /models/{ref}/aliases/{alias}": (
        lambda c: c.models.set_alias("x", "a", 1),
        ["models", "alias", "x", "a", "1"],
    ),
    "DELETE /models/{ref}/aliases/{alias}": (
        lambda c: c.models.delete_alias("x", "a"),
        ["models", "unalias", "x", "a"],
    ),
    "GET /models/{ref}/compare": (lambda c: c.compare("x", 1, 2), ["compare", "x", "1", "2"]),
    "POST /models/{ref}/compare": (lambda c: c.compare("x", 1, 2), ["compare", "x", "1", "2"]),
    "POST /models/{ref}/predict": (lambda c: c.predict("x", ["t"]), ["predict", "x", "--text", "t"]),
    "POST /models/{ref}/feedback": (
        lambda c: c.feedback.report("x", "t", "l"),
        ["feedback", "report", "x", "l", "--text", "t"],
    ),
    "GET /models/{ref}/feedback": (lambda c: c.feedback.list("x"), ["feedback", "list", "x"]),
    "GET /models/{ref}/feedback/{id}": (lambda c: c.feedback.get("x", "f"), ["feedback", "show", "x", "f"]),
    "DELETE /models/{ref}/feedback/{id}": (lambda c: c.feedback.delete("x", "f"), ["feedback", "delete", "x", "f"]),
    "POST /models/{ref}/feedback/rows": (lambda c: c.feedback.append_rows("x"), ["feedback", "append", "x"]),
    "GET /reviews": (lambda c: c.reviews.list(), ["reviews", "list"]),
    "POST /reviews": (lambda c: c.reviews.create("x", "j"), ["reviews", "create", "x", "j"]),
    "GET /reviews/{ref}": (lambda c: c.reviews.get("x"), ["reviews", "show", "x"]),
    "DELETE /reviews/{ref}": (lambda c: c.reviews.delete("x"), ["reviews", "delete", "x"]),
    "GET /reviews/{ref}/rows": (lambda c: c.reviews.rows("x"), ["reviews", "rows", "x"]),
    "POST /reviews/{ref}/claim": (lambda c: c.reviews.claim("x"), ["reviews", "claim", "x"]),
    "GET /reviews/{ref}/sheet": (lambda c: c.reviews.save_sheet("x", "q.xlsx"), ["reviews", "export", "x", "q.xlsx"]),
    "POST /reviews/{ref}/decisions": (
        lambda c: c.reviews.import_decisions("x", FILE),
        ["reviews", "import", "x", FILE],
    ),
    "POST /reviews/{ref}/release": (lambda c: c.reviews.release("x", [1]), ["reviews", "release", "x", "1"]),
    "GET /reviews/{ref}/labels": (lambda c: c.reviews.labels("x", "a"), ["reviews", "labels", "x", "a"]),
    "PUT /reviews/{ref}/decisions/{row}": (
        lambda c: c.reviews.decide("x", 1, "a"),
        ["reviews", "decide", "x", "1", "a"],
    ),
    "POST /reviews/{ref}/append": (lambda c: c.reviews.append("x"), ["reviews", "append", "x"]),
    "DELETE /reviews/{ref}/decisions/{row}": (lambda c: c.reviews.undo("x", 1), ["reviews", "undo", "x", "1"]),
    "GET /evaluations": (lambda c: c.evaluations.list(), ["evaluations", "list"]),
    "GET /evaluations/{id}": (lambda c: c.evaluations.get("x"), ["evaluations", "show", "x"]),
    "GET /evaluations/{id}/labels": (lambda c: c.evaluations.labels("x"), ["evaluations", "labels", "x"]),
    "GET /evaluations/{id}/mistakes": (lambda c: c.evaluations.mistakes("x"), ["evaluations", "mistakes", "x"]),
    "GET /evaluations/{id}/confusions": (
        lambda c: c.evaluations.confusions("x"),
        ["evaluations", "confusions", "x"],
    ),
    "GET /webhooks": (lambda c: c.webhooks.list(), ["webhooks", "list"]),
    "POST /webhooks": (
        lambda c: c.webhooks.create("w", "https://x.example", ["review.dry"]),
        ["webhooks", "create", "w", "https://x.example", "--event", "review.dry"],
    ),
    "GET /webhooks/{ref}": (lambda c: c.webhooks.get("w"), ["webhooks", "show", "w"]),
    "DELETE /webhooks/{ref}": (lambda c: c.webhooks.delete("w"), ["webhooks", "delete", "w"]),
    "POST /webhooks/{ref}/secret": (lambda c: c.webhooks.rotate_secret("w"), ["webhooks", "rotate", "w"]),
    "POST /webhooks/{ref}/deliveries/{id}/retry": (
        lambda c: c.webhooks.retry("w", "0" * 32),
        ["webhooks", "retry", "w", "0" * 32],
    ),
    "GET /webhooks/{ref}/deliveries": (lambda c: c.webhooks.deliveries("w"), ["webhooks", "deliveries", "w"]),
    "GET /keys": (lambda c: c.keys.list(), ["keys", "list"]),
    "POST /keys": (lambda c: c.keys.create("k"), ["keys", "create", "k"]),
    "DELETE /keys/{ref}": (lambda c: c.keys.revoke("x"), ["keys", "revoke", "x"]),
    "POST /sign-in/device": (lambda c: c.login(), ["login"]),
    "POST /sign-in/token": (lambda c: c.login(), ["login"]),
    "DELETE /sign-in/token": (lambda c: c.logout(), ["logout"]),
    "GET /storage": (lambda c: c.storage.report(), ["storage", "show"]),
    "POST /storage/collect": (lambda c: c.storage.collect(), ["storage", "collect"]),
    "GET /audit": (lambda c: c.audit.list(), ["audit"]),
    "GET /usage": (lambda c: c.usage(), ["usage"]),
    "GET /status": (lambda c: c.status(), ["status"]),
    "GET /healthz": (lambda c: c.health(), ["ready"]),
    "GET /readyz": (lambda c: c.readiness(), []),
}

# Where each field of a request is an option or an argument; by another name, or None where it has none to give.
FIELDS: dict[type[BaseModel], tuple[str, dict[str, str | None]]] = {
    TrainRequest: ("train", {"kind": None, "params": "param"}),
    TuneRequest: ("tune", {"kind": None, "texts": "text"}),
    EvaluateRequest: ("evaluate", {"kind": None}),
    ComparisonRequest: ("compare", {}),
    CompressRequest: ("models compress", {"kind": None}),
    AdoptRequest: ("models adopt", {"kind": None}),
    BatchPredictRequest: ("predict-dataset", {"kind": None, "format": "output", "tags": "tag"}),
    SuggestRowsRequest: ("suggest-rows", {"kind": None, "tags": "tag"}),
    WrongLabelsRequest: ("wrong-labels", {"kind": None, "params": "param", "tags": "tag"}),
    JobPatch: ("jobs change", {"tags": "tag"}),
    PredictRequest: ("predict", {"instances": "file"}),
    ImportOptions: ("datasets upload", {}),
    TableSample: ("datasets columns", {"file": "path"}),
    NewRows: ("datasets append", {"upload": "resume", "address": "path", "sha256": None}),
    HierarchyOptions: ("hierarchies upload", dict.fromkeys(HierarchyOptions.model_fields, "option_")),
    FeedbackRequest: ("feedback report", {}),
    FeedbackRowsRequest: ("feedback append", {}),
    NearestRequest: ("models nearest", {}),
    PreviewRequest: ("datasets preview", {}),
    CorrectionsRequest: ("datasets correct", {"corrections": "file"}),
    WebhookRequest: ("webhooks create", {}),
    TokenRequest: ("login", {"device_code": None}),
    KeyRequest: ("keys create", {"expires_at": "days"}),
    AliasTarget: ("models alias", {}),
    VersionPatch: ("models tag", {"tags": "set_"}),
    ModelAbout: ("models describe", {}),
    RetentionRule: ("models retention", {}),
    ReviewRequest: ("reviews create", {}),
    ClaimRequest: ("reviews claim", {}),
    DecisionRequest: ("reviews decide", {}),
    DecidedRowsRequest: ("reviews append", {}),
    ReleaseRequest: ("reviews release", {}),
    RuleRequest: ("rules create", {f"training_{field}": "training" for field in TrainRequest.model_fields}),
    RulePatch: ("rules enable", {"enabled": None}),
}
COMMANDS = {name.removeprefix("polymargin "): command for name, command in commands.walk()}


def prepare(canned: Canned, home: Path) -> None:
    """Let the service answer what others are asked by way of, and a person be signed in."""
    canned.answer("GET /jobs/j", JOB)
    canned.answer("POST /sign-in/device", CODE)
    ends = datetime.now(UTC) + timedelta(days=1)
    credentials.save(home, canned.url, Credential(secret="pm_token", name="ann", expires_at=ends))


@pytest.fixture
def service(canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Canned:
    """Answers 404 to all but what others are asked by way of."""
    monkeypatch.setenv("POLYMARGIN_HOME", str(tmp_path))
    prepare(canned, tmp_path)
    return canned


def _asked(service: Canned, route: str) -> bool:
    method, path = route.split()
    pattern = [None if part.startswith("{") else part for part in path.split("/")]
    for each in service.asked:
        parts = each.path.split("/")
        same = len(parts) == len(pattern) and all(a in (None, b) for a, b in zip(pattern, parts, strict=True))
        if each.method == method and same:
            return True
    return False


def test_every_route_has_its_way() -> None:
    assert sorted(ROUTES.keys() - REACH.keys()) == [], "add to REACH how client and command line reach these routes"
    assert sorted(REACH.keys() - ROUTES.keys()) == [], "docs/openapi.json has no such routes"


@pytest.mark.parametrize("route", REACH)
def test_the_client_reaches_every_route(route: str, service: Canned) -> None:
    with Client(attempts=1) as client, pytest.raises(ClientError):
        REACH[route][0](client)
    assert _asked(service, route), [(each.method, each.path) for each in service.asked]


@pytest.mark.parametrize("route", [route for route, (_, arguments) in REACH.items() if arguments])
def test_the_command_line_reaches_every_route(
    route: str, service: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(*REACH[route][1])[0] == 1
    assert _asked(service, route), [(each.method, each.path) for each in service.asked]


def test_routes_without_a_command_are_shown_by_another() -> None:
    assert {route for route, (_, arguments) in REACH.items() if not arguments} == {
        "GET /datasets/{ref}/statistics",  # datasets show
        "POST /uploads",  # datasets upload, of a large file
        "PATCH /uploads/{id}",
        "GET /models/{ref}/inputs",  # predict-dataset, of a file
        "GET /solvers/{name}",  # solvers NAME
        "GET /readyz",  # ready
        "GET /jobs/{id}/predictions",  # predict-dataset
        "GET /jobs/{id}/suggested-rows",  # suggest-rows
        "GET /jobs/{id}/wrong-labels",  # wrong-labels
    }


@pytest.mark.parametrize("schema", FIELDS, ids=lambda schema: schema.__name__)
def test_every_field_of_a_request_is_an_option(schema: type[BaseModel]) -> None:
    command, others = FIELDS[schema]
    known = {parameter.name for parameter in COMMANDS[command].params}
    for field, _ in flat_fields(schema):
        name = others.get(field, field)
        assert name is None or name in known, f"{command} has no option for {field}"


def test_every_schema_of_a_body_is_looked_at() -> None:
    bodies = set()
    for operation in ROUTES.values():
        schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        bodies |= {one["$ref"].rpartition("/")[2] for one in schema.get("anyOf", [schema]) if "$ref" in one}
    queries = {"ImportOptions", "NewRows", "HierarchyOptions", "TableSample"}
    assert bodies == {schema.__name__ for schema in FIELDS} - queries | {"NewUpload"}
