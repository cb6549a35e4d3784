"""Models that rank all concepts of a vocabulary, trained alone and chosen by a search, at every door."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluateRequest
from app.exports import archives
from app.formats.hierarchies.vocabulary import Label, Vocabulary
from app.hierarchies import service as hierarchies
from app.jobs import service as jobs
from app.jobs.request_schemas import TuneRequest
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.predictions import thresholds
from app.predictions.drift import drift
from app.predictions.model_cache import ModelCache
from app.predictions.read_columns import read_columns
from app.predictions.schemas import PredictResponse
from app.predictions.service import predict
from app.protocols.adapter import reads_texts
from solvers.core.model import Model
from solvers.labels.taxonomy import Taxonomy
from workers.job_kinds import tuning
from workers.job_kinds.trial_rows import Fold
from workers.tasks import run

NAMES = ["baking", "weaving", "pottery", "soup", "knitting", "carving", "dyeing", "brewing", "glazing", "tanning"]
UNSEEN = 8  # no row has the concepts from here on
EDGES = [("root", "u:craft"), *(("u:craft", f"u:{name}") for name in NAMES)]
LINEAR = {"solver": "node_svm", "params": {"C": 1.0}}
WORDS = ["oven", "loom", "kiln", "pot", "needle", "chisel", "vat", "barrel"]


def _rows(n: int = 48) -> str:
    random, lines = np.random.default_rng(0), []
    for i in range(n):
        own = random.choice(UNSEEN, 2, replace=False)
        text = "The " + " and ".join(f"{NAMES[c]} with a {random.choice(WORDS)}" for c in own) + f", day {i}"
        lines.append(json.dumps({"text": text, "label": [f"u:{NAMES[c]}" for c in own]}))
    return "\n".join(lines)


def _train(session: Session, solver: str, **params: Any) -> None:
    request = {"dataset": "crafts", "hierarchy": "tree", "model": "m", "solver": solver, "params": params, "seed": 1}
    job = jobs.submit(session, TrainRequest.model_validate(request))
    run(job.id)
    assert jobs.get(session, job.id).error is None


def _evaluate(session: Session) -> None:
    evaluation = EvaluateRequest(kind="evaluate", model="m", dataset="crafts", part="all")
    job = jobs.submit(session, evaluation)
    run(job.id)
    assert jobs.get(session, job.id).error is None
    (found,) = evaluations.page(session).items
    assert found.unknown_rows == 0


@pytest.fixture
def crafts(database: sessionmaker[Session], dataset: Callable[..., str]) -> None:
    dataset(_rows(), "crafts", "jsonl")
    labels = {f"u:{name}": Label(names={"en": name.title()}) for name in NAMES}
    with database() as session:
        hierarchies.register(session, "tree", "skos", Vocabulary(Taxonomy.from_edges(EDGES), labels, {}, []))


def _ask(loaded: Any, text: str, **options: Any) -> dict[str, Any]:
    answer = predict(loaded, {"instances": [{"text": text}], **options}, 100)
    PredictResponse.model_validate(answer)
    return answer


@pytest.mark.parametrize(
    ("solver", "params"),
    [
        pytest.param("subjects", {}, marks=pytest.mark.slow),
        ("auto", {"candidates": [{"solver": "subjects"}], "folds": 1}),
        pytest.param("auto", {"candidates": [LINEAR, {"solver": "subjects"}]}, marks=pytest.mark.slow),
    ],
)
def test_a_ranker_of_all_concepts_is_the_same_at_every_door(
    database: sessionmaker[Session], crafts: None, solver: str, params: dict[str, Any]
) -> None:
    with database() as session:
        _train(session, solver, **params)
        version = models.version(session, "m")
        assert version.solver == solver
        assert version.refit is not None
        assert version.refit.reason is None
        assert "ndcg@10" in version.metrics["test"]
        _evaluate(session)
        assert b"".join(archives.make(session, "m", 1).blocks())
    cache = ModelCache(database, 1 << 30)
    loaded = cache.get(("default", "m", None, None))
    assert loaded.features.kind == "named_text"
    assert loaded.model.kind == "subjects"
    assert reads_texts(loaded)
    with database() as session:
        assert read_columns(session, loaded, 10).instance == "text"
    (answer,) = _ask(loaded, "Glazing, day 3", top_k=3, explain=5)["predictions"]
    first = answer["labels"][0]
    assert (first["label"], first["seen"], first["names"]) == ("u:glazing", False, {"en": "Glazing"})
    assert answer["top"][0]["label"] == "u:glazing"
    explained = json.dumps(answer["explanation"])
    assert "name of Glazing" in explained
    assert thresholds.of_version(cache, "default", "m", 1).points
    sure = _ask(loaded, "The weaving with a loom, day 2", min_precision=0.3)
    assert sure["sure_from"]["threshold"] is not None
    assert "u:weaving" in json.dumps(sure["predictions"][0]["sure_labels"])
    assert loaded.reference is not None
    assert drift(loaded, {("label", 0): 30, ("score", 0): 30}, 7).labels is not None
    if solver == "auto":
        assert {trial["solver"] for trial in loaded.model.record["trials"]} >= {"subjects"}


def test_a_model_that_reads_terms_alone_is_served_without_names(database: sessionmaker[Session], crafts: None) -> None:
    candidates = [LINEAR, {"solver": "subjects", "params": {"memory_mb": 1}}]
    with database() as session:
        _train(session, "auto", candidates=candidates, folds=1)
        version = models.version(session, "m")
        _evaluate(session)
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    assert loaded.features.kind == "text"
    assert loaded.features.n_features == loaded.model.n_features == version.n_features
    assert [left["solver"] for left in loaded.model.record["left_out"]] == ["subjects"]
    (answer,) = _ask(loaded, "The weaving with a loom, day 2", top_k=2)["predictions"]
    assert answer["top"][0]["label"] == "u:weaving"


@pytest.mark.parametrize("solver", ["subjects", pytest.param("auto", marks=pytest.mark.slow)])
def test_trials_of_a_tuning_find_names(
    database: sessionmaker[Session], crafts: None, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = {"candidates": [LINEAR, {"solver": "subjects"}], "folds": 1} if solver == "auto" else {}
    space = [LINEAR, {"solver": solver, "params": candidates}]
    request = {"dataset": "crafts", "hierarchy": "tree", "model": "m", "space": space, "measure": "ndcg@10"}
    measured: list[str] = []
    measure = tuning.measured

    def spy(model: Model, fold: Fold, *others: Any) -> dict[str, float]:
        measured.append(fold.data.features.kind)
        return measure(model, fold, *others)

    monkeypatch.setattr(tuning, "measured", spy)
    with database() as session:
        job = jobs.submit(session, TuneRequest.model_validate(request))
    for _ in range(20):
        run(job.id)
        with database() as session:
            done = jobs.get(session, job.id)
        if done.state in ("succeeded", "failed"):
            break
    assert done.error is None
    assert sorted(measured) == ["named_text", "text"]
    with database() as session:
        assert models.version(session, "m").request["text"]["lemmas"] == ["en"]
