"""MeSH's descriptors in XML (`desc2025.xml`): each below the descriptors whose tree numbers its own continue.

A label is a descriptor's id, as D000001; its notation is its first tree number, and its entry terms are other names. A
descriptor without a tree number is a child of the top, and so is one whose tree number has one part. A descriptor with
several tree numbers may have several parents. Where these are in a cycle, which no tree number is, the longest tree
number of the cycle gives way.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.several_parents import cycles
from app.formats.hierarchies.source import Bounds, too_many
from app.formats.hierarchies.vocabulary import Dropped, Label, Names, Vocabulary
from app.formats.table import row_error, shorten
from app.formats.xml_document import LocatedHandler, read_xml
from app.hierarchies.schemas import HierarchyOptions
from solvers.labels.taxonomy import ROOT

_SET, _RECORD = "DescriptorRecordSet", "DescriptorRecord"
# where in a record the texts are that are read
_ID = (_RECORD, "DescriptorUI")
_NAME = (_RECORD, "DescriptorName", "String")
_NUMBER = (_RECORD, "TreeNumberList", "TreeNumber")
_TERM = (_RECORD, "ConceptList", "Concept", "TermList", "Term", "String")
_READ = frozenset({_ID, _NAME, _NUMBER, _TERM})
_LAST = frozenset(place[-1] for place in _READ)
# bibliographic codes of languages, whose BCP 47 tags are not their beginnings
_TAGS = {
    "eng": "en", "ger": "de", "fre": "fr", "spa": "es", "por": "pt", "ita": "it", "dut": "nl", "fin": "fi", "swe": "sv",
    "nor": "no", "cze": "cs", "pol": "pl", "rus": "ru", "jpn": "ja", "hrv": "hr", "chi": "zh",
}  # fmt: skip
# the translations have both names, as `Abdomen[Bauch]`
_BOTH = re.compile(r"(.+?)\s*\[(.+)\]")


@dataclass
class _Descriptor:
    """A descriptor as it is read."""

    line: int
    id: str = ""
    numbers: dict[str, int] = field(default_factory=dict)
    names: list[tuple[str, bool]] = field(default_factory=list)


def parse_mesh(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read a file of descriptors; raises FormatError."""
    with path.open("rb") as file:
        if not file.read(1 << 16).strip():
            raise row_error(1, "the file is empty or has only blank lines")
    descriptors = _Descriptors(options, bounds)
    read_xml(path, descriptors)
    return descriptors.vocabulary()


class _Descriptors(LocatedHandler):
    """The descriptors of a document as it goes by."""

    def __init__(self, options: HierarchyOptions, bounds: Bounds) -> None:
        super().__init__()
        self._options, self._bounds = options, bounds
        self._language = options.language
        self._languages = options.languages.split(",") if options.languages else None
        self._edges = Edges(ROOT, bounds, options.tree)
        self._labels: dict[str, Label] = {}
        self._line: dict[str, int] = {}
        self._numbers: dict[str, dict[str, int]] = {}
        self._of_number: dict[str, str] = {}
        self._outermost: str | None = None
        self._open: list[str] = []
        self._descriptor: _Descriptor | None = None
        self._text: list[str] | None = None
        self._n_characters = 0

    def vocabulary(self) -> Vocabulary:
        """The tree of the descriptors with their names."""
        if self._outermost != _SET:
            raise row_error(1, f"the document's element is '{shorten(self._outermost or '')}', expected {_SET}")
        above: dict[str, dict[str, str]] = {}
        for id, numbers in self._numbers.items():
            parents = above.setdefault(id, {})
            for number, line in numbers.items():
                beginning = number.rpartition(".")[0]
                parent = self._of_number.get(beginning) if beginning else ROOT
                if parent is None:
                    detail = f"no descriptor has the tree number '{shorten(beginning)}', which '{shorten(number)}' is"
                    self._edges.fault(line, f"{detail} below", "TreeNumber")
                elif number.count(".") < parents.get(parent, number + ".").count("."):
                    parents[parent] = number
        given_up = [] if self._options.tree == "refuse" else self._open_cycles(above)
        for id, parents in above.items():
            for parent, number in (parents or {ROOT: ""}).items():
                self._edges.add(parent, id, self._numbers[id].get(number, self._line[id]))
        tree = self._edges.build()
        return Vocabulary(
            tree, self._labels, dropped=[*self._edges.dropped, *given_up], read_as=self._read_as(given_up)
        )

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: N802
        if self._outermost is None:
            self._outermost = name
            if self._language == "und" and name == _SET:
                code = attrs.get("LanguageCode", "")
                self._language = _TAGS.get(code, code or "und")
        if name == _RECORD:
            self._descriptor, self._open = _Descriptor(self.line), []
        if self._descriptor is not None:
            self._open.append(name)
            if name in _LAST and tuple(self._open) in _READ:
                self._text = []
            if len(self._open) > self._bounds.depth:
                raise row_error(self.line, "elements are nested too deeply")

    def characters(self, content: str) -> None:
        if self._text is not None:
            self._text.append(content)
            self._n_characters += len(content)
            if self._n_characters > self._bounds.characters:
                raise too_many(self.line, "characters in names", self._bounds.characters)

    def endElement(self, name: str) -> None:  # noqa: N802
        descriptor = self._descriptor
        if descriptor is None:
            return
        place = tuple(self._open) if self._text is not None else ()
        text = "".join(self._text or ()).strip()
        if place == _ID:
            descriptor.id = text
        elif place == _NUMBER:
            descriptor.numbers.setdefault(text, self.line)
        elif place in (_NAME, _TERM) and text:
            descriptor.names.append((text, place == _NAME))
        if place in _READ:
            self._text = None
        self._open.pop()
        if not self._open:
            self._descriptor = None
            self._take(descriptor)

    def _take(self, descriptor: _Descriptor) -> None:
        id, line = descriptor.id, descriptor.line
        if not id:
            self._edges.fault(line, "the descriptor has no DescriptorUI", "DescriptorUI")
            return
        if id in self._line:
            self._edges.fault(line, f"the descriptor '{shorten(id)}' is given twice, first on line {self._line[id]}")
            return
        if len(self._line) >= self._bounds.nodes:
            raise too_many(line, "nodes", self._bounds.nodes)
        self._line[id], self._numbers[id] = line, descriptor.numbers
        for number, at in descriptor.numbers.items():
            other = self._of_number.setdefault(number, id)
            if other != id:
                detail = f"the tree number '{shorten(number)}' is also that of '{shorten(other)}'"
                self._edges.fault(at, detail, "TreeNumber")
        names = Names(self._languages)
        for text, preferred in descriptor.names:
            both = _BOTH.fullmatch(text) if self._language != "en" and preferred else None
            if both is not None:
                names.prefer(both[2], self._language)
                names.prefer(both[1], "en")
            elif preferred:
                names.prefer(text, self._language)
            elif text not in names.preferred.values():
                names.also(text, self._language)
        notation = next(iter(descriptor.numbers), None)
        self._labels[id] = Label(notation=notation, names=names.preferred, alternatives=names.alternatives)

    def _open_cycles(self, above: dict[str, dict[str, str]]) -> list[Dropped]:
        """Take the edge of the longest tree number out of each cycle."""
        given_up: list[Dropped] = []
        while found := list(cycles({id: list(parents) for id, parents in above.items()})):
            for cycle in found:
                edges = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
                child, parent = max(edges, key=lambda edge: above[edge[0]][edge[1]].count("."))
                number = above[child].pop(parent)
                given_up.append(Dropped(child, parent, self._numbers[child][number]))
        return given_up

    def _read_as(self, given_up: list[Dropped]) -> dict[str, str]:
        read_as = {"language": self._language}
        return read_as | ({"cycles": f"{len(given_up)}, opened"} if given_up else {})
