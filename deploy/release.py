"""A release in ``dist/``: packages, pinned versions, chart, documentation, SBOM and their hashes, reproducible.

``make release`` runs ``check``, makes the SBOM and the site, and runs ``build``. Packages and chart are built from the
commit and not from the tree, so that no file beside it gets into them.
"""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
CHART = Path("deploy/helm/polymargin")
_BACKEND = "import setuptools.build_meta as backend, sys; print(getattr(backend, sys.argv[1])(sys.argv[2]))"
_CANDIDATES = {"a": "alpha", "b": "beta", "rc": "rc"}


def version_of(root: Path) -> str:
    """The version of the program, from its source."""
    found = re.search(r'^VERSION = "([^"]+)"$', (root / "app" / "version.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def chart_version(version: str) -> str:
    """The same version as Helm writes it: ``1.0.0rc1`` is ``1.0.0-rc.1`` in semantic versioning."""
    return re.sub(r"(a|b|rc)(\d+)$", lambda found: f"-{_CANDIDATES[found[1]]}.{found[2]}", version)


def problems(root: Path) -> Iterator[str]:
    """Reasons why the tree at ``root`` cannot be released, each as a sentence."""
    if changed := _git(root, "status", "--porcelain").splitlines():
        yield f"{len(changed)} files differ from the commit, the first is {changed[0][3:]}: commit or remove them."
    version = version_of(root)
    notes = re.split(r"^## ", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    heading = next((note for note in notes if re.search(r"^- ", note, re.MULTILINE)), "").partition("\n")[0]
    if not re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", heading):
        yield f"The version is {version}, but the newest notes of CHANGELOG.md are headed {heading!r}."
    chart = yaml.safe_load((root / CHART / "Chart.yaml").read_text())
    for name, wanted in (("appVersion", version), ("version", chart_version(version))):
        if chart[name] != wanted:
            yield f"The {name} of the chart is {chart[name]}; expected {wanted}."
    described = json.loads((root / "docs" / "openapi.json").read_text())["info"]["version"]
    if described != version:
        yield f"docs/openapi.json describes version {described}; expected {version}."
    tags = [tag for tag in _git(root, "tag", "--points-at", "HEAD").split() if re.match(r"v\d", tag)]
    if tags and f"v{version}" not in tags:
        yield f"The commit has the tag {tags[0]}; expected v{version}."


def build(root: Path, site: Path, sbom: Path, dist: Path) -> None:
    """Write all files of a release, and SHA256SUMS, into the folder ``dist``, which is emptied first."""
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    version, modified = version_of(root), int(_git(root, "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "source"
        with tarfile.open(fileobj=io.BytesIO(_run(root, "git", "archive", "HEAD"))) as archive:
            archive.extractall(source, filter="data")
        build_packages(source, dist, modified)
        chart = dist / f"polymargin-{chart_version(version)}.tgz"
        pack(source / CHART, "polymargin", chart, modified)
        if helm := shutil.which("helm"):
            _run(root, helm, "lint", "--strict", str(chart))
        shutil.copy(source / "constraints.txt", dist / f"constraints-{version}.txt")
    pack(site, f"polymargin-docs-{version}", dist / f"polymargin-docs-{version}.tar.gz", modified)
    shutil.copy(sbom, dist / f"polymargin-{version}.cdx.json")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(dist.iterdir())]
    (dist / "SHA256SUMS").write_text("".join(sums))


def build_packages(source: Path, dist: Path, modified: int) -> tuple[Path, Path]:
    """Build the sdist from a folder of the source, and the wheel from the sdist; both into the folder ``dist``.

    Parameters
    ----------
    source : Path
        A folder for this alone: the build leaves files in it.
    dist : Path
    modified : int
        Time of every file in both, in seconds since 1970.

    Returns
    -------
    tuple of Path
        The sdist and the wheel.
    """
    with tempfile.TemporaryDirectory() as name:
        made = _run_backend("build_sdist", source, Path(name), modified)
        with tarfile.open(made) as archive:
            archive.extractall(name, filter="data")
        unpacked = made.with_name(made.name.removesuffix(".tar.gz"))
        sdist = dist / made.name
        pack(unpacked, unpacked.name, sdist, modified)
        return sdist, _run_backend("build_wheel", unpacked, dist, modified)


def pack(folder: Path, name: str, target: Path, modified: int) -> None:
    """Write a folder as a ``.tar.gz``: sorted, of nobody, with one time, the same bytes for the same files."""
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=modified) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            member = tarfile.TarInfo(f"{name}/{path.relative_to(folder).as_posix()}")
            member.size, member.mtime = path.stat().st_size, modified
            member.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            with path.open("rb") as content:
                archive.addfile(member, content)


def _run_backend(step: str, source: Path, folder: Path, modified: int) -> Path:
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(modified), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", _BACKEND, step, str(folder)]
    # modes of files come from the umask
    done = subprocess.run(command, cwd=source, env=environment, check=True, stdout=subprocess.PIPE, umask=0o022)
    return folder / done.stdout.decode().split()[-1]


def _git(root: Path, *arguments: str) -> str:
    return _run(root, "git", *arguments).decode()


def _run(root: Path, *command: str) -> bytes:
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        sys.exit("\n".join(problems(ROOT)) or None)
    build(ROOT, ROOT / "site", ROOT / "build" / "sbom.json", ROOT / "dist")
    print((ROOT / "dist" / "SHA256SUMS").read_text(), end="")
