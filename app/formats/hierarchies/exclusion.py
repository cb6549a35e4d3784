"""Labels that an import leaves out for good: they are retired, and what is below them moves up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace

from app.formats.hierarchies.vocabulary import Label, Vocabulary
from app.formats.table import row_error, shorten
from solvers.labels.taxonomy import Taxonomy

DEPRECATED = "deprecated"
GROUPS = ("type", "scheme", "collection")
_NAMED = 5


@dataclass(frozen=True)
class Exclusion:
    """What the option ``exclude`` names.

    Attributes
    ----------
    deprecated : bool
        All labels that the file marks as deprecated.
    groups : mapping of str to set of str
        URIs of types, schemes and collections whose concepts are all excluded, by kind.
    """

    labels: tuple[str, ...] = ()
    deprecated: bool = False
    groups: Mapping[str, set[str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> Exclusion:
        """Read the option: its entries are separated by commas, or by line breaks where there are any."""
        entries = (text or "").split("\n" if "\n" in (text or "") else ",")
        labels: list[str] = []
        groups: dict[str, set[str]] = {}
        deprecated = False
        for entry in filter(None, map(str.strip, entries)):
            kind, sign, value = entry.partition("=")
            if sign and kind in GROUPS:
                groups.setdefault(kind, set()).add(value.strip())
            elif entry == DEPRECATED:
                deprecated = True
            else:
                labels.append(value.strip() if sign and kind == "label" else entry)
        return cls(tuple(labels), deprecated, groups)

    def apply(self, vocabulary: Vocabulary, members: Collection[str] = ()) -> Vocabulary:
        """The vocabulary without what is excluded.

        Parameters
        ----------
        members : collection of str
            Labels of the groups.

        Raises
        ------
        FormatError
            A label is not in the file, or none would remain.
        """
        known, retired = set(vocabulary.tree.names), vocabulary.retired
        strange = [label for label in self.labels if label not in known and label not in retired]
        if strange:
            more = f" and {len(strange) - _NAMED} more" if len(strange) > _NAMED else ""
            named = ", ".join(f"'{shorten(label)}'" for label in strange[:_NAMED])
            raise row_error(1, f"exclude names labels that the file does not have: {named}{more}")
        gone = known & {*self.labels, *members}
        if self.deprecated:
            gone |= {name for name, label in vocabulary.labels.items() if label.deprecated}
        return _without(vocabulary, gone) if gone else vocabulary

    def require_no_groups(self, format: str) -> None:
        """Raise FormatError where groups are named, which only SKOS has."""
        if self.groups:
            kinds = ", ".join(sorted(self.groups))
            raise row_error(1, f"exclude names concepts by {kinds}, which files of the format {format} do not have")


def _without(vocabulary: Vocabulary, gone: Set[str]) -> Vocabulary:
    tree = vocabulary.tree
    above: dict[str, list[str]] = {}
    for parent, child in tree.edges:
        above.setdefault(child, []).append(parent)

    # the nearest labels above each that stay; parents come first
    kept: dict[str, dict[str, None]] = {}
    for name in tree.names:
        kept[name] = {}
        for parent in above[name]:
            kept[name] |= kept[parent] if parent in gone else {parent: None}
    edges = [(parent, name) for name in tree.names if name not in gone for parent in kept[name]]
    if not edges:
        raise row_error(1, "exclude leaves no label of the file")
    labels = {name: label for name, label in vocabulary.labels.items() if name not in gone}
    retired = dict(vocabulary.retired)
    for name in tree.names:
        if name in gone:
            retired[name] = replace(vocabulary.labels.get(name, Label()), excluded=True)
    dropped = [each for each in vocabulary.dropped if each.label not in gone and each.parent not in gone]
    return replace(vocabulary, tree=Taxonomy.from_graph(edges), labels=labels, retired=retired, dropped=dropped)
