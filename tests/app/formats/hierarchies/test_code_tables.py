"""Tables of codes in the shapes of ISCO, NACE, NAICS, UNSPSC, CPV and GS1, and what is not certain."""

from pathlib import Path

import pytest

from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.table import FormatError
from app.hierarchies.schemas import HierarchyOptions

ISCO = "Level,ISCO 08 Code,Title EN,Title FR,Definition\n1,2,Professionals,Professions,x\n2,25,ICT,TIC,\n"
ISCO += '3,251,"Software, applications",Logiciels,\n4,2512,Software developers,Concepteurs,\n'
NACE = "NACE Rev. 2\nCode;Heading\nA;AGRICULTURE\n01;Crops\n01.1;Non-perennial crops\n01.11;Cereals\n02;Forestry\n"
NACE += "B;MINING\n05;Coal\n05.1;Hard coal\n"
NAICS = (
    "Seq. No.\tCode\tTitle\n1\t31-33\tManufacturing\n2\t311\tFood\n3\t3111\tAnimal food\n4\t322\tPaper\n5\t3133\tx\n"
)
NAICS += "6\t313\ty\n"
UNSPSC = "Code,Title\n10000000,Live plants\n10100000,Live animals\n10101500,Livestock\n10101501,Cats\n10101510,Mice\n"
UNSPSC += "10101511,Rats\n"
CPV = "CODE;EN\n03000000-1;Farming\n03100000-2;Crops\n03110000-5;Cereals\n03111000-2;Seeds\n03111100-3;Soya\n"
GPC = "SegmentCode,SegmentTitle,SegmentDefinition,FamilyCode,FamilyTitle,BrickCode,BrickTitle,AttributeCode,"
GPC += "AttributeTitle\n50000000,Food,x,50100000,Fruit,10000001,Apples,1,Kind\n50000000,Food,,50100000,Fruit,10000002,"
GPC += "Pears,1,Kind\n50000000,Food,,50200000,Bread,,,,\n"


def read(folder: Path, content: str, **options: str) -> Vocabulary:
    path = folder / "codes.csv"
    path.write_text(content)
    return parse_hierarchy(path, "codes", HierarchyOptions.model_validate(options))


def edges(found: Vocabulary) -> set[tuple[str, str]]:
    return set(found.tree.edges)


def test_codes_begin_with_their_parents(tmp_path: Path) -> None:
    found = read(tmp_path, ISCO)
    assert edges(found) == {("root", "2"), ("2", "25"), ("25", "251"), ("251", "2512")}
    assert found.labels["2512"].names == {"en": "Software developers", "fr": "Concepteurs"}


def test_letters_are_sections_above_the_divisions_that_follow(tmp_path: Path) -> None:
    found = read(tmp_path, NACE)
    sections = {("root", "A"), ("A", "01"), ("01", "01.1"), ("01.1", "01.11"), ("A", "02"), ("root", "B"), ("B", "05")}
    assert edges(found) == sections | {("05", "05.1")}
    assert found.read_as["header"] == "2"


def test_ranges_are_above_their_numbers(tmp_path: Path) -> None:
    above = {("root", "31-33"), ("31-33", "311"), ("311", "3111"), ("31-33", "322"), ("31-33", "313"), ("313", "3133")}
    assert edges(read(tmp_path, NAICS)) == above


def test_zeros_at_the_end_are_pairs_or_digits(tmp_path: Path) -> None:
    pairs = read(tmp_path, UNSPSC)
    last = {("10101500", code) for code in ("10101501", "10101510", "10101511")}
    assert edges(pairs) == {("root", "10000000"), ("10000000", "10100000"), ("10100000", "10101500")} | last
    assert pairs.read_as["parents"] == "pairs of digits"
    with pytest.raises(FormatError, match=r"not certain.*code_lengths=2,4,6,8 or code_lengths=2,3,4,5,6,7,8"):
        read(tmp_path, CPV, name_field="EN")
    digits = read(tmp_path, CPV, name_field="EN", code_lengths="2,3,4,5,6,7,8")
    assert ("03111000-2", "03111100-3") in edges(digits)
    assert digits.tree.depth == 5


def test_columns_of_levels_hold_whole_paths(tmp_path: Path) -> None:
    found = read(tmp_path, GPC)
    fruit = {("50100000", "10000001"), ("50100000", "10000002")}
    assert edges(found) == {("root", "50000000"), ("50000000", "50100000"), ("50000000", "50200000")} | fruit
    assert found.labels["10000002"].names == {"und": "Pears"}
    assert found.read_as["parents"] == "columns SegmentCode, FamilyCode, BrickCode"


@pytest.mark.parametrize(
    ("content", "line", "detail"),
    [
        (ISCO + "4,3512,Technicians,,\n", 6, "'3512' begins with no other code of the table: add its parent"),
        (
            ISCO.replace("3,251", "2,251"),
            4,
            "the table says level 2 of '251'; by its code it is below '25', at level 3",
        ),
        (ISCO + "5,25 12,x,,\n", 6, "'25 12' differs from '2512' only in punctuation"),
        (ISCO + "4,2512,again,,\n", 6, "the code '2512' is given twice"),
        (ISCO + ",,Source: ILO,,\n", 6, "the code is empty"),
        ("Code,Title\nA,a\nB,b\n01,c\n", 2, "no code follows the section 'A'"),
        ("Code,Title\n01,c\nA,a\n", 2, "'01' has no section above it"),
        ("Code,Title\n1234,a\n1235,b\n", 2, "all codes have 4 characters, so none is the beginning of another"),
        ("Code,Title\n1000,a\n2110,b\n", 3, "of '2110' the parent by pairs, '2100', is not in the table"),
        (
            "Code;Parent;Description\nA;;x\n",
            1,
            "the table has a column of parents, 'Parent': upload it with format=csv",
        ),
        ("a,b\n1,2\n", 1, "the header is 'a', 'b'; it needs one column of codes"),
        (GPC + ",,,50100000,Fruit,,,,\n", 5, "the code is empty, but codes of lower levels follow"),
        (GPC + "60000000,x,,50100000,Fruit,,,,\n", 5, "'50100000' has two parents"),
        ("Code,Title\n", 1, "a header but no rows"),
        ("PK\x03\x04", 1, "the workbook is damaged"),
    ],
)
def test_what_is_not_certain_is_refused(tmp_path: Path, content: str, line: int, detail: str) -> None:
    with pytest.raises(FormatError) as refused:
        read(tmp_path, content)
    assert detail in refused.value.errors[0].detail
    assert refused.value.errors[0].row == line
