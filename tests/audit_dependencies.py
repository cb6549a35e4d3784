"""Looks whether a pinned package has a weakness that is known: ``make audit``.

The list of weaknesses is asked for over the network. Where it cannot be had nothing is known, which is said and is no
failure; a weakness is one.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SECONDS = 20  # for one answer


def report(program: list[str], requirements: Path) -> dict[str, Any] | None:
    """What the program finds out about the packages; None where it has no list of weaknesses."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audit.json"
        options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--timeout", str(SECONDS)]
        command = [*program, "--requirement", str(requirements), *options, "--format", "json", "--output", str(out)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            print("The audit of dependencies is skipped: pip-audit is not installed")
            return None
        if not out.is_file() or not out.stat().st_size:
            last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            print(f"The audit of dependencies is skipped, the list of weaknesses cannot be had: {last[0][:200]}")
            return None
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def weaknesses(found: dict[str, Any]) -> list[str]:
    """A line for each weakness, with the versions that fix it."""
    lines = []
    for package in found["dependencies"]:
        for weakness in package.get("vulns", []):
            fixed = ", ".join(weakness["fix_versions"]) or "none yet"
            lines.append(f"{package['name']} {package['version']}: {weakness['id']} (fixed in {fixed})")
    return lines


def main(program: list[str], requirements: Path) -> int:
    """Print what is known, and give 1 where that is a weakness."""
    found = report(program, requirements)
    if found is None:
        return 0
    lines = weaknesses(found)
    print("\n".join(lines) or f"No weakness of {len(found['dependencies'])} pinned packages is known")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main([str(Path(sys.executable).with_name("pip-audit"))], ROOT / "constraints.txt"))
