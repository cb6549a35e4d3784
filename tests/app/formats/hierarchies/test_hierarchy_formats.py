"""Every format of hierarchies: what is read, and what is reported of files that hold no tree."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.descriptions import loaded
from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.table import FormatError, RowError
from app.hierarchies.formats import FORMATS as HIERARCHY_FORMATS
from app.hierarchies.formats.format import Format
from app.hierarchies.schemas import HierarchyOptions
from solvers.labels.taxonomy import Taxonomy

EDGES = [("root", "comp"), ("root", "rec"), ("comp", "comp.sys"), ("comp.sys", "comp.sys.mac"), ("comp", "comp.os")]
BROADER = '<datafield tag="550"><subfield code="w">g</subfield><subfield code="a">{}</subfield></datafield>'
FILES = {
    "csv": "note,child,parent\nx,comp,root\n,rec,\n\n,comp.sys,comp\ny,comp.sys.mac,comp.sys\n,comp.os,comp\n",
    "json": '{"comp": {"comp.sys": ["comp.sys.mac"], "comp.os": null}, "rec": {}}',
    "paths": "comp\nrec\n\ncomp.sys.mac\n comp.os\r\n",
    "lshtc": "top comp comp.sys comp.sys.mac\ntop rec\ncomp comp.sys\ncomp\tcomp.os\n",
    "rcv1": "parent: None  child: Top   child-description: the top\n"
    "parent: Top  child: comp child-description: COMPUTERS: all\nparent: Top child: rec child-description:\n"
    "parent: comp  child: comp.sys\nparent: comp.sys  child: comp.sys.mac\nparent: comp  child: comp.os\n",
    "skos": "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    "<comp> a skos:Concept ; skos:narrower <comp.sys>, <comp.os> .\n<rec> a skos:Concept .\n"
    "<comp.sys> a skos:Concept .\n<comp.sys.mac> a skos:Concept ; skos:broader <comp.sys> .\n"
    "<comp.os> a skos:Concept .\n",
    "obo": "format-version: 1.4\n\n[Term]\nid: t:comp\n\n[Term]\nid: t:rec\n\n[Term]\nid: t:comp.sys\nis_a: t:comp\n\n"
    "[Term]\nid: t:comp.sys.mac\nis_a: t:comp.sys\n\n[Term]\nid: t:comp.os\nis_a: t:comp\n",
    "claml": """<ClaML version="2.0.0"><Class code="comp" kind="chapter">
    <SubClass code="comp.sys"/><SubClass code="comp.os"/></Class><Class code="rec"/><Class code="comp.sys"/>
    <Class code="comp.sys.mac"><SuperClass code="comp.sys"/></Class><Class code="comp.os"/></ClaML>""",
    "arff": "@relation r\n@attribute class hierarchical root/comp,root/rec,comp/comp.sys,comp.sys/comp.sys.mac,"
    "comp/comp.os\n@data\n",
    "marc": "<collection>"
    + "".join(
        f'<record><controlfield tag="001">{name}</controlfield><datafield tag="150">'
        f'<subfield code="a">{name}</subfield>'
        f"</datafield>{'' if parent == 'root' else BROADER.format(parent)}</record>"
        for parent, name in EDGES
    )
    + "</collection>",
    "mesh": "<DescriptorRecordSet>"
    + "".join(
        f"<DescriptorRecord><DescriptorUI>{name}</DescriptorUI><TreeNumberList><TreeNumber>{number}</TreeNumber>"
        "</TreeNumberList></DescriptorRecord>"
        for (_, name), number in zip(EDGES, ("A", "B", "A.1", "A.1.1", "A.2"), strict=True)
    )
    + "</DescriptorRecordSet>",
}
IDS = {"skos": "https://example.org/", "obo": "t:"}


def read(tmp_path: Path, format: str, content: str | bytes, **options: str) -> Taxonomy:
    path = tmp_path / "tree"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return parse_hierarchy(path, format, HierarchyOptions(**options)).tree  # type: ignore[arg-type]


def faults(tmp_path: Path, format: str, content: str | bytes, **options: str) -> list[RowError]:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, format, content, **options)
    return caught.value.errors


@pytest.mark.parametrize("format", HIERARCHY_FORMATS.values(), ids=lambda format: format.name)
def test_a_description_is_whole(format: Format) -> None:
    assert callable(loaded(format.parser))
    assert format.options <= set(HierarchyOptions.model_fields)
    assert {shape.file.rpartition(".")[2] for shape in format.shapes} == {format.name}


def test_every_format_has_an_example() -> None:
    assert FILES.keys() | {"codes"} == HIERARCHY_FORMATS.keys()  # which has a file of its own


@pytest.mark.parametrize("format", FILES)
def test_the_same_tree_is_read_from_every_format(tmp_path: Path, format: str) -> None:
    options = {"base": IDS["skos"]} if format == "skos" else {}
    tree = read(tmp_path, format, "\ufeff" + FILES[format], **options)
    begin = IDS.get(format, "")
    assert sorted(tree.edges) == sorted((a if a == "root" else begin + a, begin + b) for a, b in EDGES)
    assert tree.level.tolist() == [1, 1, 2, 2, 3]


def test_json_may_have_nodes_with_names_and_children(tmp_path: Path) -> None:
    flare = '{"children": [{"name": "a", "size": 3}, {"name": "b", "children": ["c", {"d": ["e"]}]}], "name": "flare"}'
    assert read(tmp_path, "json", flare).edges == [("root", "a"), ("root", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
    assert read(tmp_path, "json", '{"root": {"name": {}}}').edges == [("root", "name")]
    assert read(tmp_path, "json", '["a", "b"]').edges == [("root", "a"), ("root", "b")]


def test_the_top_and_the_separator_may_be_given(tmp_path: Path) -> None:
    assert read(tmp_path, "csv", "parent,child\nall,a\na,b\n", root="all").edges == [("root", "a"), ("a", "b")]
    assert read(tmp_path, "lshtc", "0 1\n1 2\n", root="0").edges == [("root", "1"), ("1", "2")]
    assert read(tmp_path, "paths", "01/02\n", separator="/").edges == [("root", "01"), ("01", "01/02")]
    assert read(tmp_path, "paths", "a::b\n", separator="::").names == ("a", "a::b")


def test_a_deep_nesting_needs_no_recursion(tmp_path: Path) -> None:
    deep = "".join(f'{{"{i}":' for i in range(900)) + "{}" + "}" * 900
    assert read(tmp_path, "json", deep).depth == 900
    (fault,) = faults(tmp_path, "lshtc", " ".join(map(str, range(1002))))
    assert "1001 levels; at most 1000" in fault.detail


@pytest.mark.parametrize(
    ("rows", "line", "detail"),
    [
        ("a,b\nb,c\nroot,d\nc,a\n", 2, "3 nodes are in a cycle: 'b' < 'a' < 'c' < 'b'"),
        ("root,a\nb,b\n", 3, "1 node is in a cycle: 'b' < 'b'"),
        ("root,a\nroot,b\na,c\nb,c\n", 5, "'c' has two parents: 'a' on line 4, and 'b'"),
        ("root,a\nx,b\nx,c\n", 3, "'x' is the parent of 'b' but has no parent itself; the top is 'root'"),
        ("root,a\na,b\nroot,a\n", 4, "'a' is given twice as a child of 'root', first on line 2"),
        ("root,a\na,root\n", 3, "'root' is the top of the tree and cannot be a child of 'a'"),
        ("root,a\na,\n", 3, "the label is empty"),
        ("root,a\na,b,c\n", 3, "3 cells, expected 2 as in the header"),
        ('root,a\nb,"c"d\n', 3, "not a CSV record"),
        ("x,a\ny,b\n", 2, "the top, 'root', has no children; 'x', 'y' have no parent"),
        ("", 1, "the file has no edges"),
    ],
)
def test_what_is_no_tree_is_reported_by_its_line(tmp_path: Path, rows: str, line: int, detail: str) -> None:
    (fault,) = faults(tmp_path, "csv", "parent,child\n" + rows)
    assert fault.row == line
    assert detail in fault.detail


@pytest.mark.parametrize(
    ("format", "content", "line", "detail"),
    [
        ("csv", "a,b\n", 1, "the header is 'a', 'b'; it needs the columns parent and child, each once"),
        ("json", '{"a": {"b": {}},\n "c": ["b"]}', 2, "'b' has two parents: 'a' on line 1, and 'c'"),
        ("json", '{"a": {},\n\n"a": []}', 3, "'a' is given twice as a child of 'root', first on line 1"),
        ("json", '{"a": {},\n"b": "c"}', 2, "a string below 'b', expected an object, a list or null"),
        ("json", '["a",\n3]', 2, "'3' in a list below 'root', expected a name or an object"),
        ("json", '{"a": {"b": {}}', 1, "the file ends before all brackets are closed"),
        ("json", '{"a": {"b": {},\n}}', 2, "'}' is not expected here"),
        ("json", '{"a":\n"b}', 2, "a string is not closed"),
        ("json", '{"a": {}}\n[]', 2, "'[' is not expected here"),
        ("paths", "a.b\nc\na.b\n", 3, "'a.b' is given twice, first on line 1"),
        ("paths", "a.b\nc..d\n", 2, "'c..d' has an empty part between its '.'"),
        ("lshtc", "0 1\n2\n", 2, "'2' is alone on its line"),
        ("lshtc", "0 1\n0 2\n5 3\n", 1, "2 nodes have no parent: '0', '5'; a tree has one top"),
        ("lshtc", "1 2\n2 1\n", 1, "2 nodes are in a cycle: '2' < '1' < '2'"),
        ("rcv1", "parent: None child: R\nCCAT: R\n", 2, "not of the form 'parent: A child: B"),
        ("rcv1", "parent: None child: R\nparent: None child: S\n", 2, "'S' is a second top besides 'R'"),
        ("paths", b"a\n\nb\xff\n", 3, "not valid UTF-8"),
        ("paths", " \n\n", 1, "the file is empty or has only blank lines"),
        ("paths", "\x1c\n\u2003\n", 1, "the file is empty or has only blank lines"),
    ],
)
def test_what_is_not_the_format_is_reported_by_its_line(
    tmp_path: Path, format: str, content: str | bytes, line: int, detail: str
) -> None:
    fault = faults(tmp_path, format, content)[0]
    assert fault.row == line
    assert detail in fault.detail


def test_no_node_has_the_name_of_the_top(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, "csv", "parent,child\nall,a\na,root\n", root="all")
    assert (fault.row, fault.detail) == (3, "'root' is the reserved name of the top; no other node can have it")


def test_all_faults_are_reported_at_once_and_twenty_are_shown(tmp_path: Path) -> None:
    rows = "root,a\n" + "".join(f"p{i},c{i}\n" for i in range(15)) + "".join(f"d{i},d{i}\n" for i in range(30))
    with pytest.raises(FormatError) as caught:
        read(tmp_path, "csv", "parent,child\n" + rows)
    assert caught.value.n_errors == 45
    assert [fault.row for fault in caught.value.errors] == list(range(3, 23))


@given(st.lists(st.integers(-1, 11), min_size=1, max_size=12))
def test_edges_are_a_tree_where_every_node_leads_to_the_top(parents: list[int]) -> None:
    def leads_up(node: int) -> bool:
        seen: set[int] = set()
        while 0 <= node < len(parents) and node not in seen:
            seen.add(node)
            node = parents[node]
        return node == -1

    edges = Edges()
    for node, parent in enumerate(parents):
        edges.add("root" if parent < 0 else f"n{parent}", f"n{node}", node + 1)
    if all(leads_up(node) for node in range(len(parents))):
        tree = edges.build()
        assert sorted(tree.edges) == sorted(
            ("root" if parent < 0 else f"n{parent}", f"n{node}") for node, parent in enumerate(parents)
        )
    else:
        with pytest.raises(FormatError, match=r"cycle|has no parent itself|has no children"):
            edges.build()


def test_a_list_of_codes_and_titles_is_a_flat_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "tree"
    path.write_text("code;title\n0110;Miller\n0120;Baker, pastry cook\n")
    found = parse_hierarchy(path, "csv", HierarchyOptions())
    assert found.tree.names == ("0110", "0120")
    assert found.tree.depth == 1
    assert found.labels["0120"].names == {"und": "Baker, pastry cook"}
    for header in ("code,title,above", "code,other", "title,above"):
        assert "it needs the columns parent and child" in faults(tmp_path, "csv", f"{header}\na,b,c\n"[:40])[0].detail
