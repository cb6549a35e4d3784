"""The audit of dependencies fails for a weakness, and not where nobody can be asked."""

import json
import sys
from pathlib import Path
from typing import Any

import audit_dependencies as audit
import pytest

SOUND = {"name": "numpy", "version": "2.0", "vulns": []}
WEAK = {"name": "weak", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": []}]}


def _program(folder: Path, packages: list[dict[str, Any]] | None) -> list[str]:
    """A substitute for pip-audit: writes this report, or none as where there is no network."""
    script = folder / "program.py"
    report = json.dumps({"dependencies": packages, "fixes": []})
    script.write_text(
        f"import sys\nout = sys.argv[sys.argv.index('--output') + 1]\nopen(out, 'w').write({report!r})\nsys.exit(1)\n"
        if packages is not None
        else "import sys\nsys.exit('ERROR: no route to host')\n"
    )
    return [sys.executable, str(script)]


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([SOUND], 0, "No weakness of 1 pinned packages is known"),
        ([SOUND, WEAK], 1, "weak 1.0: PYSEC-1 (fixed in 1.1)"),
        (None, 0, "is skipped, the list of weaknesses cannot be had: ERROR: no route to host"),
    ],
    ids=["sound", "weak", "offline"],
)
def test_a_weakness_fails_the_audit_and_no_answer_skips_it(
    packages: list[dict[str, Any]] | None, status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main(_program(tmp_path, packages), tmp_path / "constraints.txt") == status
    assert said in capsys.readouterr().out


def test_where_the_program_is_missing_the_audit_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main([str(tmp_path / "none")], tmp_path / "constraints.txt") == 0
    assert "is not installed" in capsys.readouterr().out
