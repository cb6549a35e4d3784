"""Compiled code is taken from the cache exactly as long as nothing has changed that it was compiled from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import solvers
from solvers import compile_cache
from solvers.linear.steps import joint

INNER = "from numba import njit\n\n\n@njit(cache=True)\ndef f(x):\n    return x + {}\n"
OUTER = """from numba import njit

from solvers.inner import (  # of another file
    f,
)


@njit(cache=True)
def g(x):
    return f(x)
"""
ASK = "from solvers.outer import g; print(g(1), sum(g.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of its own, with this one's cache and a function that calls another file's."""
    root = tmp_path / "solvers"
    root.mkdir()
    for name in ("__init__.py", "compile_cache.py"):
        shutil.copy(Path(solvers.__file__).parent / name, root)
    (root / "inner.py").write_text(INNER.format(1))
    (root / "outer.py").write_text(OUTER)
    (root / "other.py").write_text("")
    return root


def ask(root: Path, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    variables = {**inherited, "PYTHONPATH": str(root.parent), **environment}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=root.parent, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("folder", [None, "kept"])
def test_a_change_in_a_file_that_is_called_compiles_its_callers_anew_and_no_other_change_does(
    package, tmp_path, folder
):
    place = {} if folder is None else {"NUMBA_CACHE_DIR": str(tmp_path / folder)}
    assert ask(package, **place) == "2 0"
    assert ask(package, **place) == "2 1"
    (package / "other.py").write_text("# another")
    assert ask(package, **place) == "2 1"
    (package / "inner.py").write_text(INNER.format(2))
    assert ask(package, **place) == "3 0"
    base = package / "__pycache__" if folder is None else tmp_path / folder / "solvers"
    assert len(list(base.glob("outer-*"))) == 1, "what the earlier code was compiled to is gone"


def test_every_compiled_function_of_the_package_is_kept_so():
    assert isinstance(joint.visit._cache._impl.locator, compile_cache.ImportedFilesLocator)
    root = Path(solvers.__file__).parent
    names = {file.name for file in compile_cache.imported_files(Path(joint.__file__), root)}
    assert {"block_step.py", "class_lists.py", "coefficients.py"} <= names
