"""The commands of the page on a month in a coding office do what it says, as they are pasted."""

import csv
import re
import sys
from pathlib import Path

import pytest
from pasted_pages import PROGRAMS, output_of, shell_blocks
from running import running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc"),
]


def test_a_month_is_coded_decided_and_learnt_from(tmp_path: Path) -> None:
    commands = "".join(shell_blocks("how-to/office-month.md", tmp_path))
    with running(tmp_path / "home") as service:
        said = output_of(PROGRAMS + commands, tmp_path, service)
    errors = [float(error) for error in re.findall(r"^test error +(0\.\d+)", said, re.MULTILINE)]
    assert len(errors) == 2
    assert all(error < 0.2 for error in errors)
    before, after = (_sure(tmp_path / name) for name in ("august-coded.csv", "august-again.csv"))
    assert 100 < before < after <= 300, "some rows are left to people, and fewer once these were learnt"
    assert re.search(r"^\d+ decided, 0 unchanged, 0 without a decision, 0 not understood", said, re.MULTILINE)
    assert re.search(r"^measured precision +[\d.]+% \([\d.]+% to [\d.]+%\) of \d+ sure rows", said, re.MULTILINE)
    assert re.search(r"^only b correct +\d+", said, re.MULTILINE)
    assert re.findall(r"^version +(\d) *\nrevision", said, re.MULTILINE) == ["1", "2"]


def _sure(file: Path) -> int:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return sum(row["sure"] == "true" for row in csv.DictReader(lines))
