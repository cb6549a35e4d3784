"""What Annif is given: a vocabulary with preferred and other names, documents, and a section for each project."""

from rdflib import SKOS, Literal, URIRef

from app.features.concept_names import ConceptName
from benchmarks.subjects_peers import concept_graph, documents, section

CONCEPTS = ["http://example.org/cats", "http://example.org/dogs"]


def test_the_first_name_is_preferred_and_concepts_without_names_have_their_address():
    graph = concept_graph(CONCEPTS, [ConceptName(0, "kissat"), ConceptName(0, "kissa")], "fi")
    cats, dogs = map(URIRef, CONCEPTS)
    assert list(graph.objects(cats, SKOS.prefLabel)) == [Literal("kissat", lang="fi")]
    assert list(graph.objects(cats, SKOS.altLabel)) == [Literal("kissa", lang="fi")]
    assert list(graph.objects(dogs, SKOS.prefLabel)) == [Literal(CONCEPTS[1], lang="fi")]


def test_documents_have_a_line_each_and_all_addresses(tmp_path):
    path = documents(tmp_path / "rows.tsv", [("a\ttext\nof lines", CONCEPTS), ("another", CONCEPTS[1:])])
    first, second = path.read_text().splitlines()
    assert first == "a text of lines\t<http://example.org/cats> <http://example.org/dogs>"
    assert second == "another\t<http://example.org/dogs>"


def test_a_section_names_backend_analyzer_and_options():
    assert section("trees", "omikuji", "simplemma(fi)", "fi", {"max_depth": "3"}).splitlines() == [
        "[trees]", "name=trees", "language=fi", "backend=omikuji", "analyzer=simplemma(fi)", "vocab=vocabulary",
        "max_depth=3",
    ]  # fmt: skip
