"""ClaML: a classification in XML (EN 14463), as ICD and its national editions have it; a label is a class's code.

Modifiers, which some editions write in place of classes of their own, are not expanded; the answer says how many there
are.
"""

from pathlib import Path
from typing import Any

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Label, Names, Vocabulary
from app.formats.table import row_error, shorten
from app.formats.xml_document import LocatedHandler, read_xml
from app.hierarchies.schemas import HierarchyOptions
from solvers.labels.taxonomy import ROOT


def parse_claml(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read a ClaML file; raises FormatError."""
    if not path.read_bytes().strip():
        raise row_error(1, "the file is empty or has only blank lines")
    classes = _Classes(options)
    read_xml(path, classes)
    return classes.vocabulary(Edges(ROOT, bounds, options.tree))


class _Classes(LocatedHandler):
    """The classes of a document as it goes by."""

    def __init__(self, options: HierarchyOptions) -> None:
        super().__init__()
        self._language = options.language
        self._languages = options.languages.split(",") if options.languages else None
        self._line: dict[str, int] = {}
        self._parents: dict[str, dict[str, int]] = {}
        self._names: dict[str, Names] = {}
        self._n_modifiers = 0
        self._faults: list[tuple[int, str, str | None]] = []
        self._class: str | None = None
        self._rubric: str | None = None
        self._spoken: str | None = None
        self._text: list[str] | None = None
        self._outermost: str | None = None

    def vocabulary(self, edges: Edges) -> Vocabulary:
        """The tree of the classes with their names."""
        if self._outermost != "ClaML":
            raise row_error(1, f"the document's element is '{shorten(self._outermost or '')}', expected ClaML")
        for line, detail, column in self._faults:
            edges.fault(line, detail, column)
        for code, line in self._line.items():
            for parent, at in (self._parents.get(code) or {ROOT: line}).items():
                if parent == ROOT or parent in self._line:
                    edges.add(parent, code, at)
                else:
                    edges.fault(at, f"'{shorten(parent)}' is a SuperClass but not a Class of the document")
        for code, above in self._parents.items():
            if code not in self._line:
                edges.fault(min(above.values()), f"'{shorten(code)}' is a SubClass but not a Class of the document")
        labels = {
            code: Label(names=names.preferred, alternatives=names.alternatives) for code, names in self._names.items()
        }
        read_as = {"modifiers": f"{self._n_modifiers}, not expanded"} if self._n_modifiers else {}
        return Vocabulary(edges.build(), labels, dropped=edges.dropped, read_as=read_as)

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: N802
        line = self.line
        self._outermost = self._outermost or name
        if name == "Class":
            self._begin_class(str(attrs.get("code", "")).strip(), line)
        elif name == "ModifierClass":
            self._n_modifiers += 1
        elif self._class is not None and name in ("SuperClass", "SubClass"):
            other = str(attrs.get("code", "")).strip()
            child, parent = (self._class, other) if name == "SuperClass" else (other, self._class)
            if other:
                self._parents.setdefault(child, {}).setdefault(parent, line)
            else:
                self._faults.append((line, f"a {name} has no code", "code"))
        elif self._class is not None and name == "Rubric":
            self._rubric = attrs.get("kind", "")
        elif self._class is not None and name == "Label" and self._rubric is not None:
            self._spoken, self._text = attrs.get("xml:lang") or self._language, []

    def characters(self, content: str) -> None:
        if self._text is not None:
            self._text.append(content)

    def endElement(self, name: str) -> None:  # noqa: N802
        if name == "Class":
            self._class = None
        elif name == "Rubric":
            self._rubric = None
        elif name == "Label" and self._text is not None and self._class is not None:
            names = self._names.setdefault(self._class, Names(self._languages))
            if self._rubric == "preferred":
                names.prefer("".join(self._text), self._spoken)
            elif self._rubric in ("preferredLong", "inclusion"):
                names.also("".join(self._text), self._spoken)
            self._text = None
        elif self._text:
            self._text.append(" ")  # parts of a name are in elements of their own

    def _begin_class(self, code: str, line: int) -> None:
        self._class = code or None
        if not code:
            self._faults.append((line, "a Class has no code", "code"))
        elif code in self._line:
            self._faults.append((line, f"the Class '{shorten(code)}' is given twice", "code"))
        else:
            self._line[code] = line
