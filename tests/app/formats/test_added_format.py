"""A file in the folder of formats is all that a format needs: everything that knows the formats knows it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from working import Home

ROOT = Path(__file__).parents[3]
BARS = """
from app.datasets.formats.format import Format, Reference
from app.descriptions import Shape


def parse(path, options):
    from app.formats.text_rows import TextRows

    rows = TextRows()
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        label, bar, text = line.partition(" | ")
        if bar:
            rows.add(text, [label], "", number)
        else:
            rows.problems.add(number, "expected a label, a bar and a text")
    return rows.build()


BARS = Format(
    "bars",
    "Labels before bars",
    f"{__name__}:parse",
    frozenset({"languages", "encoding"}),
    Reference("`label | text`", "what is before the bar"),
    (Shape("Labels before bars", "good.bars"),),
    extensions=("bars",),
    recognises=lambda lines, labels: " | " in lines[0],
)
"""
ARROWS = """
from app.descriptions import Shape
from app.hierarchies.formats.format import Format


def parse(path, options, bounds):
    from app.formats.hierarchies.edges import Edges
    from app.formats.hierarchies.source import numbered_lines
    from app.formats.hierarchies.vocabulary import Vocabulary

    edges = Edges(options.root, bounds, options.tree)
    for line, text in numbered_lines(path):
        edges.add(*text.split(" > "), line)
    return Vocabulary(edges.build())


ARROWS = Format(
    "arrows",
    "Arrows: parent > child",
    "a parent and its child on each line",
    f"{__name__}:parse",
    "`parent > child`",
    "the only node without a parent",
    (Shape("parents before arrows", "good.arrows"),),
    endings={".arrows": None},
    options=frozenset({"root"}),
    is_simple=True,  # the process of others opens no files outside its tree, to which the links lead
)
"""
USES = """
import sys
from pathlib import Path

from asking import TestClient, bearer
from typer.testing import CliRunner

import app.datasets.formats
import app.hierarchies.formats
from app.cli import cli
from app.datasets.client import format_of
from app.datasets.import_options import formats_of
from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.parsing import parse
from app.hierarchies.formats import format_by_name
from app.hierarchies.formats import formats_of as formats_of_hierarchies
from app.main import create_app
from docs_site import shapes

folder, key, TREE = Path(sys.argv[1]), sys.argv[2], "tests/corpus/hierarchies/good.arrows"
assert app.datasets.formats.__file__ == str(folder / "app/datasets/formats/__init__.py")
path = folder / "tests/corpus/datasets/good.bars"
assert declared_format(path, ImportOptions()) == format_of(path) == "bars"
assert parse(path, "bars").labels == ["fruit", "sea"]
assert "bars" in formats_of("encoding") and "bars" not in formats_of("sheet")
assert " bars," in CliRunner().invoke(cli, ["datasets", "upload", "--help"], env={"COLUMNS": "500"}).output
assert "| `bars` | `label \\\\| text` |" in shapes.formats()
cells = shapes.dataset_cells(app.datasets.formats.FORMATS["bars"].shapes[0])
assert cells == ("`bars`", "", "2 rows, 2 labels, sets of them, texts")
service = create_app()
assert "bars" in service.openapi()["components"]["schemas"]["Dataset"]["properties"]["format"]["enum"]
with TestClient(service, headers=bearer(key)) as client:
    assert '<option value="bars">Labels before bars</option>' in client.get("/datasets").text
    assert '<option value="arrows">Arrows: parent &gt; child</option>' in client.get("/hierarchies").text
    sent = client.post("/api/v1/hierarchies?name=a&format=arrows", content=(folder / TREE).read_bytes())
    assert sent.status_code == 201, sent.text

assert format_by_name("a.arrows.gz") == ("arrows", None)
assert "arrows" in formats_of_hierarchies("root") and "arrows" not in formats_of_hierarchies("sheet")
assert "arff, arrows," in CliRunner().invoke(cli, ["hierarchies", "upload", "--help"], env={"COLUMNS": "500"}).output
assert "| `arrows` | `parent > child` | the only node without a parent |" in shapes.hierarchy_formats()
cells = shapes.hierarchy_cells(app.hierarchies.formats.FORMATS["arrows"].shapes[0])
assert cells == ("`arrows`", "", "2 labels, 1 level")
"""


def linked(folder: Path) -> Path:
    """The tree of the sources by links, with folders of its own where a format is added."""
    own = [Path(), Path("app"), Path("tests"), Path("tests/corpus")]
    own += [Path("app") / each / part for each in ("datasets", "hierarchies") for part in (".", "formats")]
    own += [Path("tests/corpus") / each for each in ("datasets", "hierarchies")]
    for each in own:
        (folder / each).mkdir()
        for entry in (ROOT / each).iterdir():
            if each / entry.name not in own and not entry.name.startswith((".", "__pycache__")):
                (folder / each / entry.name).symlink_to(entry)
    return folder


def test_formats_are_added_by_files(tmp_path: Path, empty_home: Home) -> None:
    tree = linked(tmp_path / "tree")
    (tree / "app/datasets/formats/bars.py").write_text(BARS)
    (tree / "tests/corpus/datasets/good.bars").write_text("fruit | a red apple\nsea | a blue wave\n")
    (tree / "app/hierarchies/formats/arrows.py").write_text(ARROWS)
    (tree / "tests/corpus/hierarchies/good.arrows").write_text("all > fruit\nall > sea\n")
    home = shutil.copytree(empty_home[0], tmp_path / "home")
    environment = {**os.environ, "POLYMARGIN_HOME": str(home), "PYTHONPATH": f"{tree}:{tree / 'tests/app'}"}
    command = [sys.executable, "-c", USES, str(tree), empty_home[1]["admin"]]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_formats_are_known_without_the_libraries_that_read_them() -> None:
    script = """
import sys
from app.datasets.formats import FORMATS
from app.hierarchies.formats import FORMATS as HIERARCHIES
assert FORMATS and HIERARCHIES
others = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names) - {'app'}
print(*sorted(name for name in others if not name.startswith('_')))
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
