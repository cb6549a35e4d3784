"""Models that rank all concepts of a vocabulary, trained alone and chosen by a search, at every door."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.datasets import service as datasets
from app.errors import Conflict, InvalidInput, NotFound
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluateRequest
from app.exports import archive_imports, archives
from app.exports.model_cards import model_card
from app.features.named_text import NamedTextFeatures
from app.formats.hierarchies.vocabulary import Label, Vocabulary
from app.hierarchies import service as hierarchies
from app.jobs import service as jobs
from app.jobs.request_schemas import AdoptRequest, TuneRequest
from app.jobs.schemas import Job, TrainRequest
from app.models import service as models
from app.models.schemas import ModelAbout
from app.predictions import inspection
from app.predictions.drift import drift
from app.predictions.inspection import read_columns
from app.predictions.model_cache import LoadedModel, ModelCache
from app.predictions.schemas import PredictResponse
from app.predictions.service import predict
from app.protocols.adapter import reads_texts
from app.store.files import files
from solvers.core.model import Model
from solvers.labels.taxonomy import Taxonomy
from solvers.subjects.model import SubjectModel
from workers.job_kinds import tuning
from workers.job_kinds.trial_rows import Fold
from workers.tasks import run

# what is computed, by statements that other tests of this file make on every database
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

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
    request["stratify"] = "labels"
    job = jobs.submit(session, TrainRequest.model_validate(request))
    run(job.id)
    assert jobs.get(session, job.id).error is None


def _evaluate(session: Session, unknown_rows: int = 0, dataset: str = "crafts") -> None:
    evaluation = EvaluateRequest(kind="evaluate", model="m", dataset=dataset, part="all")
    job = jobs.submit(session, evaluation)
    run(job.id)
    assert jobs.get(session, job.id).error is None
    found = evaluations.page(session).items[0]
    assert found.unknown_rows == unknown_rows


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


@on_sqlite
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
    assert inspection.threshold_curve(cache, "default", "m", 1).points
    sure = _ask(loaded, "The weaving with a loom, day 2", min_precision=0.3)
    assert sure["sure_from"]["threshold"] is not None
    assert "u:weaving" in json.dumps(sure["predictions"][0]["sure_labels"])
    assert loaded.reference is not None
    assert drift(loaded, {("label", 0): 30, ("score", 0): 30}, 7).labels is not None
    if solver == "auto":
        assert {trial["solver"] for trial in loaded.model.record["trials"]} >= {"subjects"}


@on_sqlite
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


@on_sqlite
@pytest.mark.parametrize(
    ("columns", "text", "solver"),
    [
        ({}, {"fields": {"title": {"weight": 2}, "body": {"max_words": 30}}}, "subjects"),
        ({"number_columns": ("year",)}, {"fields": {"title": {"weight": 2}}}, "subjects"),
        pytest.param({"number_columns": ("year",)}, {}, "subjects", marks=pytest.mark.slow),
        pytest.param({}, {"fields": {"title": {"weight": 2}}}, "auto", marks=pytest.mark.slow),
    ],
)
def test_names_are_found_in_the_columns_of_records(
    database: sessionmaker[Session],
    second: None,
    dataset: Callable[..., str],
    columns: dict[str, Any],
    text: dict[str, Any],
    solver: str,
) -> None:
    rows = [json.loads(line) for line in _rows().splitlines()]
    years = {"year": 1999} if columns else {}
    records = [{"title": row["text"].partition(" with")[0], "body": row["text"]} | years for row in rows]
    lines = (json.dumps({**record, "label": row["label"]}) for record, row in zip(records, rows, strict=True))
    dataset("\n".join(lines), "titled", "jsonl", text_columns=("title", "body"), **columns)
    request = {"dataset": "titled", "hierarchy": "tree", "model": "m", "solver": solver, "seed": 1, "text": text}
    if solver == "auto":
        request["params"] = {"candidates": [{"solver": "subjects"}], "folds": 1}
    with database() as session:
        job = jobs.submit(session, TrainRequest.model_validate(request))
        run(job.id)
        assert jobs.get(session, job.id).error is None
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    assert loaded.features.kind == "named_table"
    assert not reads_texts(loaded)
    with database() as session:
        assert read_columns(session, loaded, 10).text_columns == ["title", "body"]
        assert models.of_texts(session, [models.version(session, "m")]) == set()
        _evaluate(session, dataset="titled")
    record = {"title": "On glazing", "body": "Words."} | years
    answer = predict(loaded, {"instances": [{"record": record}], "top_k": 3, "explain": 5}, 100)
    PredictResponse.model_validate(answer)
    assert answer["predictions"][0]["top"][0]["label"] == "u:glazing"
    assert "name of Glazing: hits" in json.dumps(answer["predictions"][0]["explanation"])
    with database() as session:
        job = _adopt(session)
        assert job.error is None, job.error.detail
        assert b"".join(archives.make(session, "m", 2).blocks())
    adopted = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    found = predict(adopted, {"instances": [{"record": record | {"title": "Felting"}}]}, 100)["predictions"][0]
    assert found["top"][0]["label"] == "u:felting"


@on_sqlite
def test_names_are_found_in_each_language_that_many_texts_are_in(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    rows = [json.loads(line) for line in _rows().splitlines()]
    for row in rows[::6]:
        number = row["text"].rpartition(" ")[2]
        row["text"] = f"Die Werkstatt ist wegen der Ferien bis zum Herbst geschlossen, und zwar am Tag {number}"
    dataset("\n".join(json.dumps(row) for row in rows), "crafts", "jsonl")
    german = {"glazing": "Glasuren", "tanning": "Gerberei"}
    labels = {f"u:{name}": Label(names={"en": name, "de": german.get(name, name), "fr": "cuir"}) for name in NAMES}
    with database() as session:
        hierarchies.register(session, "tree", "skos", Vocabulary(Taxonomy.from_edges(EDGES), labels, {}, []))
        _train(session, "subjects")
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    for text, first in (("Die Glasur des Tellers", "u:glazing"), ("About tanning", "u:tanning")):
        assert _ask(loaded, text)["predictions"][0]["top"][0]["label"] == first
    assert isinstance(loaded.features, NamedTextFeatures)
    assert loaded.features.text_recipe.lemmas == ("en", "de")


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


# a second edition: soup has another id, weaving and knitting are one, pottery is gone, and felting and welding are new
GONE, MERGED = "u:pottery", "u:textile"
SECOND = ["baking", "carving", "dyeing", "brewing", "glazing", "tanning", "felting", "welding"]


@pytest.fixture
def second(database: sessionmaker[Session], crafts: None) -> None:
    labels = {f"u:{name}": Label(names={"en": name.title()}) for name in SECOND}
    labels |= {
        MERGED: Label(names={"en": "Textile"}, alternatives={"en": ("Weaving", "Knitting")}),
        "u:stew": Label(names={"en": "Soup"}),
    }
    retired = {"u:weaving": Label(replaced_by=(MERGED,)), "u:knitting": Label(replaced_by=(MERGED,))}
    retired |= {"u:soup": Label(replaced_by=("u:stew",)), GONE: Label()}
    with database() as session:
        _register(session, "second", labels, retired)


def _adopt(session: Session, **changes: Any) -> Job:
    request = {"kind": "adopt", "model": "m", "hierarchy": "second"} | changes
    job = jobs.submit(session, AdoptRequest.model_validate(request))
    run(job.id)
    return jobs.get(session, job.id)


@pytest.mark.parametrize("solver", ["subjects", pytest.param("auto", marks=pytest.mark.slow)])
def test_a_version_adopts_an_edition_and_answers_new_concepts(
    database: sessionmaker[Session], second: None, solver: str
) -> None:
    with database() as session:
        _train(session, solver, **({} if solver == "subjects" else {"candidates": [{"solver": "subjects"}]}))
        source = models.version(session, "m")
        job = _adopt(session)
        assert job.error is None, job.error.detail
        version = models.version(session, "m")
        assert (version.version, version.n_classes) == (2, 1 + 10)
        edition = version.edition_of
        assert edition is not None
        assert (edition.version, edition.version_sha256, edition.gap) == (1, source.sha256, source.gap)
        # of the source's eleven concepts six stay, craft among them, two become one, and one has another id
        assert (edition.appeared, edition.gone, edition.merged) == (2, 1, 2)
        assert 0 <= edition.agreement <= 1
        assert edition.gain_low <= edition.ndcg - edition.ndcg_source <= edition.gain_high
        assert version.metrics["test"].keys() == source.metrics["test"].keys()
        stored = [models.stored_metrics(session, each.id)["test"].keys() for each in (version, source)]
        assert stored[0] == stored[1] > {"f1_1", "macro_f1_2"}
        assert version.metrics["test"]["ndcg@10"] == pytest.approx(edition.ndcg)
        assert (version.request["hierarchy"], version.request["unknown_labels"]) == ("second", "drop")
        assert version.hierarchy != source.hierarchy
        _evaluate(session, sum(GONE in line for line in _rows().splitlines()))
        content = b"".join(archives.make(session, "m", 2).blocks())
    cache = ModelCache(database, 1 << 30)
    loaded = cache.get(("default", "m", None, None))
    for text, label, seen in (("Felting, day 3", "u:felting", False), ("The soup with a pot, day 2", "u:stew", True)):
        first = _ask(loaded, text, top_k=3)["predictions"][0]["labels"][0]
        assert (first["label"], first.get("seen", True)) == (label, seen)
    best = _ask(loaded, "The weaving with a loom, day 2", top_k=2)["predictions"][0]["top"][0]
    assert best["label"] == MERGED
    model = loaded.model
    assert isinstance(model, SubjectModel)
    was = cache.get(("default", "m", 1, None)).model
    assert isinstance(was, SubjectModel)
    places, before = loaded.places, {label: int(was.counts.has[0, at]) for at, label in enumerate(was.classes)}
    # no row has both of weaving and knitting counted twice
    assert before["u:weaving"] < model.counts.has[0, places[MERGED]] <= before["u:weaving"] + before["u:knitting"]
    assert model.counts.has[0, places["u:stew"]] == before["u:soup"]
    assert model.counts.names[0, places["u:felting"]] == 0
    with database() as session:
        upload = files().upload()
        upload.write(content)
        with archive_imports.unpacked(session, upload, lambda: None) as archive:
            taken = archive_imports.register(session, archive, "elsewhere")
        assert taken.edition_of == edition
        assert "adopted another edition" in model_card(taken, "named_text", "subjects", ModelAbout())


@on_sqlite
def test_a_merged_concept_is_found_by_the_names_of_those_that_it_replaces(
    database: sessionmaker[Session], crafts: None
) -> None:
    labels = {f"u:{name}": Label(names={"en": name.title()}) for name in NAMES if name not in ("weaving", "knitting")}
    labels |= {MERGED: Label(names={"en": "Textile"}), "u:needlework": Label(names={"en": "Knitting"})}
    retired = {f"u:{name}": Label(replaced_by=(MERGED,)) for name in ("weaving", "knitting")}
    with database() as session:
        _register(session, "second", labels, retired)
        _train(session, "subjects")
        job = _adopt(session)
        assert job.error is None, job.error.detail
    loaded = ModelCache(database, 1 << 30).get(("default", "m", 2, None))
    assert _ask(loaded, "Weaving")["predictions"][0]["top"][0]["label"] == MERGED
    assert "name of Textile: hits" in _named_in(loaded, "Weaving")
    # the name of another concept by now
    assert _named_in(loaded, "Knitting") == {"name of Knitting: hits"}


@on_sqlite
@pytest.mark.parametrize("is_kept", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_names_of_concepts_that_earlier_editions_replaced_are_found_after_each_adoption(
    database: sessionmaker[Session], crafts: None, is_kept: bool
) -> None:
    labels = {f"u:{name}": Label(names={"en": name.title()}) for name in NAMES if name not in ("weaving", "knitting")}
    textile, fabric = Label(names={"en": "Textile"}), Label(names={"en": "Fabric"})
    retired = {f"u:{name}": Label(replaced_by=(MERGED,)) for name in ("weaving", "knitting")}
    with database() as session:
        _train(session, "subjects")
        _register(session, "second", labels | {MERGED: textile}, retired)
        _register(session, "third", labels | {MERGED: textile, "u:felting": Label(names={"en": "Felting"})}, retired)
        retired |= {MERGED: Label(replaced_by=("u:fabric",))}
        _register(session, "fourth", labels | {"u:fabric": fabric}, retired)
        for edition in ("second", "third", "fourth"):
            job = _adopt(session, hierarchy=edition)
            assert job.error is None, job.error.detail
            if not is_kept:
                hierarchies.delete(session, edition, force=True)
    cache = ModelCache(database, 1 << 30)
    for number, name in ((2, "Textile"), (3, "Textile"), (4, "Fabric")):
        assert f"name of {name}: hits" in _named_in(cache.get(("default", "m", number, None)), "Weaving")
    assert "name of Fabric: hits" in _named_in(cache.get(("default", "m", 4, None)), "Textile")


def _register(session: Session, name: str, labels: dict[str, Label], retired: dict[str, Label]) -> None:
    edges = [("root", "u:craft"), *(("u:craft", label) for label in labels)]
    hierarchies.register(session, name, "skos", Vocabulary(Taxonomy.from_edges(edges), labels, retired, []))


def _named_in(loaded: LoadedModel, text: str) -> set[str]:
    indices, _ = loaded.features.row({"text": text})
    return {name for at in indices.tolist() if str(name := loaded.features.named(at)).endswith(": hits")}


def test_an_edition_that_is_the_same_changes_no_answer(database: sessionmaker[Session], crafts: None) -> None:
    labels = {f"u:{name}": Label(names={"en": name.title()}) for name in NAMES}
    with database() as session:
        hierarchies.register(session, "again", "skos", Vocabulary(Taxonomy.from_edges(EDGES), labels, {}, []))
        _train(session, "subjects")
        job = _adopt(session, hierarchy="again")
        assert job.error is None, job.error.detail
        source, version = models.version(session, "m", 1), models.version(session, "m", 2)
        edition = version.edition_of
        assert edition is not None
        assert (edition.appeared, edition.gone, edition.merged, edition.agreement) == (0, 0, 0, 1.0)
        assert version.metrics["test"] == source.metrics["test"]
        assert version.request["unknown_labels"] == source.request["unknown_labels"]
    cache = ModelCache(database, 1 << 30)
    X = cache.get(("default", "m", 1, None)).features.transform(["The weaving with a loom, day 2", "Glazing"])
    before, after = (cache.get(("default", "m", number, None)).model.scores(X) for number in (1, 2))
    np.testing.assert_array_equal(after, before)


def test_counts_follow_where_the_training_rows_are_gone(database: sessionmaker[Session], second: None) -> None:
    with database() as session:
        _train(session, "subjects")
        datasets.delete(session, "crafts", force=True)
        with pytest.raises(InvalidInput):
            _adopt(session)
    cache = ModelCache(database, 1 << 30)
    was = cache.get(("default", "m", 1, None)).model
    assert isinstance(was, SubjectModel)
    moved = was.counts.moved(np.array([0, 1, *range(1, len(was.classes) - 2), -1]), len(was.classes) - 2)
    assert moved.has[0, 1] == was.counts.has[0, 1] + was.counts.has[0, 2]
    assert moved.has.sum() == was.counts.has.sum() - was.counts.has[0, -1]


def test_what_cannot_adopt_an_edition_says_why(database: sessionmaker[Session], second: None) -> None:
    with database() as session:
        _train(session, "subjects")
        with pytest.raises(Conflict, match="already has the concepts of tree"):
            _adopt(session, hierarchy="tree")
        with pytest.raises(NotFound):
            _adopt(session, hierarchy="third")
        _train(session, "node_svm")
        with pytest.raises(InvalidInput) as refused:
            _adopt(session)
        assert "does not find concepts by their names" in refused.value.errors[0].detail
        _train(session, "auto", candidates=[LINEAR], folds=1)
        job = _adopt(session)
        assert job.error is not None
        assert "train on the new edition" in job.error.detail
