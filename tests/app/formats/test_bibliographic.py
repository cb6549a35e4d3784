"""Dublin Core and JSON-LD: the rows that rdflib finds in the same files, fields by name, and records without a text."""

import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import rdflib
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdflib.namespace import DCTERMS

from app.datasets.client import format_of
from app.datasets.schemas import ImportOptions, TableSample
from app.formats import jsonld_documents
from app.formats.bibliographic import TEXT_FIELDS
from app.formats.detection import declared_format
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed
from app.formats.table_samples import plain_sample
from app.formats.window import Window

CORPUS = Path(__file__).parents[2] / "corpus" / "datasets"
Rows = dict[str, tuple[str, list[str]]]

OAI = """<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>
<record><header><identifier>oai:x:1</identifier></header><metadata>
<d:dc xmlns:d="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:e="http://purl.org/dc/elements/1.1/">
<e:subject>Fish; Soups</e:subject><e:subject>http://x/1</e:subject><e:subject xml:lang="de-AT">Fische</e:subject>
<e:title xml:lang="en">Soups</e:title><e:title xml:lang="de">Suppen</e:title><e:title>Soups</e:title></d:dc>
</metadata></record></ListRecords></OAI-PMH>"""
RDF = """<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:t="http://purl.org/dc/terms/">
<r:Description r:about="http://x/1" t:title="Soups"><t:subject {}/></r:Description></r:RDF>"""


def read(path: Path, **options: Any) -> Parsed:
    given = ImportOptions(**options)
    return parse(path, declared_format(path, given), given)


def rows(parsed: Parsed) -> Rows:
    assert parsed.texts is not None
    assert parsed.ids is not None
    assert parsed.label_indptr is not None
    bounds = itertools.pairwise(parsed.label_indptr.tolist())
    sets = [[parsed.labels[at] for at in parsed.y[i:j]] for i, j in bounds]
    return {id: (text, labels) for id, text, labels in zip(parsed.ids, parsed.texts, sets, strict=True)}


def of_graph(path: Path, format: str) -> Rows:
    """What rdflib finds: titles and abstracts, and subjects by their addresses or values."""
    graph = rdflib.Graph()
    graph.parse(data=path.read_text(), format=format)
    found: Rows = {}
    for node in set(graph.subjects(DCTERMS.title)):
        texts = [str(text) for name in (DCTERMS.title, DCTERMS.abstract) for text in graph.objects(node, name)]
        labels = []
        for subject in graph.objects(node, DCTERMS.subject):
            is_blank = isinstance(subject, rdflib.BNode)
            labels.append(str(graph.value(subject, rdflib.RDF.value) if is_blank else subject))
        found[str(node)] = ("\n".join(texts), sorted(labels))
    return found


def write(folder: Path, content: str) -> Path:
    path = folder / "data"
    path.write_text(content)
    return path


def faults(path: Path, **options: Any) -> list[tuple[int, str]]:
    with pytest.raises(FormatError) as refused:
        read(path, **options)
    return [(each.row, each.detail) for each in refused.value.errors]


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning:rdflib")
@pytest.mark.parametrize(
    ("name", "format"), [("rdf.dublin_core", "xml"), ("good.jsonld", "json-ld"), ("expanded.jsonld", "json-ld")]
)
def test_the_rows_are_those_that_rdflib_finds(tmp_path: Path, name: str, format: str) -> None:
    path = CORPUS / name
    if name == "expanded.jsonld":  # rdflib reads no lists in lists
        nested = json.loads(path.read_text())
        flat = [node for each in nested for node in (each if isinstance(each, list) else [each])]
        other = write(tmp_path, json.dumps(flat))
    else:
        other = path
    assert rows(read(path)) == of_graph(other, format)


def test_records_of_oai_pmh_have_their_ids_and_deleted_ones_are_no_rows() -> None:
    assert rows(read(CORPUS / "good.dublin_core")) == {
        "oai:example.org:1": ("Soups of the coast\nForty recipes from fishing ports.", ["Cooking (Fish)", "Soups"]),
        "oai:example.org:3": ("Tides", ["Oceanography"]),
    }


def test_fields_languages_and_parts_may_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, OAI)
    assert rows(read(path)) == {"oai:x:1": ("Soups\nSuppen", ["Fische", "Fish; Soups", "http://x/1"])}
    for options, expected in (
        ({"text_fields": ("title@de",)}, ("Suppen", ["Fische", "Fish; Soups", "http://x/1"])),
        ({"label_fields": ("subject$id",)}, ("Soups\nSuppen", ["http://x/1"])),
        ({"label_fields": ("subject@de",)}, ("Soups\nSuppen", ["Fische"])),
        ({"label_fields": ("subject$value",), "label_separator": ";"}, ("Soups\nSuppen", ["Fische", "Fish", "Soups"])),
        ({"unlabelled": True}, ("Soups\nSuppen", [])),
    ):
        assert rows(read(path, **options)) == {"oai:x:1": expected}, options
    assert faults(path, text_fields=("650$a",)) == [
        (1, "'650$a' names no field: expected a name without prefix, as title, subject$id or title@de")
    ]


def test_subjects_in_rdf_are_addresses_names_or_refused(tmp_path: Path) -> None:
    for attributes, labels in (('r:resource="http://s/1"', ["http://s/1"]), ('xml:lang="de"', [])):
        assert rows(read(write(tmp_path, RDF.format(attributes)))) == {"http://x/1": ("Soups", labels)}
    found = faults(write(tmp_path, RDF.format('r:nodeID="b1"')))
    assert found[0][0] == 2
    assert "record 1 ('http://x/1'): its subject is the node 'b1' elsewhere in the file" in found[0][1]


@pytest.mark.parametrize("encoding", ["GBK", "Shift_JIS", "UTF-7", "nonsense"])
def test_other_encodings_of_several_bytes_are_refused(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.xml").write_text(f'<?xml version="1.0" encoding="{encoding}"?>\n{OAI}')
    with pytest.raises(FormatError, match="not XML: "):
        parse(tmp_path / "a.xml", "dublin_core", ImportOptions())


def test_a_field_that_no_record_has_is_no_field_of_labels(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(OAI)
    with pytest.raises(FormatError) as refused:
        read(tmp_path / "a.xml", label_fields=("subject@fr",))
    assert "no record has a label in subject@fr: name other fields" in refused.value.errors[0].detail
    assert read(tmp_path / "a.xml", unlabelled=True).labels == []


def test_nothing_outside_of_the_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("secret")
    entity = f'<!DOCTYPE r [<!ENTITY x SYSTEM "{tmp_path}/other">]>'
    path = write(tmp_path, f"{entity}<records><record><title>&x;</title><subject>a</subject></record></records>")
    assert faults(path) == [(1, "an entity is external and is not fetched")]
    line = {"@context": "http://127.0.0.1:9/none", "@id": "b", "name": "Tides", "about": [{"id": "s"}, 7]}
    assert rows(read(write(tmp_path, json.dumps(line)))) == {"b": ("Tides", ["7", "s"])}


def test_errors_name_the_line_and_the_record_within_a_graph(tmp_path: Path) -> None:
    nodes = [{"@id": "a", "title": "x"}, {"@id": "p", "@type": "Person", "name": "P"}, {"@id": "b", "subject": "s"}]
    graph = ",\n".join(map(json.dumps, nodes))
    found = faults(write(tmp_path, f'{{"@context": {{}},\n"@graph": [{graph}]}}'))
    assert found == [(4, f"record 2 ('b'): no text in {', '.join(TEXT_FIELDS)}: name other fields with text_fields")]


def test_a_context_after_a_graph_that_is_too_large_for_the_window_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"@graph": [{"@id": "x:1", "t": "One"}, {"@id": "x:2", "t": "Two"}], "@context": {"t": "dc:title"}}
    path = write(tmp_path, json.dumps(document))
    assert list(rows(read(path, unlabelled=True))) == ["x:1", "x:2"]
    monkeypatch.setattr(jsonld_documents, "Window", partial(Window, block_bytes=16))
    assert "the @context comes after the @graph: write it before" in faults(path)[0][1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["@id", "@type", "@value", "@graph", "@context", "@language", "@list", "title", "subject", "id", "de"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    documents=st.lists(st.dictionaries(st.sampled_from(["@context", "@id", "@graph", "title", "about"]), JSON)),
    indent=st.sampled_from([None, 1]),
    block=st.integers(4, 64),
)
def test_any_document_is_read_or_refused_whatever_the_size_of_a_block(
    tmp_path_factory: pytest.TempPathFactory, documents: list[dict[str, Any]], indent: int | None, block: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonld"
    path.write_text("\n".join(json.dumps(each, indent=indent) for each in documents))
    try:
        whole = rows_or_none(path)
    except FormatError:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonld_documents, "Window", partial(Window, block_bytes=block))
        try:
            assert rows_or_none(path) == whole
        except FormatError as error:
            late = "comes after the @graph", "elements that are not objects"
            assert any(each in error.errors[0].detail for each in late)  # noqa: PT017


def rows_or_none(path: Path) -> list[tuple[str, list[int]]]:
    parsed = parse(path, "jsonld", ImportOptions())
    assert parsed.texts is not None
    assert parsed.label_indptr is not None
    return [(text, parsed.label_indptr.tolist()) for text in parsed.texts]


def test_files_of_vocabularies_and_rows_of_labels_are_not_taken_for_records(tmp_path: Path) -> None:
    for name in ("xml.skos", "good.mesh", "good.claml"):
        with pytest.raises(FormatError, match="without MARC or Dublin Core records"):
            declared_format(CORPUS.parent / "hierarchies" / name, ImportOptions())
    path = write(tmp_path, '{"@id": "a", "text": "x", "label": "b"}')
    assert declared_format(path, ImportOptions()) == "jsonl"


def test_an_ending_decides_where_it_leaves_no_doubt(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"@context": {}, "@graph": []}')
    assert format_of(tmp_path / "a.json") is None
    assert format_of(Path("a.jsonld")) == "jsonld"
    with (
        pytest.raises(FormatError, match="files of the format jsonld have no columns to choose"),
        plain_sample((tmp_path / "a.json").read_bytes(), TableSample(file="a.json")),
    ):
        pass


UTF16 = """<?xml version="1.0" encoding="UTF-16"?>
<records><record><title>Soups</title><subject>Fish</subject></record></records>"""


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "utf-8-sig"])
def test_xml_that_declares_utf16_is_read_in_it_and_after_it_was_converted(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "records.xml").write_bytes(UTF16.encode(encoding))
    found = read(tmp_path / "records.xml")
    assert found.texts is not None
    assert (list(found.texts), found.labels) == (["Soups"], ["Fish"])


def test_a_text_in_utf16_has_a_way_out_that_its_format_has(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"\xff\xfe" + "00714cam a2200205 a 4500".encode("utf-16-le"))
    for format, way in (("marc", "UTF-16: save it as UTF-8"), ("csv", "UTF-16: pass encoding=utf-16, or save it")):
        with pytest.raises(FormatError, match=way):
            parse(tmp_path / "rows", format, ImportOptions())
