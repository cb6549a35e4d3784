"""What is built for others to install: everything lies below ``polymargin``, and works beside a folder called app."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from deploy.release import build_packages

ROOT = Path(__file__).parent.parent
OURS = ("app", "workers", "solvers", "migrations")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of a release, and a folder into which it is unpacked as by an installation."""
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "source"
    copy = ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"]
    if not (ROOT / ".git").exists():
        pytest.skip("the source is no git repository")
    for name in subprocess.run(copy, capture_output=True, check=True).stdout.decode().split("\0"):
        if name and (ROOT / name).is_file() and name.split("/")[0] not in ("tests", "benchmarks", "docs"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    _, wheel = build_packages(source, folder, modified=1_700_000_000)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return {"wheel": wheel, "site": folder / "site"}


def _run(site: Path, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python with the unpacked wheel, and without this tree: ``-S`` leaves out the finder of its installation."""
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    paths = os.pathsep.join((str(site), packages))
    command = [sys.executable, "-S", "-W", "ignore", *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("POLYMARGIN_")}
    return subprocess.run(
        command,
        cwd=folder,
        env=inherited | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_wheel_puts_nothing_beside_its_package(built: dict[str, Path]) -> None:
    tops = {path.name for path in built["site"].iterdir()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"polymargin"}
    for file in ("migrations/env.py", "workers/main.py", "solvers/py.typed", "py.typed"):
        assert (built["site"] / "polymargin" / file).exists()
    assert list((built["site"] / "polymargin/app/web/templates").iterdir())
    imported = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(OURS)})\b", re.MULTILINE)
    found = [path for path in (built["site"] / "polymargin" / "app").rglob("*.py") if imported.search(path.read_text())]
    assert found == []


@pytest.mark.slow
def test_an_installation_works_beside_a_folder_called_app(built: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("own = True\n")
    script = (
        "import app; assert app.own\n"
        "from polymargin import AsyncClient, Client, PolymarginClassifier, RemoteClassifier\n"
        "import numpy as np\n"
        "X = np.vstack([np.eye(3)] * 4); y = np.arange(12) % 3\n"
        "fitted = PolymarginClassifier('crammer_singer', C=1.0).fit(X, y)\n"
        "assert (fitted.predict(X) == y).all()\n"
        "assert type(fitted).__module__.startswith('polymargin.solvers'), type(fitted).__module__\n"
    )
    (tmp_path / "use.py").write_text(script)
    used = _run(built["site"], tmp_path, "use.py")
    assert used.returncode == 0, used.stderr


@pytest.mark.slow
def test_the_command_line_of_an_installation_trains_and_predicts(built: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise RuntimeError('another folder')\n")
    rows = [
        f'{{"text": "{word} {word}s", "label": "{label}"}}' for word, label in (("cat", "animal"), ("oak", "plant"))
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows * 8) + "\n")
    script = (
        "import pathlib, re, subprocess, sys, time\n"
        "command = [sys.executable, '-S', '-P', '-m', 'polymargin']\n"
        "service = subprocess.Popen([*command, 'up', '--port', '0'], stdout=subprocess.PIPE, text=True)\n"
        "try:\n"
        "    for line in service.stdout:\n"
        "        found = re.search(r'http://127.0.0.1:[0-9]+', line)\n"
        "        if found: break\n"
        "    import os; os.environ['POLYMARGIN_URL'] = found.group()\n"
        "    def run(*words):\n"
        "        ended = subprocess.run([*command, *words], capture_output=True, text=True)\n"
        "        assert ended.returncode == 0, ended.stderr\n"
        "        return ended.stdout\n"
        "    run('datasets', 'upload', 'rows.jsonl', '--name', 'rows')\n"
        "    run('train', 'rows', '--model', 'kinds', '--solver', 'crammer_singer', '--watch')\n"
        "    assert 'animal' in run('predict', 'kinds', '--text', 'a cat')\n"
        "finally:\n"
        "    service.terminate(); service.wait()\n"
    )
    (tmp_path / "use.py").write_text(script)
    used = _run(built["site"], tmp_path, "-P", "use.py", POLYMARGIN_HOME=str(tmp_path / "home"))
    assert used.returncode == 0, used.stderr
