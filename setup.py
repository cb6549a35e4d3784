"""How a distribution is built: in it, the four source folders are packages below ``polymargin``.

The source has ``app``, ``workers``, ``solvers`` and ``migrations`` at its top. Installed under these names they would
hide a user's own folders of these names, so a wheel has ``polymargin.app`` and so on, and every import and every name
of a module in a string is written accordingly. An editable installation keeps the source's names.
"""

import ast
import sys
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PREFIX = "polymargin"
FOLDERS = ("app", "workers", "solvers", "migrations")
DATA = {
    "app": ["py.typed", "web/templates/*", "web/static/*"],
    "solvers": ["py.typed"],
    "workers": ["py.typed"],
    "migrations": ["*.mako"],
}
NO_PACKAGES = ["web.static*", "web.templates*", "__pycache__", "*.__pycache__"]


def _modules() -> frozenset[str]:
    found = set()
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return frozenset(found)


def prefixed(source: str, modules: frozenset[str]) -> str:
    """Python source with imports of the four folders, and names of their modules in strings, below the prefix.

    A string counts as the name of a module if it is one, up to a colon (``package.module:member``) or a final dot.
    """
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    inserts: list[tuple[int, bytes]] = []
    ours = tuple(f"{folder}." for folder in FOLDERS)

    def insert(line: int, column: int, text: str) -> None:
        inserts.append((starts[line - 1] + column, text.encode()))

    raw = source.encode()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module in FOLDERS or node.module.startswith(ours):
                insert(node.lineno, node.col_offset + len("from "), f"{PREFIX}.")
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name in FOLDERS or name.name.startswith(ours):
                    if name.asname is None and "." in name.name:
                        raise ValueError(f"import {name.name} needs a name: write from ... import ...")
                    insert(name.lineno, name.col_offset, f"{PREFIX}.")
                    if name.asname is None:
                        insert(name.lineno, name.col_offset + len(name.name), f" as {name.name}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            module = node.value.partition(":")[0].removesuffix(".")
            if "." in module and module in modules:
                start = starts[node.lineno - 1] + node.col_offset
                place = raw.find(node.value.encode(), start)
                if place >= 0:
                    inserts.append((place, f"{PREFIX}.".encode()))
    for place, text in sorted(set(inserts), reverse=True):
        raw = raw[:place] + text + raw[place:]
    return raw.decode()


class BuildPrefixed(build_py):
    """Copies modules as setuptools does, and rewrites each on its way."""

    def build_module(self, module: str, module_file: str, package: str) -> tuple[str, bool]:
        target, copied = super().build_module(module, module_file, package)
        if not self.editable_mode and target.endswith(".py"):
            path = Path(target)
            path.unlink()  # may be a link to the source
            path.write_text(prefixed(Path(module_file).read_text(encoding="utf-8"), _modules()), encoding="utf-8")
        return target, copied


def _packages() -> list[str]:
    found = []
    for folder in FOLDERS:
        below = find_namespace_packages(str(ROOT / folder), exclude=NO_PACKAGES)
        found += [folder, *(f"{folder}.{name}" for name in below)]
    return found


if "editable_wheel" in sys.argv:
    setup(packages=["polymargin", *_packages()], package_data={"polymargin": ["py.typed"], **DATA})
else:
    setup(
        packages=["polymargin", *(f"{PREFIX}.{name}" for name in _packages())],
        package_dir={PREFIX: PREFIX, **{f"{PREFIX}.{folder}": folder for folder in FOLDERS}},
        package_data={"polymargin": ["py.typed"], **{f"{PREFIX}.{folder}": files for folder, files in DATA.items()}},
        cmdclass={"build_py": BuildPrefixed},
    )
