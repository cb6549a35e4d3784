"""What people write as labels: labels, their names or notations, one or several in a cell of a spreadsheet."""

from collections.abc import Sequence

from app.hierarchies.label_facts import display_name
from app.predictions.model_cache import LoadedModel
from app.reviews.label_search import LabelIndex, index_of

# pieces of a cell that are tried together as one name
_LONGEST = 8
# what is written is searched from so many characters on, and so many labels are proposed
_SHORTEST, _SIMILAR = 3, 3


class UnknownLabel(Exception):
    """What is written is no label, and no name of just one label."""


class WrittenLabels:
    """The labels of a version, by the label itself, its name or notation, or a code that lost its leading zeros.

    A retired label is the one that replaces it.

    Parameters
    ----------
    loaded : LoadedModel or None
        The version; None where it was deleted, and the alternatives of a row are what is left of its labels.
    new_labels : bool
        Accept labels that the version does not know.
    """

    def __init__(self, loaded: LoadedModel | None, new_labels: bool) -> None:
        self._loaded, self._new = loaded, new_labels
        self._index: LabelIndex | None = None if loaded is None else index_of(loaded)

    def find(self, written: str, alternatives: Sequence[str]) -> str:
        """The label of a row with these alternatives; raises UnknownLabel."""
        found = self._known(written, alternatives)
        if found is not None:
            return found
        if self._new:
            return written if self._loaded is None else self._loaded.label_form(written)
        raise UnknownLabel(
            f"{written[:80]!r} is neither a label nor the name of exactly one; "
            f"correct the decision, or allow new labels{self._similar(written)}"
        )

    def _similar(self, written: str) -> str:
        """Labels of which this may be the name, or part of it, as the end of a refusal."""
        if self._loaded is None or self._index is None or len(written) < _SHORTEST:
            return ""
        found = self._index.search(written, _SIMILAR)[0]
        names = {label: display_name(self._loaded.labels.shown.get(label, {}).get("names", {})) for label in found}
        shown = [label if name is None else f"{label} ({name})" for label, name in names.items()]
        return f"; did you mean {' or '.join(shown)}?" if shown else ""

    def find_set(self, written: str, alternatives: Sequence[str], separator: str) -> list[str]:
        """The labels of a cell, each once; a line break separates them as well. Raises UnknownLabel.

        A name may contain the separator: the longest known name comes first.
        """
        found: dict[str, None] = {}
        for line in written.splitlines():
            pieces, at = line.split(separator), 0
            while at < len(pieces):
                label, at = self._longest(pieces, at, alternatives, separator)
                if label is not None:
                    found[label] = None
        return list(found)

    def _longest(
        self, pieces: Sequence[str], at: int, alternatives: Sequence[str], separator: str
    ) -> tuple[str | None, int]:
        """The label that begins with a piece, None of a blank piece, and where the next one begins."""
        for end in range(min(len(pieces), at + _LONGEST), at + 1, -1):
            label = self._known(separator.join(pieces[at:end]).strip(), alternatives)
            if label is not None:
                return label, end
        piece = pieces[at].strip()
        return (self.find(piece, alternatives) if piece else None), at + 1

    def _known(self, written: str, alternatives: Sequence[str]) -> str | None:
        if written in alternatives or (self._index is not None and written in self._index.places):
            return written
        if self._loaded is None or self._index is None:
            return None
        form = self._loaded.label_form(written)
        form = self._loaded.labels.replaced.get(form, form)
        return form if form in self._index.places else self._index.named(written)
