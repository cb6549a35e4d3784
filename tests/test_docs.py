"""What the documentation names exists, and what exists is documented."""

import json
import re
from pathlib import Path

import pytest

from app.config import Settings
from app.jobs.routes import list_solvers
from benchmarks import pictures
from docs_site import commands, equations, formulas, generate, links, parameters, routes, settings
from solvers.registry import SOLVERS

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Not settings of the service: those of its clients and of the tests.
OTHERS = {"POLYMARGIN_URL", "POLYMARGIN_API_KEY", "POLYMARGIN_TEST_POSTGRES_URL", "POLYMARGIN_TEST_REDIS_URL"}
COMMANDS = dict(commands.walk())
COMMANDS_REFERENCE = commands.commands()


@pytest.mark.parametrize("page", generate.PAGES)
def test_generated_parts_of_the_reference_are_current(page: str) -> None:
    current = (ROOT / "docs" / page).read_text() == generate.generated(page)
    assert current, f"docs/{page} differs from the code: run .venv/bin/python -m docs_site.generate"


@pytest.mark.parametrize(("name", "field"), Settings.model_fields.items())
def test_every_setting_says_what_it_means_and_what_it_is_by_default(name: str, field: object) -> None:
    row = next(line for line in settings.settings().splitlines() if line.startswith(f"| `POLYMARGIN_{name.upper()}` |"))
    _, _, meaning, default, _ = (cell.strip() for cell in row.split("|"))
    assert meaning.endswith(".")
    value = getattr(field, "default", None)
    if isinstance(value, bool):
        assert default == f"`{str(value).lower()}`"
    elif isinstance(value, int | float):
        assert float(default.split()[0]) == value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_that_examples_name_exist(page: Path) -> None:
    examples = re.findall(r"^```.*?^```", page.read_text(), re.DOTALL | re.MULTILINE)
    named = {path for each in examples for path in re.findall(r"\bdocs/[\w/.-]+\.md\b", each)}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_documented_variable_is_known() -> None:
    known = {f"POLYMARGIN_{name.upper()}" for name in Settings.model_fields} | OTHERS
    for field in Settings.model_fields.values():
        known |= {str(alias) for alias in getattr(field.validation_alias, "choices", ())}
    for page in PAGES:
        named = set(re.findall(r"POLYMARGIN_[A-Z_]+", page.read_text()))
        assert named <= known, page


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_all_its_options_are_explained(name: str) -> None:
    assert f"\n{commands.usage(name, COMMANDS[name])}\n" in COMMANDS_REFERENCE
    assert COMMANDS[name].help
    for parameter in commands.parameters(COMMANDS[name]):
        assert parameter.help, parameter.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_a_page_exists(page: Path) -> None:
    words = re.findall(r"^(?:\.venv/bin/)?polymargin((?: [a-z]+(?:-[a-z]+)*)+)", page.read_text(), re.MULTILINE)
    for found in words:
        assert any(f"polymargin{found} ".startswith(f"{name} ") for name in COMMANDS), found


def test_every_route_and_every_schema_is_in_the_reference() -> None:
    document, text = json.loads(routes.DOCUMENT.read_text()), routes.routes()
    for method, path, _ in routes.operations(document):
        assert f"### `{method} {path}`" in text
    for name in document["components"]["schemas"]:
        assert f"\n### {name} {{" in text
    anchors = re.findall(r"\{ #([\w-]+) \}", text)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= set(anchors)


def test_every_method_and_parameter_is_in_the_reference() -> None:
    sections = parameters.parameters().split("\n## ")
    for solver, section in zip(list_solvers().items, sections, strict=True):
        assert section.removeprefix("## ").startswith(f"{solver.name}\n")
        for name in solver.params_schema["properties"]:
            assert f"\n| `{name}` |" in section


def test_every_method_is_named_in_the_index_of_methods() -> None:
    page = (ROOT / "docs/methods/index.md").read_text()
    missing = [name for name in SOLVERS if f"`{name}`" not in page]
    assert missing == [], "docs/methods/index.md does not name these methods"


@pytest.mark.slow
def test_the_index_of_equations_knows_the_papers() -> None:
    index = equations.equations()
    papers = "Alber et al. 2017", "Crammer and Singer 2002", "Zhou et al. 2011", "Rousu et al. 2005", "Lin et al. 2012"
    for paper in papers:
        assert f"## {paper}\n" in index


def test_a_citation_is_found_with_its_paper_and_its_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equations, "ROOT", tmp_path)
    (tmp_path / "one.py").write_text(
        '"""By Doe et al. 1999."""\n\n\ndef f():\n    """Equations 3b and 4; Roe 2001, Figure 2."""\n'
    )
    assert set(equations.citations(tmp_path)) == {
        ("Doe et al. 1999", "equation", "3b", "one.f"),
        ("Doe et al. 1999", "equation", "4", "one.f"),
        ("Roe 2001", "figure", "2", "one.f"),
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        assert re.match(r"https?://", target) or (page.parent / target).exists(), target


def test_links_of_the_repository_become_links_of_the_site() -> None:
    text = "[a](../../benchmarks/RESULTS.md) [b](../adr/0005-threads.md#x) [c](https://example.org/d.md)"
    assert links.relinked(text, "methods/boosting.md") == (
        "[a](../results.md) [b](../adr/0005-threads.md#x) [c](https://example.org/d.md)"
    )
    assert links.relinked("[d](docs/how-to/upgrade.md)", "changelog.md") == "[d](how-to/upgrade.md)"


def test_formulas_become_mathml() -> None:
    drawn = formulas.drawn('<p><span class="arithmatex">\\(a &lt; b\\)</span></p>')
    assert drawn.startswith("<p><math")
    assert "<mo>&#x0003C;</mo>" in drawn


@pytest.mark.parametrize(
    "name", ["curves", *(pytest.param(name, marks=pytest.mark.slow) for name in pictures.PICTURES if name != "curves")]
)
def test_a_picture_is_drawn_from_its_data_and_is_small(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    pictures.draw(name)
    assert (tmp_path / f"{name}.png").stat().st_size < 60 << 10
    assert (ROOT / f"docs/methods/pictures/{name}.png").stat().st_size < 60 << 10


def test_curves_are_thinned_written_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLYMARGIN_BENCH_RESULTS", raising=False)
    monkeypatch.setattr(pictures, "DATA", tmp_path)
    monkeypatch.setattr(pictures, "draw", lambda name: None)
    points = [(float(x), x * x + 0.5) for x in range(100)]
    pictures.write("lee_lin_wahba", [pictures.Curve("vowel", "gap", "block ascent", points)])
    (curve,) = pictures.read("lee_lin_wahba")
    assert curve[:3] == ("vowel", "gap", "block ascent")
    assert len(curve.points) == pictures.MOST_POINTS
    assert (curve.points[0], curve.points[-1]) == ((0.0, 0.5), (99.0, 9802.0))


ADRS = sorted((ROOT / "docs/adr").glob("0*.md"))


@pytest.mark.parametrize("page", ADRS, ids=lambda page: page.stem)
def test_a_decision_has_a_date_a_status_and_one_page(page: Path) -> None:
    text = page.read_text()
    assert re.search(r"^Date: \d{4}-\d{2}-\d{2}\. Status: (accepted|superseded)", text, re.MULTILINE)
    assert "**Decision.**" in text
    assert len(text.splitlines()) <= 50
    assert f"]({page.name})" in (ROOT / "docs/adr/index.md").read_text()


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent.name != "notes"],  # these speak of the code of their time
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_file_and_module_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"`((?:solvers|app|workers|benchmarks|migrations|tests|docs_site)/[\w/.-]*)`", text):
        assert "NAME" in path or (ROOT / path).exists(), path
    for name in re.findall(r"^(?:from|import|:::) ((?:solvers|app|workers)[\w.]*)", text, re.MULTILINE):
        parts = name.split(".")
        places = [ROOT / Path(*parts[:length]) for length in range(2, len(parts) + 1)]
        assert any(place.with_suffix(".py").exists() or _gives_names(place) for place in places), name


def _gives_names(package: Path) -> bool:
    """Whether names can be imported from a package itself; most of them are empty."""
    initial = package / "__init__.py"
    return initial.exists() and "import" in initial.read_text()
