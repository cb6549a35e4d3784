"""Vocabularies as publishers ship them: ids, names by language, states, several parents, compressed or not."""

import gzip
import lzma
import warnings
from pathlib import Path
from typing import Any

import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from app.formats.hierarchies.apart import read_hierarchy
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.several_parents import cycles, longest_ways
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.table import FormatError
from app.hierarchies.schemas import HierarchyOptions

SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix : <http://example.org/t/> .

:Topic rdfs:subClassOf skos:Concept .
:scheme skos:hasTopConcept :craft .
:craft a skos:Concept ; skos:notation "C" ; skos:prefLabel "Crafts"@en, "Handwerk"@de .
:food a skos:Concept ; skos:notation "F" ; skos:prefLabel "Food"@en-GB, "Essen"@de .
:bake a :Topic ; skos:notation "B" ; skos:prefLabel "Baking"@en, "Backen"@de ; skos:altLabel "Bakery"@en ;
  skos:broader :craft, :food .
:food skos:narrower :bread .
:bread a skos:Concept ; skos:notation "R" ; skos:prefLabel "Bread"@en, "Brot"@de ; skos:broader :bake .
:loaf a skos:Concept ; skos:notation "L" ; rdfs:label "Loaves"@en ; owl:deprecated true ; dct:isReplacedBy :bread .
:old rdfs:label "Old"@en ; owl:deprecated true .
"""
OBO = """format-version: 1.4

[Term]
id: X:1
name: thing

[Term]
id: X:2
name: part ! of
alt_id: X:3
alt_id: X:4
synonym: "Teil" EXACT []
is_a: X:1 ! thing
relationship: part_of X:1

[Term]
id: X:3
name: old
is_obsolete: true
replaced_by: X:2

[Typedef]
id: part_of
name: part of
"""
CLAML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE ClaML SYSTEM "ClaML.dtd">
<ClaML version="2.0.0"><Title name="test"/>
<Modifier code="S"/><ModifierClass code=".0" modifier="S"/>
<Class code="I" kind="chapter"><SubClass code="A0"/>
<Rubric kind="preferred"><Label xml:lang="de">Kapitel <Reference>eins</Reference></Label></Rubric></Class>
<Class code="A0" kind="category"><SuperClass code="I"/><ModifiedBy code="S"/>
<Rubric kind="preferred"><Label xml:lang="de">Grippe</Label></Rubric>
<Rubric kind="inclusion"><Label xml:lang="de">Influenza</Label></Rubric></Class></ClaML>
"""
T = "http://example.org/t/"


def read(tmp_path: Path, format: str, content: str, **options: str) -> Vocabulary:
    path = tmp_path / "vocabulary"
    path.write_text(content)
    return parse_hierarchy(path, format, HierarchyOptions(**options))  # type: ignore[arg-type]


def names(vocabulary: Vocabulary, language: str = "und") -> dict[str, str]:
    return {name: label.names[language] for name, label in vocabulary.labels.items() if language in label.names}


def facts(vocabulary: Vocabulary) -> dict[str, Any]:
    return {name: label.facts() for name, label in [*vocabulary.labels.items(), *vocabulary.retired.items()]}


def _every_edge(vocabulary: Vocabulary) -> set[tuple[str, str]]:
    return {*vocabulary.tree.edges, *((each.parent, each.label) for each in vocabulary.dropped)}


@pytest.mark.parametrize("between", [" - ", " : ", "      : "])
def test_paths_with_ids_below_comments_are_labels_by_id(tmp_path: Path, between: str) -> None:
    lines = [("g/3", "Toys > Puzzles"), ("g/1", "Toys"), ("g/2", "Arts & Crafts"), ("g/4", "Toys > Puzzles > 3-D")]
    content = "# Categories, 2026-01\n# id: path\n\n" + "".join(f"{id}{between}{path}\n" for id, path in lines)
    found = read(tmp_path, "paths", content, language="en-US")
    assert found.tree.edges == [("root", "g/1"), ("root", "g/2"), ("g/1", "g/3"), ("g/3", "g/4")]
    assert names(found, "en-us") == {"g/1": "Toys", "g/2": "Arts & Crafts", "g/3": "Puzzles", "g/4": "3-D"}
    assert found.read_as == {"separator": " > ", "id_separator": f" {between.strip()} ", "comments": "2"}


def test_what_looks_like_ids_or_comments_may_be_said_to_be_none(tmp_path: Path) -> None:
    assert read(tmp_path, "paths", "#a.b\n#c\n", comment="none").tree.names == ("#a", "#c", "#a.b")
    found = read(tmp_path, "paths", "Toys - Games > X\nToys - Dolls > Y\n", id_separator="none")
    assert found.tree.names == ("Toys - Games", "Toys - Dolls", "Toys - Games > X", "Toys - Dolls > Y")
    assert read(tmp_path, "paths", "a > b.c\n").tree.names == ("a", "a > b.c")


def test_a_table_may_have_titles_above_its_header_and_columns_of_any_name(tmp_path: Path) -> None:
    content = (
        "Ids\t\t\tTiers\t\tMore\nUnique ID\tParent\tName\tTier 1\tTier 2\t\n7\t\tArt\tArt\t\n9\t7\tOils\tArt\tOils\tx\n"
    )
    found = read(tmp_path, "csv", content)
    assert found.tree.edges == [("root", "7"), ("7", "9")]
    assert names(found) == {"7": "Art", "9": "Oils"}
    assert (found.read_as["header"], found.read_as["delimiter"], found.read_as["names"]) == ("2", "tab", "Name")
    content = "Oberklasse;Klasse;Text@de;Text@en;Kurz\n;A;Kunst;Art;K\nA;B;Öl;Oils;Ö\n"
    options = {"parent_field": "Oberklasse", "id_field": "Klasse", "name_field": "Text", "notation_field": "Kurz"}
    found = read(tmp_path, "csv", content, **options)
    assert (names(found, "de"), names(found, "en")) == ({"A": "Kunst", "B": "Öl"}, {"A": "Art", "B": "Oils"})
    assert found.labels["B"].notation == "Ö"


def test_objects_may_have_ids_beside_their_names(tmp_path: Path) -> None:
    content = '[{"id": 1, "name": "Art", "code": "K", "children": [{"id": "x", "name": "Oils"}]}]'
    found = read(tmp_path, "json", content, id_field="id", notation_field="code", language="en")
    assert found.tree.edges == [("root", "1"), ("1", "x")]
    assert names(found, "en") == {"1": "Art", "x": "Oils"}
    assert found.labels["1"].notation == "K"


@pytest.mark.parametrize(
    ("rule", "edges", "dropped"),
    [
        ("first", [("root", "a"), ("root", "b"), ("a", "d"), ("b", "c")], [("d", "c", 6)]),
        ("deepest", [("root", "a"), ("root", "b"), ("b", "c"), ("c", "d")], [("d", "a", 4)]),
        ("graph", [("root", "a"), ("root", "b"), ("b", "c"), ("c", "d"), ("a", "d")], []),
    ],
)
def test_a_tree_keeps_one_of_two_parents_and_tells_the_other_and_a_graph_keeps_both(
    tmp_path: Path, rule: str, edges: list[tuple[str, str]], dropped: list[tuple[str, str, int]]
) -> None:
    found = read(tmp_path, "csv", "child,parent\na,\nb,\nd,a\nc,b\nd,c\n", tree=rule)
    assert sorted(found.tree.edges) == sorted(edges)
    assert [tuple(each) for each in found.dropped] == dropped


def test_skos_gives_names_notations_states_and_what_replaces_a_label(tmp_path: Path) -> None:
    found = read(tmp_path, "skos", SKOS, tree="first")
    assert found.tree.edges == [
        ("root", T + "craft"),
        ("root", T + "food"),
        (T + "craft", T + "bake"),
        (T + "bake", T + "bread"),
    ]
    bake = found.labels[T + "bake"]
    assert (bake.names, bake.alternatives) == ({"en": "Baking", "de": "Backen"}, {"en": ["Bakery"]})
    assert (bake.notation, bake.deprecated) == ("B", False)
    assert [(each.label, each.parent, each.line) for each in found.dropped] == [
        (T + "bake", T + "food", 11), (T + "bread", T + "food", 14),
    ]  # fmt: skip
    assert found.retired[T + "loaf"].replaced_by == [T + "bread"]
    assert found.retired[T + "old"].names == {"en": "Old"}
    with pytest.raises(FormatError) as refused:
        read(tmp_path, "skos", SKOS)
    assert [fault.row for fault in refused.value.errors] == [11, 14]


def test_the_first_parent_is_the_first_that_the_concept_names(tmp_path: Path) -> None:
    above = ":one a skos:Concept . :two a skos:Concept .\n"
    content = SKOS + above + (
        ":early a skos:Concept ; skos:broader :two .\n"  # two is named first in the file, and one first by late
        ":late a skos:Concept ; skos:broader :one, :two .\n"
    )  # fmt: skip
    found = read(tmp_path, "skos", content, tree="first")
    assert (T + "one", T + "late") in found.tree.edges
    assert (T + "late", T + "two") in [(each.label, each.parent) for each in found.dropped]


def test_a_deprecated_concept_with_a_place_stays_in_the_tree(tmp_path: Path) -> None:
    found = read(tmp_path, "skos", SKOS + ":loaf skos:broader :bread .\n", tree="first")
    assert found.labels[T + "loaf"].deprecated
    assert T + "loaf" not in found.retired


def test_concepts_may_be_called_by_their_notation_and_names_be_kept_of_some_languages(tmp_path: Path) -> None:
    found = read(tmp_path, "skos", SKOS, tree="deepest", label="notation", languages="en")
    assert found.tree.names == ("C", "F", "B", "R")
    assert found.labels["F"].id == T + "food"
    assert (found.labels["F"].names, found.labels["C"].names) == ({"en-gb": "Food"}, {"en": "Crafts"})
    assert found.retired["L"].replaced_by == ["R"]


def test_languages_are_kept_in_any_case_of_their_tags(tmp_path: Path) -> None:
    found = read(tmp_path, "skos", SKOS, tree="deepest", label="notation", languages="en-GB")
    assert (found.labels["F"].names, found.labels["C"].names) == ({"en-gb": "Food"}, {})


@pytest.mark.parametrize("syntax", ["turtle", "xml", "json-ld", "nt", "n3", "trig", "nquads"])
def test_every_serialisation_gives_the_same_vocabulary(tmp_path: Path, syntax: str) -> None:
    content = _written(SKOS, syntax)
    reported = {"turtle", "xml", "json-ld", "nt"}
    found = read(tmp_path, "skos", content, tree="deepest", **({} if syntax in reported else {"syntax": syntax}))
    expected = read(tmp_path, "skos", SKOS, tree="deepest")
    # which of two parents at the same depth is the first depends on the order in which triples were written
    assert _every_edge(found) == _every_edge(expected)
    assert dict(found.labels) == dict(expected.labels)
    assert dict(found.retired) == dict(expected.retired)


def test_labels_of_skos_xl_are_names(tmp_path: Path) -> None:
    content = SKOS + (
        "@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .\n"
        ':tea a skos:Concept ; xl:prefLabel [ xl:literalForm "Tea"@en ] ; xl:altLabel [ xl:literalForm "Chai"@en ] .\n'
    )
    tea = read(tmp_path, "skos", content, tree="first").labels[T + "tea"]
    assert (tea.names, tea.alternatives) == ({"en": "Tea"}, {"en": ["Chai"]})


def test_obo_terms_hang_below_what_they_are_and_obsolete_ones_are_retired(tmp_path: Path) -> None:
    found = read(tmp_path, "obo", OBO, language="en")
    assert found.tree.edges == [("root", "X:1"), ("X:1", "X:2")]
    assert (names(found, "en")["X:2"], found.labels["X:2"].alternatives) == ("part", {"en": ["Teil"]})
    assert found.retired["X:3"].replaced_by == ["X:2"]
    assert found.retired["X:3"].names == {"en": "old"}
    # merged into another term
    assert (found.retired["X:4"].deprecated, found.retired["X:4"].replaced_by) == (True, ["X:2"])


def test_claml_classes_have_names_from_their_preferred_rubrics(tmp_path: Path) -> None:
    found = read(tmp_path, "claml", CLAML)
    assert found.tree.edges == [("root", "I"), ("I", "A0")]
    assert names(found, "de") == {"I": "Kapitel eins", "A0": "Grippe"}
    assert found.labels["A0"].alternatives == {"de": ["Influenza"]}
    assert found.read_as == {"modifiers": "1, not expanded"}


@pytest.mark.parametrize("pack", [gzip.compress, pytest.param(lzma.compress, marks=pytest.mark.slow)])
def test_a_compressed_file_is_read_as_it_is_unpacked(tmp_path: Path, pack: object) -> None:
    path = tmp_path / "packed"
    path.write_bytes(pack(SKOS.encode()))  # type: ignore[operator]
    options = HierarchyOptions(tree="first")
    found = read_hierarchy(path, "skos", options, Bounds(), lambda: None)
    expected = read(tmp_path, "skos", SKOS, tree="first")
    assert found.tree == expected.tree
    assert (facts(found), list(found.dropped)) == (facts(expected), list(expected.dropped))
    assert found.read_as == {"syntax": "turtle"}
    with pytest.raises(FormatError, match="decompresses to more than 500 bytes"):
        read_hierarchy(path, "skos", options, Bounds(n_bytes=500), lambda: None)


def test_entities_that_swell_are_refused(tmp_path: Path) -> None:
    swelling = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 30}">' for i in range(1, 9))
    content = f'<!DOCTYPE ClaML [<!ENTITY e0 "lots">{swelling}]>\n<ClaML>&e8;</ClaML>'
    for format in ("claml", "skos"):
        with pytest.raises(FormatError, match="amplification"):
            read(tmp_path, format, content)


EXAMPLES = [
    ("skos", SKOS, "turtle"),
    ("skos", SKOS, "xml"),
    ("skos", SKOS, "json-ld"),
    ("skos", SKOS, "nquads"),
    ("obo", OBO, ""),
    ("claml", CLAML, ""),
    ("paths", "# Categories\n1 - Toys\n2 - Toys > Puzzles\n3 - Toys > Puzzles > 3-D\n", ""),
    ("csv", "Title\nCode\tParent\tName@de\n1\t\tKunst\n2\t1\tÖl\n", ""),
]


def _written(content: str, syntax: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rdflib's datasets call what they deprecate
        several = syntax in ("trig", "nquads")
        graph = rdflib.Dataset(default_union=True) if several else rdflib.Graph()
        graph.parse(data=content, format="turtle")
        return graph.serialize(format={"nt": "nt11"}.get(syntax, syntax))


def _mutate(path: Path, format: str, content: bytes, syntax: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(content)))
    length = data.draw(st.integers(0, 12))
    pieces = [
        b"",
        b"\n",
        b'"',
        b"<",
        b">",
        b"&",
        b"{",
        b"[",
        b"]",
        b"\x00",
        b"\xff",
        b"#",
        b" > ",
        b"\t",
        b"@en",
        b"\\u",
    ]
    piece = data.draw(st.sampled_from(pieces) | st.binary(max_size=8))
    path.write_bytes(content[:at] + piece + content[at + length :])
    options = HierarchyOptions(tree="deepest", syntax=syntax or None)  # type: ignore[arg-type]
    try:
        found = parse_hierarchy(path, format, options)
    except FormatError:
        return
    assert set(found.labels) <= set(found.tree.names)
    assert not set(found.retired) & set(found.tree.names)


@pytest.mark.parametrize(("format", "content", "syntax"), EXAMPLES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, format: str, content: str, syntax: str, data: st.DataObject
) -> None:
    _mutate(
        tmp_path_factory.getbasetemp() / "damaged",
        format,
        (_written(content, syntax) if syntax else content).encode(),
        syntax,
        data,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("format", "content", "syntax"), EXAMPLES)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_many_damaged_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, format: str, content: str, syntax: str, data: st.DataObject
) -> None:
    _mutate(
        tmp_path_factory.getbasetemp() / "much-damaged",
        format,
        (_written(content, syntax) if syntax else content).encode(),
        syntax,
        data,
    )


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefghr"), min_size=1, unique=True)))
def test_there_is_a_cycle_where_the_longest_way_up_has_no_end(parents: dict[str, list[str]]) -> None:
    found = list(cycles(parents))
    assert bool(found) == (len(longest_ways(parents)) < len(parents))
    for cycle in found:
        assert all(above in parents[child] for child, above in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


@pytest.mark.parametrize("brackets", [True, False])
def test_a_list_of_uris_and_names_is_a_flat_vocabulary(tmp_path: Path, brackets: bool) -> None:
    rows = [("http://example.org/p1", "cats"), ("http://example.org/p2", "dogs\t12.3")]
    path = tmp_path / "subjects.tsv"
    path.write_text("".join(f"<{uri}>\t{name}\n" if brackets else f"{uri}\t{name}\n" for uri, name in rows))
    found = parse_hierarchy(path, "csv", HierarchyOptions(language="en"))
    assert found.tree.edges == [("root", uri) for uri, _ in rows]
    assert found.labels["http://example.org/p1"].names == {"en": "cats"}
    assert found.labels["http://example.org/p2"].notation == "12.3"
    path.write_text("<http://example.org/p1>\tcats\nno uri here\n")
    with pytest.raises(FormatError, match="expected a URI, a tab and a name"):
        parse_hierarchy(path, "csv")


@pytest.mark.parametrize(
    ("format", "content", "line"),
    [
        ("csv", b"child,parent,name\na,root,one\nb,root,two\0\n", 3),
        ("paths", b"one > two\none > t\0wo\n", 2),
        ("json", b'{"a": null,\n "two\\u0000": null}', 2),
        ("json", b'{"a": null,\n "\\ud800": null}', 2),
        (
            "skos",
            b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
            b"<http://x/1> a skos:Concept ; skos:prefLabel 'one'@en .\n"
            b"<http://x/2> a skos:Concept ; skos:prefLabel 'two\\u0000'@en .\n",
            3,
        ),
        ("obo", b"[Term]\nid: x:1\nname: one\n\n[Term]\nid: x:2\nname: t\0wo\n", 7),
    ],
)
def test_names_that_cannot_be_stored_are_refused_with_their_line(
    tmp_path: Path, format: str, content: bytes, line: int
) -> None:
    path = tmp_path / "vocabulary"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        parse_hierarchy(path, format)
    assert [error.row for error in caught.value.errors] == [line]


def test_pairs_of_surrogates_and_escaped_backslashes_are_text(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary"
    path.write_bytes(b'{"\\ud83d\\ude00": null, "c:\\\\u0000": null}')
    assert set(parse_hierarchy(path, "json").tree.names) == {"\U0001f600", "c:\\u0000"}


@pytest.mark.parametrize("uri", ["http://example.org/1", "<http://example.org/1>"])
def test_vocabularies_of_annif_in_csv_have_names_by_language(tmp_path: Path, uri: str) -> None:
    content = f'uri,label_fi,label_en,notation\n{uri},"ruis, jyvä",rye,63\nhttp://example.org/2,kaura,,\n'
    found = read(tmp_path, "csv", content)
    assert found.tree.edges == [("root", "http://example.org/1"), ("root", "http://example.org/2")]
    first, second = found.labels["http://example.org/1"], found.labels["http://example.org/2"]
    assert (first.names, first.notation) == ({"fi": "ruis, jyvä", "en": "rye"}, "63")
    assert (second.names, second.notation) == ({"fi": "kaura"}, None)
    assert read(tmp_path, "csv", content, languages="en").labels["http://example.org/1"].names == {"en": "rye"}


def test_a_classification_of_activities_has_its_descriptions_as_names(tmp_path: Path) -> None:
    """The header as Eurostat ships NACE."""
    content = 'Order,Level,Code,Parent,Description,Rulings\n1,1,A,,"AGRICULTURE, FORESTRY",\n2,2,01,A,Crops,\n'
    found = read(tmp_path, "csv", content, language="en")
    assert found.tree.edges == [("root", "A"), ("A", "01")]
    assert found.labels["A"].names == {"en": "AGRICULTURE, FORESTRY"}
