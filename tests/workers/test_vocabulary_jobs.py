"""Jobs along a vocabulary: retired labels are mapped, sets are closed along all parents, answers have names."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import Session, sessionmaker

from app.errors import InvalidInput
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluateRequest
from app.formats.hierarchies.vocabulary import Dropped, Label, Vocabulary
from app.hierarchies import service as hierarchies
from app.hierarchies.nodes import taxonomy
from app.hierarchies.version_labels import KEPT, VersionLabels, of_details, of_hierarchy
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.predictions.drift import drift
from app.predictions.model_cache import ModelCache
from app.predictions.schemas import PredictResponse
from app.predictions.service import predict
from solvers.labels.label_sets import with_ancestors
from solvers.labels.taxonomy import Taxonomy
from workers.tasks import run

EDGES = [("root", "u:craft"), ("root", "u:food"), ("u:craft", "u:bake"), ("u:food", "u:soup")]
VOCABULARY = Vocabulary(
    Taxonomy.from_edges(EDGES),
    {
        "u:craft": Label(names={"en": "Crafts", "de": "Handwerk"}, notation="C"),
        "u:bake": Label(names={"en": "Baking", "de": "Backen"}, deprecated=True),
    },
    {
        "u:bun": Label(deprecated=True, replaced_by=["u:roll"]),
        "u:roll": Label(deprecated=True, replaced_by=["u:bake"]),
        "u:lost": Label(deprecated=True),
        "u:both": Label(deprecated=True, replaced_by=["u:bake", "u:soup"]),
    },
    [Dropped("u:bake", "u:food", 7)],
)


@pytest.fixture
def kept(database: sessionmaker[Session]) -> str:
    """The vocabulary's id."""
    with database() as session:
        return hierarchies.register(session, "tree", "skos", VOCABULARY).id


def _rows(labels: list[str], n: int = 40) -> str:
    random = np.random.default_rng(3)
    lines = []
    for i in range(n):
        values = random.normal(size=4) + 2.0 * (np.arange(4) == i % len(labels))
        lines.append(" ".join([labels[i % len(labels)], *(f"{j + 1}:{value:.4f}" for j, value in enumerate(values))]))
    return "\n".join(lines) + "\n"


def _train(session: Session, **changes: object) -> str:
    request = {"dataset": "digits", "hierarchy": "tree", "model": "m", "solver": "weston_watkins", **changes}
    job = jobs.submit(session, TrainRequest.model_validate(request))
    run(job.id)
    assert jobs.get(session, job.id).error is None
    return job.id


def test_retired_labels_are_mapped_and_answers_tell_what_the_vocabulary_says(
    database: sessionmaker[Session], dataset: Callable[..., str], kept: str
) -> None:
    dataset(_rows(["u:bun", "u:soup", "u:bake"]))
    with database() as session:
        _train(session)
        version = models.version(session, "m")
        assert (version.n_classes, version.report["labels_mapped"]) == (2, 14.0)
        hierarchies.delete(session, "tree", force=True)
        run(jobs.submit(session, EvaluateRequest(kind="evaluate", model="m", dataset="digits", part="all")).id)
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    answer = predict(loaded, {"instances": [{"indices": [0], "values": [4.0]}], "top_k": 2}, 10)
    PredictResponse.model_validate(answer)
    (prediction,) = answer["predictions"]
    assert prediction["label"] == "u:bake"
    assert prediction["names"] == {"en": "Baking", "de": "Backen"}
    assert prediction["deprecated"]
    assert "names" not in prediction["top"][1]
    asked = {"instances": [{"indices": [0], "values": [4.0]}], "top_k": 2, "explain": 1, "language": "de-AT"}
    answer = predict(loaded, asked, 10)
    PredictResponse.model_validate(answer)
    (prediction,) = answer["predictions"]
    assert (prediction["name"], prediction["top"][0]["name"]) == ("Backen", "Backen")
    assert "names" not in prediction
    assert (prediction["explanation"][0]["name"], prediction["explanation"][0]["rival_name"]) == ("Backen", None)
    for language in ("", "d e", 1):
        with pytest.raises(InvalidInput):
            predict(loaded, {**asked, "language": language}, 10)


def test_rows_may_name_their_concepts(database: sessionmaker[Session], dataset: Callable[..., str], kept: str) -> None:
    dataset(_rows(["Baking", "u:soup", "HANDWERK", "u:bake"]))
    with database() as session:
        _train(session)
        version = models.version(session, "m")
        assert (version.n_classes, version.report["labels_mapped"]) == (3, 20.0)
        id = jobs.submit(session, EvaluateRequest(kind="evaluate", model="m", dataset="digits", part="all")).id
        run(id)
        assert jobs.get(session, id).state == "succeeded"
        (found,) = evaluations.page(session).items
        assert found.unknown_rows == 0


def test_a_name_of_several_concepts_is_refused_with_their_ids(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    tree = Taxonomy.from_edges([("root", "u:bank"), ("root", "u:shore"), ("root", "u:soup")])
    both = {"u:bank": Label(names={"en": "Bank"}), "u:shore": Label(names={"en": "bank"})}
    dataset(_rows(["bank", "u:soup"]))
    with database() as session:
        hierarchies.register(session, "tree", "skos", Vocabulary(tree, both, {}, []))
        request = TrainRequest(dataset="digits", hierarchy="tree", model="m", solver="weston_watkins")
        with pytest.raises(InvalidInput) as caught:
            jobs.submit(session, request)
    assert "'bank' is the name of 'u:bank', 'u:shore': use the id of one" in caught.value.errors[0].detail


def test_drift_tells_the_names_of_labels(
    database: sessionmaker[Session], dataset: Callable[..., str], kept: str
) -> None:
    dataset(_rows(["u:bake", "u:soup"]))
    with database() as session:
        _train(session)
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    assert loaded.reference is not None
    found = drift(loaded, {("label", 0): 30, ("score", 0): 30}, 7).labels
    assert found is not None
    assert {each.label: each.names for each in found.moved} == {
        "u:bake": {"en": "Baking", "de": "Backen"},
        "u:soup": None,
    }


def test_what_no_one_label_replaces_is_refused_by_name(
    database: sessionmaker[Session], dataset: Callable[..., str], kept: str
) -> None:
    dataset(_rows(["u:lost", "u:soup", "u:both"]))
    with database() as session, pytest.raises(InvalidInput) as refused:
        _train(session)
    detail = refused.value.errors[0].detail
    assert "2 of them are retired" in detail
    assert "'u:both': one of 'u:bake', 'u:soup'" in detail


def test_sets_are_closed_along_all_parents(
    database: sessionmaker[Session], dataset: Callable[..., str], kept: str
) -> None:
    dataset(_rows(["u:roll", "u:soup"]), label_separator=",")
    with database() as session:
        _train(session, solver="hm3")
        report = models.version(session, "m").report
    assert (report["labels_added"], report["labels_mapped"]) == (60.0, 20.0)
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    (prediction,) = predict(loaded, {"instances": [{"indices": [0], "values": [5.0]}]}, 10)["predictions"]
    found = {node["label"]: node.get("names", {}).get("de") for node in prediction["subtree"]}
    assert found == {"u:craft": "Handwerk", "u:bake": "Backen", "u:food": None}


SETS = ("hm3", "node_svm", "hierarchical_svm", "hierarchical_rls", "kernel_ridge")


@pytest.fixture
def graph(database: sessionmaker[Session]) -> Taxonomy:
    """The same with both parents, registered as ``graph``."""
    tree = Taxonomy.from_graph([*EDGES, ("u:food", "u:bake")])
    with database() as session:
        shown = hierarchies.register(session, "graph", "skos", replace(VOCABULARY, tree=tree, dropped=[]))
        assert (shown.n_several_parents, shown.n_dropped, shown.sha256) == (1, 0, tree.sha256)
        assert taxonomy(session, shown.id) == tree
    return tree


@pytest.mark.parametrize("solver", SETS)
def test_methods_for_sets_train_predict_and_are_measured_along_a_label_graph(
    database: sessionmaker[Session], dataset: Callable[..., str], graph: Taxonomy, solver: str
) -> None:
    dataset(_rows(["u:roll", "u:soup"]), label_separator=",")
    with database() as session:
        _train(session, solver=solver, hierarchy="graph")
        report = models.version(session, "m").report
    assert (report["labels_added"], report["labels_mapped"]) == (60.0, 20.0)
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    assert loaded.tree == graph
    (prediction,) = predict(loaded, {"instances": [{"indices": [0], "values": [5.0]}]}, 10)["predictions"]
    listed = [node["label"] for node in prediction["subtree"]]
    assert (sorted(listed[:2]), listed[2:]) == (["u:craft", "u:food"], ["u:bake"])  # each after all of its parents
    assert [label["label"] for label in prediction["labels"]] == ["u:bake"]


def test_what_no_graph_can_be_used_for_is_refused_with_the_way_out(
    database: sessionmaker[Session], dataset: Callable[..., str], graph: Taxonomy
) -> None:
    def refused(**changes: object) -> str:
        with database() as session, pytest.raises(InvalidInput) as caught:
            _train(session, hierarchy="graph", **changes)
        (item,) = caught.value.errors
        return f"{item.pointer}: {item.detail}"

    dataset(_rows(["u:roll", "u:soup"]), name="ones")
    assert "have one label" in refused(solver="hm3", dataset="ones")
    dataset(_rows(["u:roll", "u:soup"]), label_separator=",")
    said = refused(solver="hm3", params={"labelings": "all"})
    assert said.startswith("/solver: hm3 with labelings=all needs a label tree, but labels of graph have several")
    assert "upload it with tree=first or tree=deepest" in said
    assert all(name in refused(solver="weston_watkins") for name in SETS)


def test_what_a_hierarchy_says_survives_a_manifest(database: sessionmaker[Session], kept: str) -> None:
    with database() as session:
        known = of_hierarchy(session, kept)
    assert known.replaced == {"u:bun": "u:bake", "u:roll": "u:bake"}
    again = of_details({KEPT: known.kept(VOCABULARY.tree.names)})
    assert (again.shown, again.replaced, again.other_parents) == (known.shown, known.replaced, {"u:bake": ["u:food"]})
    former = {"u:bake": {"en": ["Bun", "Roll"]}}
    assert of_details({KEPT: replace(known, former=former).kept(())}).former == former


@pytest.mark.parametrize(
    "details",
    [
        {},
        {KEPT: 3},
        {KEPT: {"shown": [], "replaced": {"a": 1}, "other_parents": {"a": "b"}, "former": {"a": {"en": "b"}}}},
        {KEPT: {"shown": {"a": 1}}},
    ],
)
def test_a_manifest_of_another_form_says_nothing(details: dict[str, object]) -> None:
    found = of_details(details)
    assert (dict(found.shown), dict(found.replaced), dict(found.other_parents)) == ({}, {}, {})


@given(st.lists(st.sets(st.integers(0, 6), max_size=3), min_size=7, max_size=7), st.sets(st.integers(0, 6)))
def test_closing_adds_all_that_is_above(choices: list[set[int]], given_: set[int]) -> None:
    parents = [sorted(above for above in choices[node] if above < node) for node in range(7)]
    tree = Taxonomy.from_parents([f"n{node}" for node in range(7)], [min(above, default=-1) for above in parents])
    number = tree.find([f"n{node}" for node in range(7)])
    edges = [(number[node], number[above]) for node in range(7) for above in parents[node]]
    wanted: set[int] = set()
    waiting = list(given_)
    while waiting:
        node = waiting.pop()
        wanted.add(node)
        waiting += parents[node]
    row = sp.csr_matrix((np.ones(len(given_), bool), ([0] * len(given_), number[sorted(given_)])), shape=(1, 7))
    closed = with_ancestors(tree, row, [edge[0] for edge in edges], [edge[1] for edge in edges])
    assert closed.indices.tolist() == sorted(number[sorted(wanted)].tolist())
    assert VersionLabels().closed(tree, row) is row
