"""What ``make release`` refuses and builds."""

import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from deploy.release import build, chart_version, problems

ROOT = Path(__file__).parents[1]
PROGRAM, CHANGES, CHART, API = (
    "app/version.py",
    "CHANGELOG.md",
    "deploy/helm/polymargin/Chart.yaml",
    "docs/openapi.json",
)
NOTES = "# Changelog\n\n## [Unreleased]\n\n## [1.0.0rc1] - 2026-12-01\n\n### Added\n\n- A thing.\n"
FILES = {
    PROGRAM: 'VERSION = "1.0.0rc1"\n',
    CHANGES: NOTES,
    CHART: "version: 1.0.0-rc.1\nappVersion: 1.0.0rc1\n",
    API: json.dumps({"info": {"version": "1.0.0rc1"}}),
}


def _git(root: Path, *arguments: str) -> None:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *named, *arguments], cwd=root, check=True, capture_output=True)


def _committed(root: Path, **replaced: str) -> Path:
    for name, content in (FILES | replaced).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    _git(root, "init")
    _git(root, "add", "-A")
    _git(root, "commit", "-m", "all")
    return root


def test_a_commit_whose_parts_agree_is_released(tmp_path: Path) -> None:
    _committed(tmp_path)
    assert list(problems(tmp_path)) == []
    _git(tmp_path, "tag", "-a", "v1.0.0rc1", "-m", "the candidate")
    assert list(problems(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (PROGRAM, 'VERSION = "1.0.0"\n', "The version is 1.0.0, but"),
        (CHANGES, NOTES.replace("[Unreleased]\n", "[Unreleased]\n\n- Another thing.\n"), "are headed '[Unreleased]'"),
        (CHART, "version: 1.0.0-rc.1\nappVersion: 0.9.0\n", "The appVersion of the chart is 0.9.0"),
        (CHART, "version: 1.0.0rc1\nappVersion: 1.0.0rc1\n", "expected 1.0.0-rc.1"),
        (API, json.dumps({"info": {"version": "0.9.0"}}), "docs/openapi.json describes version 0.9.0"),
    ],
)
def test_a_part_that_disagrees_is_named(tmp_path: Path, name: str, content: str, said: str) -> None:
    assert any(said in problem for problem in problems(_committed(tmp_path, **{name: content})))


def test_a_tree_that_differs_from_its_commit_and_a_tag_of_another_version_are_refused(tmp_path: Path) -> None:
    _committed(tmp_path)
    _git(tmp_path, "tag", "v0.9.0")
    (tmp_path / "left.txt").write_text("here")
    first, second = problems(tmp_path)
    assert "1 files differ from the commit, the first is left.txt" in first
    assert "has the tag v0.9.0; expected v1.0.0rc1" in second


def test_helm_has_its_own_form_of_candidates() -> None:
    assert [chart_version(version) for version in ("1.2.3", "1.0.0rc1", "2.0.0b2")] == [
        "1.2.3",
        "1.0.0-rc.1",
        "2.0.0-beta.2",
    ]


@pytest.mark.slow
def test_two_builds_of_a_commit_in_different_places_have_the_same_bytes(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("the source is no git repository")
    (tmp_path / "sbom.json").write_text("{}")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<p>documentation")
    found = []
    for place, umask in (("a", 0o022), ("another/b", 0o077)):
        before = os.umask(umask)
        try:
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / place)], check=True)
            build(tmp_path / place, tmp_path / "site", tmp_path / "sbom.json", tmp_path / place / "dist")
        finally:
            os.umask(before)
        found.append((tmp_path / place / "dist" / "SHA256SUMS").read_text())
    assert found[0] == found[1]
    dist = tmp_path / "a" / "dist"
    sums = dict(reversed(line.split()) for line in found[0].splitlines())
    assert {path.name for path in dist.iterdir()} == {*sums, "SHA256SUMS"}
    assert all(hashlib.sha256((dist / name).read_bytes()).hexdigest() == value for name, value in sums.items())
    assert sorted(Path(name).suffix for name in sums) == [".gz", ".gz", ".json", ".tgz", ".txt", ".whl"]
    (chart,) = dist.glob("*.tgz")
    with tarfile.open(chart) as archive:
        names = archive.getnames()
    assert {"polymargin/Chart.yaml", "polymargin/values.yaml", "polymargin/templates/api.yaml"} <= set(names)
