"""What is no vocabulary is refused with status 422, the line, and the reason: one row a kind of fault."""

import gzip
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from asking import TestClient, problem

from app.formats.hierarchies import apart

URL = "/api/v1/hierarchies"
SKOS = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix : <http://example.org/> .\n"
CLAML = '<?xml version="1.0"?>\n<ClaML version="2.0.0">\n%s\n</ClaML>\n'
RDF = '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n%s\n</rdf:RDF>\n'
OBO = "format-version: 1.4\n\n"

MALFORMED: list[tuple[str, dict[str, str], str, int, str]] = [
    ("paths", {}, "# only\n# comments\n", 1, "every line begins with '#'"),
    ("paths", {}, "1 - Toys\n# more\n2 - Toys > Puzzles\n", 2, "'# more' begins with '#' among the paths"),
    (
        "paths",
        {},
        "1 - Toys\nToys > Puzzles\n",
        2,
        "the first path seems to have an id before ' - ', but this one has no id",
    ),
    ("paths", {}, "1 - Toys\n2 : Toys > Puzzles\n", 2, "but this one has an id before ' : '"),
    ("paths", {}, "1 - Toys > Puzzles\n", 1, "'Toys' has no line of its own and therefore no id"),
    ("paths", {}, "1 - Toys\n2 - Toys >  > Cubes\n", 2, "has an empty part between its ' > '"),
    ("paths", {}, "1 - Toys\n1 - Toys > Puzzles\n", 2, "the id '1' is given twice"),
    (
        "paths",
        {},
        "1 - Toys\n2 - Toys > Cubes\n3 - Toys > Cubes\n",
        3,
        "'Toys > Cubes' is given twice, first on line 2",
    ),
    ("paths", {"id_separator": "|"}, "1|Toys\n2 Toys > Cubes\n", 2, "is not an id and a path with '|' between"),
    ("csv", {}, "Name,Above\na,b\n", 1, "it needs the columns parent and child, each once: pass parent_field"),
    ("csv", {"id_field": "Code"}, "Parent,Kode\n,a\n", 1, "it needs the columns parent and Code"),
    ("csv", {"name_field": "Text"}, "Parent,Code\n,a\n", 1, "no single column 'Text', which name_field names"),
    ("csv", {"notation_field": "N"}, "Parent,Code\n,a\n", 1, "no single column 'N', which notation_field names"),
    ("csv", {}, "Titles above\nCode;Parent\na;\nb;x\n", 4, "'x' is the parent of 'b' but has no parent itself"),
    ("csv", {}, "Code\tParent\na\t\nb\ta\textra\n", 3, "3 cells, expected 2 as in the header"),
    (
        "csv",
        {},
        "child,parent\na,\nb,\nc,a\nc,b\n",
        5,
        "'c' has two parents: 'a' on line 4, and 'b'; if these are two nodes with one name, pass id_field or",
    ),
    ("csv", {"tree": "first"}, "child,parent\na,\nc,a\nc,d\nd,c\n", 3, "2 nodes are in a cycle: 'c' < 'd' < 'c'"),
    ("csv", {"tree": "deepest"}, "child,parent\na,\nb,\nc,a\nc,b\nc,b\n", 6, "'c' is given twice as a child of 'b'"),
    (
        "csv",
        {"tree": "first"},
        "child,parent\na,\nc,a\nc,x\n",
        4,
        "'x' is the parent of 'c' but has no parent itself",
    ),
    ("csv", {}, "\x00\xff\x00c", 1, "the file has zero bytes like UTF-16"),
    ("json", {"id_field": "id"}, '[{"id": "a"},\n{"id": 1, "children": 3}]', 2, "'3' below '1', expected an object"),
    ("json", {"id_field": "id"}, '[{"id": "a"},\n{"name": "b"}]', 2, "an object below 'root' has no 'id'"),
    ("skos", {}, SKOS + ":a a skos:Concept ;\n  skos:broader\n", 4, "not turtle"),
    ("skos", {}, SKOS + ":a a skos:Thing .\n", 1, "the file has no skos:Concept"),
    (
        "skos",
        {},
        SKOS + ":a a skos:Concept .\n:b a skos:Concept ; skos:broader :c .\n",
        4,
        "but is not a concept of the file",
    ),
    ("skos", {}, SKOS + ":a a skos:Concept .\n\n<b> a skos:Concept .\n", 5, "'b' is a relative URI"),
    ("skos", {}, SKOS + "[] a skos:Concept .\n", 1, "a concept has no URI"),
    (
        "skos",
        {},
        SKOS + ":a a skos:Concept ; skos:broader :b .\n:b a skos:Concept ; skos:broader :a .\n",
        3,
        "in a cycle",
    ),
    ("skos", {"label": "notation"}, SKOS + ":a a skos:Concept .\n", 3, "'http://example.org/a' has no notation"),
    (
        "skos",
        {"syntax": "nt"},
        "<a:b > <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2004/02/skos/core#Concept> .\n",
        1,
        "'a:b ' is not a URI: it begins or ends with a blank",
    ),
    ("skos", {"syntax": "nt"}, "<http://example.org/a> <http://example.org/b> .\n", 1, "not nt"),
    ("skos", {"syntax": "nquads"}, "<a:b> <a:b> <a:b> .\nnonsense\n", 2, "not nquads"),
    (
        "skos",
        {},
        '{"@context": "https://example.org/c.jsonld",\n "@id": "a:b"}',
        1,
        "is external and is not fetched",
    ),
    (
        "skos",
        {},
        '{"@id": "a:b",\n "@context": {"t": {"@id": "a:t", "@context": [[["file:///etc/hostname"]]]}}}',
        2,
        "'file:///etc/hostname' is external and is not fetched",
    ),
    ("skos", {}, '{"@context": {},\n "@id": }', 2, "not JSON: Expecting value"),
    ("skos", {}, RDF % "<rdf:Description>", 4, "not XML: mismatched tag"),
    ("skos", {}, RDF % "<rdf:li/>", 1, "not xml: Invalid property element tag name"),
    (
        "skos",
        {},
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]>\n' + RDF.partition("\n")[2] % "&x;",
        3,
        "is external and is not fetched",
    ),
    ("obo", {}, OBO + "[Term]\nid: t:1\nis_a t:2\n", 5, "not OBO"),
    ("obo", {}, OBO + "[Term]\nid: t:1\nis_a: t:2\n", 4, "'t:1' is below 't:2', which is no term of the file"),
    ("obo", {}, OBO + "[Term]\nid: t:1\n\n[Term]\nid: t:1\n", 4, "the term 't:1' is given twice"),
    ("obo", {}, OBO, 1, "the file has no edges"),
    ("obo", {}, "[Term]\nid: t:1\n! a comment alone\n", 1, "or a value of the wrong form"),
    ("claml", {}, CLAML % '<Class code="A">', 4, "not XML: mismatched tag"),
    ("claml", {}, CLAML % '<Class code="A"/><Class code="A"/>', 3, "the Class 'A' is given twice"),
    ("claml", {}, CLAML % '<Class kind="chapter"/>', 3, "a Class has no code"),
    (
        "claml",
        {},
        CLAML % '<Class code="A"/>\n<Class code="B"><SuperClass code="C"/></Class>',
        4,
        "'C' is a SuperClass but not a Class",
    ),
    ("claml", {}, CLAML % '<Class code="A"><SubClass code="B"/></Class>', 3, "'B' is a SubClass but not a Class"),
    ("claml", {}, '<!DOCTYPE ClaML SYSTEM "a.dtd">\n<ClaML>\n&x;</ClaML>', 3, "the entity 'x' is not declared"),
    ("claml", {}, "<html>\n</html>\n", 1, "the document's element is 'html', expected ClaML"),
    (
        "claml",
        {},
        '<!DOCTYPE ClaML [<!ENTITY x SYSTEM "http://127.0.0.1/x">]>\n<ClaML>&x;</ClaML>',
        2,
        "is external and is not fetched",
    ),
]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in this process: the parsers say the same there, and another process takes its time to start."""
    monkeypatch.setattr(apart, "_is_simple", lambda _path, _format: True)


@pytest.mark.parametrize(("format", "options", "content", "row", "detail"), MALFORMED)
def test_a_malformed_vocabulary_is_refused_with_its_line(
    client: TestClient, at_once: None, format: str, options: dict[str, str], content: str, row: int, detail: str
) -> None:
    params: dict[str, Any] = {"name": "v", "format": format} | options
    document = problem(client.post(URL, params=params, content=content.encode()), 422, "invalid_input")
    assert [fault["row"] for fault in document["errors"]][:1] == [row], document["errors"]
    assert detail in document["errors"][0]["detail"]
    assert client.get(URL).json()["items"] == []


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (gzip.compress(b"a.b\n" * 1000, mtime=0)[:40], "damaged or end too early"),
        (gzip.compress(gzip.compress(b"a.b\n", mtime=0), mtime=0), "gzip within gzip"),
        ("a.b\n".encode("utf-16"), "byte order mark of UTF-16"),
    ],
)
def test_what_is_wrapped_wrongly_is_refused(client: TestClient, content: bytes, detail: str) -> None:
    answer = client.post(URL, params={"name": "v", "format": "paths"}, content=content)
    assert detail in problem(answer, 422, "invalid_input")["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("format", "option"), [("csv", "base"), ("paths", "root"), ("skos", "separator"), ("obo", "delimiter")]
)
def test_an_option_of_another_format_is_refused(client: TestClient, format: str, option: str) -> None:
    value = {"delimiter": "tab"}.get(option, "x")
    answer = client.post(URL, params={"name": "v", "format": format, option: value}, content=b"a\n")
    assert problem(answer, 422, "invalid_input")["errors"][0]["pointer"] == f"/{option}"


def test_who_would_wait_behind_several_others_is_told_to_come_again(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "_places", threading.Semaphore(0))
    answer = client.post(URL, params={"name": "v", "format": "obo"}, content=b"x")
    assert "too many label trees" in problem(answer, 429, "too_many")["detail"]
    assert int(answer.headers["retry-after"]) > 0
    assert client.post(URL, params={"name": "v", "format": "paths"}, content=b"a.b\n").status_code == 201


def test_no_network_and_no_other_file_is_asked_while_a_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    refuse = apart._refusing_all_but([str(own)])
    for event, arguments in (("open", (str(own / "a"), "r", 0)), ("open", (json.__file__, "r", 0)), ("exec", ("x",))):
        refuse(event, arguments)
    monkeypatch.setattr(
        sys, "path", [each for each in sys.path if not Path(apart.__file__).is_relative_to(each or ".")]
    )
    apart._refusing_all_but([])("open", (apart.__file__, "r", 0))  # as where a finder finds an editable installation
    with pytest.raises(PermissionError, match="must not use the network"):
        refuse("socket.getaddrinfo", ("example.org", 80))
    for path in ("/etc/hostname", str(own / ".." / "admin.key")):
        with pytest.raises(PermissionError, match="must not open other files"):
            refuse("open", (path, "r", 0))
