"""MeSH's descriptors: several tree numbers, names and entry terms, translations, and numbers that make a cycle."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from mesh_of_2026 import DESC2026

from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.table import FormatError
from app.hierarchies.schemas import HierarchyOptions


def descriptor(id: str, name: str, *numbers: str, terms: tuple[str, ...] = ()) -> str:
    listed = "".join(f"<TreeNumber>{number}</TreeNumber>" for number in numbers)
    said = "".join(f"<Term><TermUI>T1</TermUI><String>{term}</String></Term>" for term in (name, *terms))
    return f"""<DescriptorRecord DescriptorClass="1"><DescriptorUI>{id}</DescriptorUI>
<DescriptorName><String>{name}</String></DescriptorName>
<SeeRelatedList><SeeRelatedDescriptor><DescriptorReferredTo><DescriptorUI>D999</DescriptorUI>
<DescriptorName><String>Other</String></DescriptorName></DescriptorReferredTo></SeeRelatedDescriptor></SeeRelatedList>
<TreeNumberList>{listed}</TreeNumberList>
<ConceptList><Concept PreferredConceptYN="Y"><ConceptUI>M1</ConceptUI><ConceptName><String>{name}</String></ConceptName>
<TermList>{said}</TermList></Concept></ConceptList></DescriptorRecord>
"""


def read(folder: Path, *descriptors: str, language: str = "eng", **options: str) -> Vocabulary:
    path = folder / "desc.xml"
    path.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE DescriptorRecordSet SYSTEM "https://example.org/desc.dtd">\n'
        f'<DescriptorRecordSet LanguageCode = "{language}">\n{"".join(descriptors)}</DescriptorRecordSet>\n'
    )
    return parse_hierarchy(path, "mesh", HierarchyOptions.model_validate(options))


BODY = descriptor("D1", "Body Regions", "A01")
HEAD = descriptor("D2", "Head", "A01.456", "B02.1", terms=("Caput",))
TISSUE = descriptor("D3", "Tissues", "B02")
FEMALE = descriptor("D4", "Female")


def test_a_descriptor_is_below_those_whose_numbers_its_own_continue(tmp_path: Path) -> None:
    found = read(tmp_path, BODY, HEAD, TISSUE, FEMALE, tree="first")
    assert sorted(found.tree.edges) == [("D1", "D2"), ("root", "D1"), ("root", "D3"), ("root", "D4")]
    assert [(each.label, each.parent) for each in found.dropped] == [("D2", "D3")]
    assert found.labels["D2"].names == {"en": "Head"}
    assert found.labels["D2"].alternatives == {"en": ["Caput"]}
    assert found.labels["D2"].notation == "A01.456"
    with pytest.raises(FormatError, match="'D2' has two parents"):
        read(tmp_path, BODY, HEAD, TISSUE)


def test_translations_have_both_names(tmp_path: Path) -> None:
    found = read(tmp_path, descriptor("D2", "Head[Kopf]", "A01", terms=("Haupt",)), language="ger")
    assert found.labels["D2"].names == {"de": "Kopf", "en": "Head"}
    assert "Haupt" in found.labels["D2"].alternatives["de"]


def test_the_longest_number_of_a_cycle_gives_way(tmp_path: Path) -> None:
    ethics = descriptor("D1", "Ethics", "F1", "K1.2.3")
    morals = descriptor("D2", "Morals", "F1.5", "K1.2")
    found = read(tmp_path, ethics, morals, descriptor("D3", "Humanities", "K1"), tree="deepest")
    assert [(each.label, each.parent) for each in found.dropped][-1] == ("D1", "D2")
    assert found.read_as["cycles"] == "1, opened"
    assert ("D3", "D2") in found.tree.edges or ("D1", "D2") in found.tree.edges


@pytest.mark.parametrize(
    ("descriptors", "line", "detail"),
    [
        ((HEAD,), 8, "no descriptor has the tree number 'A01', which 'A01.456' is below"),
        ((BODY, BODY), 11, "the descriptor 'D1' is given twice, first on line 4"),
        ((BODY, descriptor("D7", "x", "A01")), 15, "the tree number 'A01' is also that of 'D1'"),
        ((descriptor("", "x"),), 4, "the descriptor has no DescriptorUI"),
        (("<a/>",), 1, "the file has no edges"),
    ],
)
def test_faults_have_their_lines(tmp_path: Path, descriptors: tuple[str, ...], line: int, detail: str) -> None:
    with pytest.raises(FormatError) as refused:
        read(tmp_path, *descriptors, tree="first")
    assert detail in refused.value.errors[0].detail
    assert refused.value.errors[0].row == line
    (tmp_path / "x").write_text("<rdf/>")
    with pytest.raises(FormatError, match="the document's element is 'rdf', expected DescriptorRecordSet"):
        parse_hierarchy(tmp_path / "x", "mesh")


def test_a_file_in_the_shape_of_the_publisher_is_read_as_another_parser_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "desc2026.xml"
    path.write_text(DESC2026, encoding="utf-8")
    found = parse_hierarchy(path, "mesh", HierarchyOptions(tree="first"))
    records = ElementTree.parse(path).getroot().findall("DescriptorRecord")
    numbers = {record.findtext("DescriptorUI"): [each.text for each in record.iter("TreeNumber")] for record in records}
    owner = {number: id for id, some in numbers.items() for number in some}
    above = {(owner.get(str(n).rpartition(".")[0], "root"), id) for id, some in numbers.items() for n in some or [""]}
    dropped = {(each.parent, each.label) for each in found.dropped}
    assert set(found.tree.edges) | dropped == above
    assert not set(found.tree.edges) & dropped
    assert len(found.labels) == len(records)
    for record in records:
        label = found.labels[str(record.findtext("DescriptorUI"))]
        name = str(record.findtext("DescriptorName/String")).strip()
        terms = [str(term.text) for term in record.iterfind("ConceptList/Concept/TermList/Term/String")]
        assert label.names == {"en": name}
        assert list(label.alternatives.get("en", ())) == list(dict.fromkeys(t for t in terms if t != name))
        assert label.notation == next(iter(numbers[record.findtext("DescriptorUI")]), None)
