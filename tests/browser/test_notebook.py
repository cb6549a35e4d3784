"""The how-to about notebooks, run in a notebook, and looked at in a browser."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import ROOT, Service, small_png
from notebooks import as_page, run, shown

pytestmark = pytest.mark.slow


def test_the_page_works_in_a_notebook(
    service: Service, opened: Callable[..., Any], pictures: bool, tmp_path: Path
) -> None:
    for package in ("nbclient", "ipykernel", "pandas"):
        pytest.importorskip(package, reason=f"{package} is not installed: make test-browser")
    environment = os.environ | {
        "POLYMARGIN_URL": service.url,
        "POLYMARGIN_API_KEY": service.key,
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    uploaded, trained, version, predicted, wrong = run(ROOT / "docs/how-to/use-a-notebook.md", tmp_path, environment)
    assert "125" in shown(uploaded)
    assert shown(trained, "text/plain").startswith("<Job ")
    for cell in (trained, version):
        assert "<svg" in shown(cell)
        assert "error" in shown(cell)
    first_columns, *_ = shown(predicted, "text/plain").split("\n\n")  # pandas wraps what is wider than a terminal
    assert [line.split()[0] for line in first_columns.splitlines()[1:]] == ["7", "3", "5"]
    (error,) = [output for output in wrong.outputs if output.output_type == "error"]
    assert error.ename == "ClientError"
    assert len(error.traceback) <= 4
    assert "reads the column 'text'" in error.traceback[-1]
    page = opened(width=940)
    (tmp_path / "page.html").write_text(as_page([trained, version, predicted, wrong]))
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator("svg polyline").count() == 2
    if pictures:
        small_png(page.screenshot(full_page=True), ROOT / "docs/how-to/pictures/notebook.png")
