"""SKOS: the concepts of a thesaurus in RDF, with names by language.

A concept's label is its URI, or its notation where that is asked for. Its parents are what it is narrower than, said
from either side, the first of them the first that it names itself; concepts without any hang below the top. Deprecated
resources without a place in the hierarchy are retired: rows that have them can be mapped to what replaces them.
"""

import warnings
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from rdflib import BNode, Graph, Literal, URIRef
from rdflib.namespace import DCTERMS, OWL, RDF, RDFS, SKOS, Namespace
from rdflib.term import Node

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.exclusion import Exclusion
from app.formats.hierarchies.rdf import NO_BASE, first_lines, last_part, load_graph
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Label, Names, Vocabulary
from app.formats.labels import label_problem
from app.formats.table import row_error, shorten
from app.hierarchies.schemas import HierarchyOptions
from solvers.labels.taxonomy import ROOT

_XL = Namespace("http://www.w3.org/2008/05/skos-xl#")
_ISO = Namespace("http://purl.org/iso25964/skos-thes#")

_UP = (SKOS.broader, _ISO.broaderGeneric, _ISO.broaderPartitive, _ISO.broaderInstantial)
_DOWN = (SKOS.narrower, _ISO.narrowerGeneric, _ISO.narrowerPartitive, _ISO.narrowerInstantial)
_REPLACED = (DCTERMS.isReplacedBy, URIRef("http://purl.obolibrary.org/obo/IAO_0100001"))
_TRUE = frozenset({"true", "1"})


def parse_skos(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read a SKOS file; raises FormatError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rdflib's datasets call what they deprecate
        return _read(path, options, bounds)


def _read(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    graph, syntax = load_graph(path, options, bounds)
    concepts = _concepts(graph)
    if not concepts:
        raise row_error(1, "the file has no skos:Concept; expected a SKOS thesaurus")
    deprecated = [node for node, value in graph.subject_objects(OWL.deprecated) if str(value).lower() in _TRUE]
    lines = first_lines(path, {last_part(str(node)) for node in [*concepts, *deprecated]})
    reading = _Reading(graph, concepts, lines, options, bounds)
    excluded = Exclusion.parse(options.exclude)
    return excluded.apply(reading.vocabulary(deprecated, {"syntax": syntax}), reading.members(excluded))


class _Reading:
    """The concepts of a graph on their way into a tree."""

    def __init__(
        self,
        graph: Graph,
        concepts: dict[Node, None],
        lines: dict[str, int],
        options: HierarchyOptions,
        bounds: Bounds,
    ) -> None:
        self._graph, self._concepts, self._lines, self._options = graph, concepts, lines, options
        self._languages = options.languages.split(",") if options.languages else None
        self._edges = Edges(ROOT, bounds, options.tree)
        self._parents = self._find_parents()

    def vocabulary(self, deprecated: Iterable[Node], read_as: dict[str, str]) -> Vocabulary:
        """The concepts with a place, and the deprecated resources without one."""
        placed = {node for node, above in self._parents.items() if above}
        placed.update(parent for above in self._parents.values() for parent in above)
        placed.update(self._graph.subjects(SKOS.topConceptOf), self._graph.objects(None, SKOS.hasTopConcept))
        gone = dict.fromkeys(node for node in deprecated if node not in placed)
        labels: dict[str, Label] = {}
        still = set(deprecated)
        for node in self._concepts:
            if node in gone:
                continue
            name, line = self._called(node), self._line(node)
            if name in labels:
                self._edges.fault(line, f"the label '{shorten(name)}' is given to two concepts")
                continue
            labels[name] = self._label(node, node in still)
            if not self._parents[node]:
                self._edges.add(ROOT, name, line)
            for parent in self._parents[node]:
                self._edges.add(self._called(parent), name, line)
        retired = {
            name: self._label(node, True)
            for node in gone
            if isinstance(node, URIRef) and label_problem(name := self._called(node)) is None and name not in labels
        }
        return Vocabulary(self._edges.build(), labels, retired, self._edges.dropped, read_as)

    def members(self, excluded: Exclusion) -> set[str]:
        """The labels of all concepts of the groups; a group without any is a fault."""
        graph = self._graph
        found: set[str] = set()
        for kind, groups in excluded.groups.items():
            for group in map(URIRef, sorted(groups)):
                if kind == "type":
                    nodes = set(graph.subjects(RDF.type, group))
                elif kind == "scheme":
                    nodes = {*graph.subjects(SKOS.inScheme, group), *graph.subjects(SKOS.topConceptOf, group)}
                    nodes.update(graph.objects(group, SKOS.hasTopConcept))
                else:
                    nodes = self._collected(group)
                labels = {self._called(node) for node in nodes if node in self._concepts}
                if not labels:
                    raise row_error(1, f"exclude: no concept of the file has the {kind} '{shorten(str(group))}'")
                found |= labels
        return found

    def _collected(self, collection: Node) -> set[Node]:
        """The members of a collection, and of collections in it."""
        found, waiting = {collection}, [collection]
        for each in waiting:  # grows on the way
            listed = self._graph.objects(each, SKOS.memberList)
            inside = {*self._graph.objects(each, SKOS.member), *chain.from_iterable(map(self._graph.items, listed))}
            waiting += inside - found
            found |= inside
        return found

    def _find_parents(self) -> dict[Node, dict[Node, None]]:
        """What is above each concept, in the order of its own statements; what is no concept is a fault."""
        graph = self._graph
        parents: dict[Node, dict[Node, None]] = {node: {} for node in self._concepts}
        for node, above in parents.items():
            for predicate in _UP:
                for parent in graph.objects(node, predicate):
                    self._place(above, parent, node, node)
            for predicate in _DOWN:
                for parent in graph.subjects(predicate, node):
                    self._place(above, parent, node, parent)
                for child in graph.objects(node, predicate):
                    if child not in parents:
                        self._edges.fault(self._line(node), _strange(child, "below", node))
        return parents

    def _place(self, above: dict[Node, None], parent: Node, child: Node, said_of: Node) -> None:
        if parent in self._concepts:
            above[parent] = None
        else:
            self._edges.fault(self._line(said_of), _strange(parent, "above", child))

    def _called(self, node: Node) -> str:
        if self._options.label == "uri":
            return str(node)
        return self._notation(node) or str(node)

    def _notation(self, node: Node) -> str | None:
        return next((str(value).strip() for value in self._graph.objects(node, SKOS.notation)), None)

    def _line(self, node: Node) -> int:
        return self._lines.get(last_part(str(node)), 1)

    def _label(self, node: Node, deprecated: bool) -> Label:
        if isinstance(node, BNode):
            self._edges.fault(1, "a concept has no URI that datasets could use")
        elif str(node).startswith(NO_BASE):
            where = f"'{shorten(str(node).removeprefix(NO_BASE))}' is a relative URI"
            self._edges.fault(self._line(node), f"{where}, but the file has no base; pass base=URI")
        elif str(node) != str(node).strip():
            self._edges.fault(self._line(node), f"'{shorten(str(node))}' is not a URI: it begins or ends with a blank")
        if self._options.label == "notation" and self._notation(node) is None and not deprecated:
            self._edges.fault(self._line(node), f"'{shorten(str(node))}' has no notation")
        names = self._names(node)
        replaced = [value for predicate in _REPLACED for value in self._graph.objects(node, predicate)]
        return Label(
            id=str(node) if self._called(node) != str(node) else None,
            notation=self._notation(node),
            names=names.preferred,
            alternatives=names.alternatives,
            deprecated=deprecated,
            replaced_by=list(dict.fromkeys(self._called(value) for value in replaced if isinstance(value, URIRef))),
        )

    def _names(self, node: Node) -> Names:
        names = Names(self._languages)
        for simple, extended, take in (
            (SKOS.prefLabel, _XL.prefLabel, names.prefer),
            (SKOS.altLabel, _XL.altLabel, names.also),
        ):
            forms = list(self._graph.objects(node, simple))
            for label in self._graph.objects(node, extended):
                forms += self._graph.objects(label, _XL.literalForm)
            for form in forms:
                if isinstance(form, Literal):
                    take(str(form), form.language or self._options.language)
        if not names.preferred:
            for form in self._graph.objects(node, RDFS.label):
                if isinstance(form, Literal):
                    names.prefer(str(form), form.language or self._options.language)
        return names


def _strange(node: Node, place: str, concept: Node) -> str:
    return f"'{shorten(str(node))}' is {place} '{shorten(str(concept))}', but is not a concept of the file"


def _concepts(graph: Graph) -> dict[Node, None]:
    """What is a skos:Concept, or of a class that the file puts below it, in the order of the file."""
    kinds: list[Node] = [SKOS.Concept]
    for kind in kinds:  # grows on the way
        kinds += [below for below in graph.subjects(RDFS.subClassOf, kind) if below not in kinds]
    return dict.fromkeys(node for kind in kinds for node in graph.subjects(RDF.type, kind))
