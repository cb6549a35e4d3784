"""SKOS: the concepts of a thesaurus in RDF, with names by language.

A concept's label is its URI, or its notation where that is asked for. Its parents are what it is narrower than, said
from either side, the first of them the first that it names itself; concepts without any hang below the top. Deprecated
resources without a place in the hierarchy are retired: rows that have them can be mapped to what replaces them.
"""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from pyoxigraph import BlankNode, Literal, NamedNode

from app.formats.hierarchies.edges import Edges
from app.formats.hierarchies.exclusion import Exclusion
from app.formats.hierarchies.rdf import NO_BASE, Graph, Node, first_lines, last_part, load_graph
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Label, Names, Vocabulary
from app.formats.label_names import label_problem
from app.formats.table import row_error, shorten
from app.hierarchies.schemas import HierarchyOptions
from solvers.labels.taxonomy import ROOT

_SKOS, _XL = "http://www.w3.org/2004/02/skos/core#", "http://www.w3.org/2008/05/skos-xl#"
_ISO, _RDFS = "http://purl.org/iso25964/skos-thes#", "http://www.w3.org/2000/01/rdf-schema#"

_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_CONCEPT, _SUBCLASS, _RDFS_LABEL = (
    NamedNode(_SKOS + "Concept"),
    NamedNode(_RDFS + "subClassOf"),
    NamedNode(_RDFS + "label"),
)
_UP = (
    NamedNode(_SKOS + "broader"),
    *(NamedNode(_ISO + name) for name in ("broaderGeneric", "broaderPartitive", "broaderInstantial")),
)
_DOWN = (
    NamedNode(_SKOS + "narrower"),
    *(NamedNode(_ISO + name) for name in ("narrowerGeneric", "narrowerPartitive", "narrowerInstantial")),
)
_TOP_OF, _HAS_TOP, _IN_SCHEME = (NamedNode(_SKOS + name) for name in ("topConceptOf", "hasTopConcept", "inScheme"))
_MEMBER, _MEMBER_LIST, _NOTATION = (NamedNode(_SKOS + name) for name in ("member", "memberList", "notation"))
# labels as literals, and as resources of their own
_PREFERRED, _OTHER = ((NamedNode(_SKOS + name), NamedNode(_XL + name)) for name in ("prefLabel", "altLabel"))
_FORM = NamedNode(_XL + "literalForm")
_DEPRECATED = NamedNode("http://www.w3.org/2002/07/owl#deprecated")
_REPLACED = (
    NamedNode("http://purl.org/dc/terms/isReplacedBy"),
    NamedNode("http://purl.obolibrary.org/obo/IAO_0100001"),
)
_READ = (
    *(_TYPE, _SUBCLASS, _RDFS_LABEL, _TOP_OF, _HAS_TOP, _IN_SCHEME, _MEMBER, _MEMBER_LIST, _NOTATION, _FORM),
    *(_DEPRECATED, *_UP, *_DOWN, *_REPLACED, *_PREFERRED, *_OTHER),
)
_TRUE = frozenset({"true", "1"})


def parse_skos(path: Path, options: HierarchyOptions, bounds: Bounds) -> Vocabulary:
    """Read a SKOS file; raises FormatError."""
    graph, syntax = load_graph(path, options, bounds, _READ)
    concepts = _concepts(graph)
    if not concepts:
        raise row_error(1, "the file has no skos:Concept; expected a SKOS thesaurus")
    deprecated = [node for node, value in graph.pairs(_DEPRECATED) if value.value.lower() in _TRUE]
    lines = first_lines(path, {last_part(node.value) for node in [*concepts, *deprecated]})
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
        placed.update(node for node, _ in self._graph.pairs(_TOP_OF))
        placed.update(node for _, node in self._graph.pairs(_HAS_TOP))
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
            if isinstance(node, NamedNode) and label_problem(name := self._called(node)) is None and name not in labels
        }
        return Vocabulary(self._edges.build(), labels, retired, self._edges.dropped, read_as)

    def members(self, excluded: Exclusion) -> set[str]:
        """The labels of all concepts of the groups; a group without any is a fault."""
        graph = self._graph
        found: set[str] = set()
        for kind, groups in excluded.groups.items():
            for group in map(NamedNode, sorted(groups)):
                if kind == "type":
                    nodes = set(graph.subjects(_TYPE, group))
                elif kind == "scheme":
                    nodes = {*graph.subjects(_IN_SCHEME, group), *graph.subjects(_TOP_OF, group)}
                    nodes.update(graph.objects(group, _HAS_TOP))
                else:
                    nodes = self._collected(group)
                labels = {self._called(node) for node in nodes if node in self._concepts}
                if not labels:
                    raise row_error(1, f"exclude: no concept of the file has the {kind} '{shorten(group.value)}'")
                found |= labels
        return found

    def _collected(self, collection: Node) -> set[Node]:
        """The members of a collection, and of collections in it."""
        found, waiting = {collection}, [collection]
        for each in waiting:  # grows on the way
            listed = self._graph.objects(each, _MEMBER_LIST)
            inside = {*self._graph.objects(each, _MEMBER), *chain.from_iterable(map(self._graph.items, listed))}
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
            return node.value
        return self._notation(node) or node.value

    def _notation(self, node: Node) -> str | None:
        return next((value.value.strip() for value in self._graph.objects(node, _NOTATION)), None)

    def _line(self, node: Node) -> int:
        return self._lines.get(last_part(node.value), 1)

    def _label(self, node: Node, deprecated: bool) -> Label:
        if isinstance(node, BlankNode):
            self._edges.fault(1, "a concept has no URI that datasets could use")
        elif node.value.startswith(NO_BASE):
            where = f"'{shorten(node.value.removeprefix(NO_BASE))}' is a relative URI"
            self._edges.fault(self._line(node), f"{where}, but the file has no base; pass base=URI")
        elif node.value != node.value.strip():
            self._edges.fault(self._line(node), f"'{shorten(node.value)}' is not a URI: it begins or ends with a blank")
        if self._options.label == "notation" and self._notation(node) is None and not deprecated:
            self._edges.fault(self._line(node), f"'{shorten(node.value)}' has no notation")
        names = self._names(node)
        replaced = [value for predicate in _REPLACED for value in self._graph.objects(node, predicate)]
        return Label(
            id=node.value if self._called(node) != node.value else None,
            notation=self._notation(node),
            names=names.preferred,
            alternatives=names.alternatives,
            deprecated=deprecated,
            replaced_by=list(dict.fromkeys(self._called(value) for value in replaced if isinstance(value, NamedNode))),
        )

    def _names(self, node: Node) -> Names:
        names = Names(self._languages)
        for (simple, extended), take in ((_PREFERRED, names.prefer), (_OTHER, names.also)):
            forms = list(self._graph.objects(node, simple))
            for label in self._graph.objects(node, extended):
                forms += self._graph.objects(label, _FORM)
            for form in forms:
                if isinstance(form, Literal):
                    take(form.value, form.language or self._options.language)
        if not names.preferred:
            for form in self._graph.objects(node, _RDFS_LABEL):
                if isinstance(form, Literal):
                    names.prefer(form.value, form.language or self._options.language)
        return names


def _strange(node: Node, place: str, concept: Node) -> str:
    return f"'{shorten(node.value)}' is {place} '{shorten(concept.value)}', but is not a concept of the file"


def _concepts(graph: Graph) -> dict[Node, None]:
    """What is a skos:Concept, or of a class that the file puts below it, in the order of the file."""
    kinds: list[Node] = [_CONCEPT]
    for kind in kinds:  # grows on the way
        kinds += [below for below in graph.subjects(_SUBCLASS, kind) if below not in kinds]
    return dict.fromkeys(node for kind in kinds for node in graph.subjects(_TYPE, kind))
