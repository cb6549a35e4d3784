"""MARC 21 and MARCXML: the same rows from both, what pymarc writes, and records that are left to a person."""

import itertools
from pathlib import Path
from typing import Any

import pymarc
import pytest

from app.datasets.client import format_of
from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.marc8 import decode_marc8
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed
from app.hierarchies.schemas import HierarchyOptions

OAI = """<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>
<record><header status="deleted"><identifier>x</identifier></header></record>
<record><header/><metadata>{}</metadata></record></ListRecords></OAI-PMH>"""
COLLECTION = '<?xml version="1.0"?>\n<collection xmlns="http://www.loc.gov/MARC21/slim">\n{}\n</collection>'


def record(id: str, *fields: str, leader: str = "     cam a22     4a 4500") -> pymarc.Record:
    """A record of fields as `650 0$aCooking$xHistory`."""
    made = pymarc.Record(leader=leader, force_utf8=leader[9] == "a")
    made.add_field(pymarc.Field(tag="001", data=id))
    for field in fields:
        tag, marks, parts = field[:3], field[3:5], field[6:].split("$")
        subfields = [pymarc.Subfield(part[0], part[1:]) for part in parts]
        made.add_field(pymarc.Field(tag=tag, indicators=pymarc.Indicators(*marks), subfields=subfields))
    return made


COOKS = record(
    "1",
    "24510$aKöche :$bihre Küche /$cX. Y.",
    "505  $aSuppen --$tFisch",
    "650 0$aCooking, French$xHistory$y19th century.",
    "650 7$aKochen$0(DE-588)4114338-1$0https://d-nb.info/gnd/4114338-1$2gnd",
    "6001 $aSmith, J.",
)
ESSAYS = record("2", "24510$a\u0098The\u009c essays", "650 0$aAddresses, essays, lectures.")
GONE = record("3", "24510$aGone", leader="     dam a22     4a 4500")
LABELS = {"(DE-588)4114338-1", "Addresses, essays, lectures", "Cooking, French--History--19th century", "Smith, J."}


def iso(*records: pymarc.Record) -> bytes:
    return b"".join(each.as_marc() for each in records)


def xml(*records: pymarc.Record, frame: str = COLLECTION) -> bytes:
    return frame.format("\n".join(pymarc.record_to_xml(each, namespace=True).decode() for each in records)).encode()


def read(folder: Path, content: bytes, **options: Any) -> Parsed:
    path = folder / "data"
    path.write_bytes(content)
    assert declared_format(path, ImportOptions()) == "marc"
    return parse(path, "marc", ImportOptions(**options))


def sets(parsed: Parsed) -> list[list[str]]:
    assert parsed.label_indptr is not None
    return [[parsed.labels[at] for at in parsed.y[i:j]] for i, j in itertools.pairwise(parsed.label_indptr.tolist())]


def faults(folder: Path, content: bytes, **options: Any) -> list[tuple[int, str]]:
    with pytest.raises(FormatError) as refused:
        read(folder, content, **options)
    return [(each.row, each.detail) for each in refused.value.errors]


@pytest.mark.parametrize("content", [iso(COOKS, ESSAYS, GONE), xml(COOKS, ESSAYS, GONE)], ids=["iso2709", "xml"])
def test_both_forms_have_the_same_rows(tmp_path: Path, content: bytes) -> None:
    parsed = read(tmp_path, content)
    assert parsed.texts is not None
    assert parsed.ids is not None
    assert list(parsed.texts) == ["Köche : ihre Küche /\nSuppen -- Fisch", "The essays"]
    assert list(parsed.ids) == ["1", "2"]
    assert [len(each) for each in sets(parsed)] == [3, 1]
    assert set(parsed.labels) == LABELS


def test_answers_of_oai_pmh_have_their_records(tmp_path: Path) -> None:
    assert set(read(tmp_path, xml(COOKS, frame=OAI)).labels) == LABELS - {"Addresses, essays, lectures"}


def test_fields_may_be_named(tmp_path: Path) -> None:
    content = iso(COOKS, ESSAYS)
    assert sets(read(tmp_path, content, label_fields=("650$0",))) == [["(DE-588)4114338-1"], []]
    assert sets(read(tmp_path, content, label_fields=("650*0$a",)))[0] == ["Cooking, French"]
    assert sets(read(tmp_path, content, label_fields=("650_7$ax", "001"))) == [["1", "Kochen"], ["2"]]
    texts = read(tmp_path, content, text_fields=("245$a", "650$a"), unlabelled=True).texts
    assert texts is not None
    assert texts[0] == "Köche :\nCooking, French\nKochen"


def test_files_end_in_usual_ways() -> None:
    assert [format_of(Path(name)) for name in ("a.mrc", "a.marcxml.gz", "a.xml")] == ["marc", "marc", None]


def test_marc8_is_read_as_the_code_tables_have_it() -> None:
    assert decode_marc8(b"K\xe8oche, \xe2el\xe1eve \xb1\x1b(NAB\x1bs.") == "Köche, élève łаб."
    assert decode_marc8(b"\x1bb2\x1bs\x1b$1!0!\x1b(B.") == "₂一."
    for wrong in (b"a\xff", b"\xe8", b"\x1b*x", b"\x1b$1!0"):
        with pytest.raises(ValueError, match=r"MARC-8|letter"):
            decode_marc8(wrong)


@pytest.mark.parametrize(
    ("content", "row", "detail"),
    [
        (iso(COOKS, ESSAYS)[:-5], 2, "the file ends within a record"),
        (iso(ESSAYS, COOKS).replace(b"K\xc3\xb6che", b"K\xf6\xf6che"), 2, "the field 245 is not valid UTF-8"),
        (iso(ESSAYS, COOKS).replace(b"Suppen", b"Supp"), 2, "the record has"),
        (iso(ESSAYS) + b"00026nam a2200025 a 4500\x1e\x1d", 2, "the record has no text in 245$abnp"),
        (iso(ESSAYS, record("4", "15010$aX", leader="     nz  a22     n  4500")), 2, "as a hierarchy (format=marc)"),
        (iso(GONE), 1, "all 1 records of the file are deleted"),
        (xml(ESSAYS).replace(b'tag="245"', b'tag="24"'), 3, "the tag of a datafield is '24'"),
        (xml(ESSAYS).replace(b"</collection>", b""), 4, "not XML"),
        (b'<a xmlns="http://www.loc.gov/MARC21/slim"/>', 1, "no element 'record'"),
        (b"00714cam  2200025   4500" + b"x" * 200_000, 1, "does not end within 99,999 bytes"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, content: bytes, row: int, detail: str) -> None:
    found = faults(tmp_path, content)
    assert found[0][0] == row
    assert detail in found[0][1]


def test_a_directory_cannot_name_the_same_bytes_again(tmp_path: Path) -> None:
    field = b"  \x1fa" + b"x" * 5000 + b"\x1e"
    directory = b"".join(b"245%04d00000" % len(field) for _ in range(100)) + b"\x1e"
    base, total = 24 + len(directory), 24 + len(directory) + len(field) + 1
    raw = b"%05dnam a22%05d a 4500" % (total, base) + directory + field + b"\x1d"
    assert "names the same bytes several times" in faults(tmp_path, raw)[0][1]


def test_authority_records_are_a_vocabulary(tmp_path: Path) -> None:
    kind = "     nz  a22     n  4500"
    food = record("1", "024 7$ahttp://x/1$2uri", "150  $aFood", "450  $aNutriment", leader=kind)
    bread = record("2", "150  $aBread", "550  $wg$aFood$0http://x/1", leader=kind)
    rolls = record("3", "150  $aRolls", "550  $wg$aBread", leader=kind)
    old = record("4", "150  $aOld", leader="     dz  a22     n  4500")
    path = tmp_path / "authorities"
    for content in (iso(food, bread, rolls, old), xml(rolls, food, bread, old)):
        path.write_bytes(content)
        found = parse_hierarchy(path, "marc", HierarchyOptions(language="en"))
        assert sorted(found.tree.edges) == [("1", "2"), ("2", "3"), ("root", "1")]
        assert found.labels["1"].alternatives == {"en": ["Nutriment"]}
        assert list(found.retired) == ["4"]
    path.write_bytes(iso(rolls, COOKS))
    with pytest.raises(FormatError) as refused:
        parse_hierarchy(path, "marc")
    details = [(each.row, each.detail) for each in refused.value.errors]
    assert [row for row, _ in details] == [1, 2]
    assert "'Rolls' names 'Bread' in 550, but no record" in details[0][1]
    assert "upload bibliographic records as a dataset" in details[1][1]
