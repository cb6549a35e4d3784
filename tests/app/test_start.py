"""What makes the service ready early: nothing is imported that few requests need."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_start_imports_nothing_that_only_imports_of_data_need() -> None:
    heavy = {"scipy.stats", "scipy.optimize", "sklearn", "matplotlib", "onnx", "pyoxigraph", "alembic"}
    heavy |= {"openpyxl", "latex2mathml"}
    script = f"import sys, app.server, app.main; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
