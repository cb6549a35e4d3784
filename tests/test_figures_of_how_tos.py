"""Every measured share in a how-to names the run that it comes from."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs/how-to").glob("*.md"))
# measured figures; gaps and intervals are settings
MEASURED = re.compile(
    r"\d %(?! interval)(?=[^.]*\b(?:errors?|of the texts|less|time)\b)|\berrors?\b[^.]*\d %(?! interval)", re.DOTALL
)
RUN = re.compile(r"python -m benchmarks|benchmarks/|polymargin (?:train|evaluate)|tutorial|notes/|load_wine")


def _sections(page: Path) -> list[str]:
    return re.split(r"\n(?=## |\*\*)", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_measured_share_names_its_run(page: Path) -> None:
    for section in _sections(page):
        prose = re.sub(r"```.*?```", lambda code: code[0] if "polymargin" in code[0] else "", section, flags=re.DOTALL)
        if MEASURED.search(re.sub(r"```.*?```", "", section, flags=re.DOTALL)):
            assert RUN.search(prose), section
