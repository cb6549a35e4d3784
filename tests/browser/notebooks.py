"""The cells of a page, run in a notebook, and a page of what they show."""

import re
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

CELL = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# in a process of its own: its libraries warn of what is not this project's
_RUN = """
import sys, nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], 4)
NotebookClient(book, timeout=None, allow_errors=True, kernel_name="python3").execute()
nbformat.write(book, sys.argv[2])
"""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_STYLE = "body{font:14px sans-serif;margin:16px;width:900px}pre{background:#f5f5f5;padding:8px}td,th{font-size:13px}"


def run(page: Path, folder: Path, environment: dict[str, str]) -> list[Any]:
    """The code cells of a page's ``python`` blocks after they ran in a notebook, with their outputs."""
    import nbformat

    written, executed = folder / "written.ipynb", folder / "executed.ipynb"
    cells = [nbformat.v4.new_code_cell(code) for code in CELL.findall(page.read_text())]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), written)
    subprocess.run([sys.executable, "-W", "ignore", "-c", _RUN, written, executed], env=environment, check=True)
    return list(nbformat.read(executed, 4).cells)


def shown(cell: Any, kind: str = "text/html") -> str:
    """What a cell shows as its value, as HTML or plain text."""
    return "".join(output.data.get(kind, "") for output in cell.outputs if output.output_type == "execute_result")


def as_page(cells: list[Any]) -> str:
    """Cells and their outputs as an HTML page."""
    parts = []
    for cell in cells:
        parts.append(f"<pre>{escape(cell.source.strip())}</pre>")
        for output in cell.outputs:
            if output.output_type == "execute_result":
                parts.append(output.data.get("text/html") or f"<pre>{escape(output.data['text/plain'])}</pre>")
            elif output.output_type == "error":
                parts.append(f"<pre>{escape(_ANSI.sub('', chr(10).join(output.traceback)))}</pre>")
    return f'<!doctype html><meta charset="utf-8"><style>{_STYLE}</style>{"".join(parts)}'
