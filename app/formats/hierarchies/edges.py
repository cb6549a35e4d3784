"""Edges of a label tree or graph as a file gives them, each with its line, and what keeps them from being one."""

from typing import NamedTuple

from app.formats.hierarchies.several_parents import TreeRule, chosen, cycles, longest_ways
from app.formats.hierarchies.source import Bounds, too_many
from app.formats.hierarchies.vocabulary import Dropped
from app.formats.label_names import label_problem
from app.formats.table import MAX_REPORTED, Problems, row_error, shorten
from app.plurals import counted
from app.values import normalized
from solvers.labels.taxonomy import ROOT, Taxonomy

MAX_FAULTS = 10_000

_NAMED = 5
_TWO_PARENTS = "pass tree=first or tree=deepest to keep one of them, or tree=graph to keep both"
_TWO_NODES = (
    "if these are two nodes with one name, pass id_field or format=paths; if this is one node with two parents, pass "
    "tree=first or tree=deepest to keep one of them, or tree=graph to keep both"
)


class _Above(NamedTuple):
    """What a node hangs below, and the line that says so."""

    parent: str
    line: int


class Edges:
    """Collects (parent, child) pairs in the order of a file; :meth:`take` makes the tree.

    Parameters
    ----------
    top : str, optional
        What the file calls the top of the tree, which is no label. None: the only node without a parent.
    bounds : Bounds, optional
        What the tree may come to.
    rule : {"refuse", "first", "deepest", "graph"}
        Which of several parents a node keeps: with ``graph`` all.
    by_name : bool
        Whether the file may call two nodes by one name, as it has no ids.

    Attributes
    ----------
    dropped : list of Dropped
        The parents that :meth:`take` left out.
    """

    def __init__(
        self,
        top: str | None = ROOT,
        bounds: Bounds | None = None,
        rule: TreeRule = "refuse",
        by_name: bool = False,
    ) -> None:
        self._top = top
        self._advice = _TWO_NODES if by_name else _TWO_PARENTS
        self._bounds = bounds or Bounds()
        self._n_characters = 0
        self._n_faults = 0
        self._rule = rule
        self._above: dict[str, _Above] = {}
        self._more: dict[str, list[_Above]] = {}  # the second and later parents
        self._n_more = 0
        self._problems = Problems()
        self.dropped: list[Dropped] = []

    def fault(self, line: int, detail: str, column: str | None = None) -> None:
        """Note what is wrong with a line beside its edges; raises FormatError where so much is that no more is read."""
        self._problems.add(line, detail, column)
        self._n_faults += 1
        if self._n_faults >= MAX_FAULTS:
            self._problems.raise_if_any()

    def add(self, parent: str, child: str, line: int, *, repeats: bool = False) -> None:
        """Take one edge.

        Parameters
        ----------
        parent, child : str
            Names; white space around them is no part of them.
        line : int
            Counted from 1.
        repeats : bool
            Whether an edge may occur in the file again, as it does in paths with a common beginning.

        Raises
        ------
        FormatError
            There are too many nodes, or too many characters in their names.
        """
        parent, child = normalized(parent), normalized(child)
        for name, column in ((parent, "parent"), (child, "child")):
            detail = label_problem(name)
            if detail is not None:
                self.fault(line, detail, column)
                return
        given = self._above.get(child)
        if given is None:
            self._above[child] = _Above(parent, line)
            self._n_characters += len(child)
            if len(self._above) > self._bounds.nodes:
                raise too_many(line, "nodes", self._bounds.nodes)
            if self._n_characters > self._bounds.characters:
                raise too_many(line, "characters in the names of all nodes", self._bounds.characters)
        elif given.parent != parent:
            self._add_another(_Above(parent, line), child, given, repeats)
        elif not repeats:
            self.fault(line, f"{_name(child)} is given twice as a child of {_name(parent)}, first on line {given.line}")

    def build(self) -> Taxonomy:
        """The tree, or the graph.

        Raises
        ------
        FormatError
            Nodes have two parents and the rule refuses that, are in a cycle, or hang below none that leads to the top;
            an edge is given twice; the tree is empty or too deep; or a line had faults of its own.
        """
        if not self._above:
            self._problems.raise_if_any()
            raise row_error(1, "the file has no edges; a label tree needs at least one")
        top = self._top if self._top is not None else self._only_top()
        if top is not None:
            self._check_top(top)
            self._check_reach(top)
        self._problems.raise_if_any()
        if self._rule == "graph":
            tree = Taxonomy.from_graph(
                (ROOT if parent == top else parent, child)
                for child, parents in self._parents().items()
                for parent in parents
            )
        else:
            if self._more:
                self._choose()
            tree = Taxonomy.from_edges(
                (ROOT if given.parent == top else given.parent, child) for child, given in self._above.items()
            )
        depth = _depth(tree)
        if depth > self._bounds.depth:
            raise row_error(1, f"the label tree has {depth} levels; at most {self._bounds.depth} are allowed")
        return tree

    def __contains__(self, child: str) -> bool:
        """Whether a node is there already."""
        return child in self._above

    def _add_another(self, above: _Above, child: str, first: _Above, repeats: bool) -> None:
        if self._rule == "refuse":
            detail = f"{_name(child)} has two parents: {_name(first.parent)} on line {first.line}, and "
            self.fault(above.line, f"{detail}{_name(above.parent)}; {self._advice}")
            return
        more = self._more.setdefault(child, [])
        same = next((known for known in more if known.parent == above.parent), None)
        if same is None:
            more.append(above)
            self._n_more += 1
            if self._n_more > self._bounds.entries:
                raise too_many(above.line, "second parents", self._bounds.entries)
        elif not repeats:
            detail = f"{_name(child)} is given twice as a child of {_name(above.parent)}, first on line {same.line}"
            self.fault(above.line, detail)

    def _parents(self) -> dict[str, list[str]]:
        return {
            child: [given.parent, *(above.parent for above in self._more.get(child, ()))]
            for child, given in self._above.items()
        }

    def _choose(self) -> None:
        """Keep one parent of every node, and note the others."""
        parents = self._parents()
        ways = longest_ways(parents) if self._rule == "deepest" else {}
        for child, more in self._more.items():
            given = [self._above[child], *more]
            kept = chosen(parents[child], self._rule, ways)
            self._above[child] = next(above for above in given if above.parent == kept)
            self.dropped += [Dropped(child, above.parent, above.line) for above in given if above.parent != kept]
        self.dropped.sort(key=lambda each: each.line)

    def _orphans(self) -> dict[str, tuple[str, int]]:
        """Parents that are a child of none, each with its first child and that one's line."""
        found: dict[str, tuple[str, int]] = {}
        for child, (parent, line) in self._above.items():
            if parent not in self._above:
                found.setdefault(parent, (child, line))
        for child, more in self._more.items():
            for parent, line in more:
                if parent not in self._above:
                    found.setdefault(parent, (child, line))
        return found

    def _only_top(self) -> str | None:
        orphans = self._orphans()
        if len(orphans) == 1:
            return next(iter(orphans))
        if orphans:
            self._several_tops(orphans)
        else:
            self._find_cycles()
        return None

    def _several_tops(self, orphans: dict[str, tuple[str, int]]) -> None:
        named = ", ".join(_name(parent) for parent in list(orphans)[:_NAMED])
        more = f" and {len(orphans) - _NAMED} more" if len(orphans) > _NAMED else ""
        self.fault(
            next(iter(orphans.values()))[1],
            f"{len(orphans)} nodes have no parent: {named}{more}; a tree has one top top: pass root=NAME",
        )

    def _check_top(self, top: str) -> None:
        if top in self._above:
            parent, line = self._above[top]
            self.fault(line, f"{_name(top)} is the top of the tree and cannot be a child of {_name(parent)}", "child")
        if top != ROOT:
            for child, (parent, line) in self._above.items():
                if ROOT in (child, parent):
                    self.fault(line, f"{_name(ROOT)} is the reserved name of the top; no other node can have it")
                    return

    def _check_reach(self, top: str) -> None:
        orphans = self._orphans()
        if orphans and top not in orphans and top not in self._above:
            named = ", ".join(_name(parent) for parent in list(orphans)[:_NAMED])
            more = f" and {len(orphans) - _NAMED} more" if len(orphans) > _NAMED else ""
            self.fault(
                next(iter(orphans.values()))[1],
                f"the top, {_name(top)}, has no children; {named}{more} have no parent. Make {_name(top)} their "
                "parent if they are labels, or pass root=NAME",
            )
            return
        for parent, (child, line) in orphans.items():
            if parent != top:
                detail = f"{_name(parent)} is the parent of {_name(child)} but has no parent itself"
                self.fault(line, f"{detail}; the top is {_name(top)}", "parent")
        self._find_cycles()

    def _find_cycles(self) -> None:
        n_found = 0
        for cycle in cycles(self._parents()):
            if self._top in cycle:
                continue  # a top that is a child was reported already
            n_found += 1
            if n_found <= MAX_REPORTED:
                shown = " < ".join(map(_name, cycle[: _NAMED + 1]))
                shown += " < ..." if len(cycle) > _NAMED + 1 else ""
                line = min(self._above[name].line for name in cycle)
                self.fault(line, f"{counted(len(cycle), 'node', 'is/are')} in a cycle: {shown} < {_name(cycle[0])}")
        self._problems.uncounted(max(0, n_found - MAX_REPORTED))


def _depth(tree: Taxonomy) -> int:
    levels: list[int] = []
    for above in tree.parent.tolist():  # one pass, however many levels there are
        levels.append(1 if above < 0 else levels[above] + 1)
    return levels[-1]


def _name(name: str) -> str:
    return f"'{shorten(name)}'"
