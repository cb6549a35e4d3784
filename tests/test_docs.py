"""What the documentation names exists, and what exists is documented."""

import re
from pathlib import Path

import pytest
import typer

from app.cli import cli
from app.config import Settings

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _commands() -> list[str]:
    group = typer.main.get_command(cli)
    names = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        names += [f"{name} {inner}" for inner in getattr(command, "commands", {})] or [name]
    return names


@pytest.mark.parametrize("setting", Settings.model_fields)
def test_every_setting_is_documented(setting: str) -> None:
    assert f"| `POLYMARGIN_{setting.upper()}` |" in (ROOT / "docs/configuration.md").read_text()


@pytest.mark.parametrize(("setting", "field"), Settings.model_fields.items())
def test_every_documented_number_is_the_default(setting: str, field: object) -> None:
    default = getattr(field, "default", None)
    if isinstance(default, int | float):
        line = re.search(rf"^\| `POLYMARGIN_{setting.upper()}` .*$", (ROOT / "docs/configuration.md").read_text(), re.M)
        assert line
        assert line[0].split("|")[3].split()[0] == f"{default:.0f}"


def test_every_documented_variable_is_known() -> None:
    known = {f"POLYMARGIN_{name.upper()}" for name in Settings.model_fields} | {"POLYMARGIN_URL", "POLYMARGIN_API_KEY"}
    for field in Settings.model_fields.values():
        known |= {str(alias) for alias in getattr(field.validation_alias, "choices", ())}
    for page in PAGES:
        named = set(re.findall(r"POLYMARGIN_[A-Z_]+", page.read_text()))
        assert named <= known, page


@pytest.mark.parametrize("command", _commands())
def test_every_command_is_documented(command: str) -> None:
    rows = "\n".join(line for line in (ROOT / "docs/cli.md").read_text().splitlines() if line.startswith("| `"))
    assert re.search(rf"`{command}\b", rows)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert re.match(r"https?://", target) or (page.parent / target).exists(), target
