"""Labels that an import leaves out: named one by one, by group or by state; what is below them moves up."""

from pathlib import Path
from typing import Any

import pytest
from asking import TestClient, problem
from working import answers, train, upload

from app.formats.hierarchies.exclusion import Exclusion
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.table import FormatError
from app.hierarchies.schemas import HierarchyOptions

T = "http://example.org/t/"
SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix : <http://example.org/t/> .
:Place rdfs:subClassOf skos:Concept .
:Group rdfs:subClassOf skos:Concept .
:geo skos:hasTopConcept :town .
:top a :Group ; skos:prefLabel "Top"@en .
:craft a skos:Concept ; skos:broader :top ; skos:prefLabel "Crafts"@en .
:bake a skos:Concept ; skos:broader :craft, :food ; skos:prefLabel "Baking"@en .
:food a skos:Concept ; skos:broader :top ; skos:inScheme :main ; skos:prefLabel "Food"@en .
:town a :Place ; skos:prefLabel "Town"@en .
:inn a :Place ; skos:broader :town ; skos:inScheme :geo ; skos:prefLabel "Inn"@en .
:few a skos:Collection ; skos:member :more, :craft .
:more a skos:Collection ; skos:member :food .
:sorted a skos:OrderedCollection ; skos:memberList ( :inn :more ) .
:stale a skos:Concept ; skos:broader :food ; owl:deprecated true ; skos:prefLabel "Stale"@en .
"""
ALL = {"top", "craft", "bake", "food", "town", "inn", "stale"}


def read(tmp_path: Path, exclude: str | None, format: str = "skos", content: str = SKOS, **options: Any) -> Vocabulary:
    path = tmp_path / "vocabulary"
    path.write_text(content)
    return parse_hierarchy(path, format, HierarchyOptions(exclude=exclude, **{"tree": "first", **options}))


def short(names: Any) -> set[str]:
    return {name.removeprefix(T) for name in names}


@pytest.mark.parametrize(
    ("exclude", "gone"),
    [
        (f"{T}bake", {"bake"}),
        (f"{T}bake, {T}inn,", {"bake", "inn"}),
        (f"{T}bake\n{T}inn\n", {"bake", "inn"}),
        (f"label={T}bake", {"bake"}),
        (f"type={T}Place", {"town", "inn"}),
        (f"type={T}Group,deprecated", {"top", "stale"}),
        (f"scheme={T}geo", {"town", "inn"}),
        (f"scheme={T}main", {"food"}),
        (f"collection={T}few", {"craft", "food"}),
        (f"collection={T}more", {"food"}),
        (f"collection={T}sorted", {"inn", "food"}),
    ],
)
def test_labels_are_excluded_by_name_group_and_state(tmp_path: Path, exclude: str, gone: set[str]) -> None:
    found = read(tmp_path, exclude)
    assert short(found.tree.names) == ALL - gone
    assert short(name for name, label in found.retired.items() if label.excluded) == gone
    assert short(found.labels) == ALL - gone
    assert found.retired[T + sorted(gone)[0]].names["en"]


def test_deprecated_excludes_nothing_where_no_label_is(tmp_path: Path) -> None:
    fresh = "\n".join(line for line in SKOS.splitlines() if "deprecated" not in line)
    found = read(tmp_path, "deprecated", content=fresh)
    assert short(found.tree.names) == ALL - {"stale"}
    assert found.retired == {}


def test_what_is_below_an_excluded_label_moves_up(tmp_path: Path) -> None:
    found = read(tmp_path, f"{T}craft,{T}top")
    assert (f"{T}craft", f"{T}bake") not in found.tree.edges
    assert ("root", f"{T}bake") in found.tree.edges
    graph = read(tmp_path, f"{T}craft", tree="graph")
    assert {parent.removeprefix(T) for parent, child in graph.tree.edges if child == f"{T}bake"} == {"food", "top"}
    # the kept parent says all that the top says
    graph = read(tmp_path, f"{T}craft,{T}top", tree="graph")
    assert {parent.removeprefix(T) for parent, child in graph.tree.edges if child == f"{T}bake"} == {"food"}


def test_chains_of_excluded_labels_are_climbed_at_once(tmp_path: Path) -> None:
    # two ways at each of 60 levels: a walk along each way would not end
    lines = ["parent,child", "root,a0", "root,b0"]
    for level in range(1, 60):
        lines += [f"{above}{level - 1},{below}{level}" for above in "ab" for below in "ab"]
    exclude = ",".join(f"{side}{level}" for side in "ab" for level in range(1, 59))
    found = read(tmp_path, exclude, "csv", "\n".join(lines) + "\n", tree="graph")
    assert set(found.tree.edges) == {("root", "a0"), ("root", "b0"), *((f"{a}0", f"{b}59") for a in "ab" for b in "ab")}


@pytest.mark.parametrize(
    ("format", "exclude", "fault"),
    [
        ("skos", f"{T}nobody", "exclude names labels that the file does not have: 'http://example.org/t/nobody'"),
        ("skos", f"scheme={T}none", "exclude: no concept of the file has the scheme 'http://example.org/t/none'"),
        ("skos", ",".join(T + name for name in sorted(ALL)), "exclude leaves no label"),
        ("paths", "type=a", "exclude names concepts by type, which files of the format paths do not have"),
    ],
)
def test_what_excludes_nothing_or_all_is_refused(tmp_path: Path, format: str, exclude: str, fault: str) -> None:
    with pytest.raises(FormatError, match=fault.replace("(", r"\(")):
        read(tmp_path, exclude, format, SKOS if format == "skos" else "a > b\na > c\n")


def test_other_formats_exclude_labels_with_commas_by_lines() -> None:
    assert Exclusion.parse("a, b\nc").labels == ("a, b", "c")
    assert Exclusion.parse("a, b").labels == ("a", "b")
    assert Exclusion.parse("x=y").labels == ("x=y",)
    assert Exclusion.parse(None) == Exclusion()


@pytest.mark.parametrize("solver", ["node_svm", "subjects"])
def test_no_answer_has_an_excluded_label_and_rows_with_one_are_reported(client: TestClient, solver: str) -> None:
    query = {"name": "voc", "format": "skos", "tree": "first", "exclude": f"type={T}Place,deprecated"}
    made = client.post("/api/v1/hierarchies", params=query, content=SKOS.encode()).json()
    assert (made["n_nodes"], made["n_retired"]) == (4, 3)
    retired = client.get("/api/v1/hierarchies/voc/retired").json()["labels"]
    assert {each["name"].removeprefix(T): each["excluded"] for each in retired} == dict.fromkeys(
        ("town", "inn", "stale"), True
    )
    words = {"bake": "oven baking dough", "food": "food soup plate", "craft": "crafts wood nail", "inn": "inn beer bed"}
    lines = [f"{words[name]} {i % 3}\t<{T}{name}>" for i in range(10) for name in words]
    upload(client, "texts", "\n".join(lines) + "\n", "annif")
    body = {"kind": "train", "dataset": "texts", "model": "m", "solver": solver, "hierarchy": "voc"}
    refused = problem(client.post("/api/v1/jobs", json=body), 422, "invalid_input")
    assert "retired" in refused["errors"][0]["detail"]
    job = train(client, "texts", "m", solver=solver, hierarchy="voc", unknown_labels="drop")
    assert job["state"] == "succeeded", job
    asked = {"instances": [{"text": "an inn with beer"}, {"text": "Town of baking"}], "top_k": 10}
    predicted = answers(client, "m", asked)["predictions"]
    every = {label["label"] for each in predicted for label in each["top"]}
    assert every
    assert not every & {f"{T}inn", f"{T}town", f"{T}stale"}
