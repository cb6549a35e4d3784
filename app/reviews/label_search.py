"""Search among the labels that the rows of a queue can have."""

import heapq
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy.orm import Session

from app.errors import NotFound
from app.hierarchies.label_facts import display_name
from app.predictions.model_cache import LoadedModel, ModelCache, Reference
from app.reviews import service as reviews
from app.reviews.schemas import FoundLabel, FoundLabels
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref


class LabelIndex:
    """The labels of a model version and the nodes of its tree, with their names, to be searched while a person types.

    Attributes
    ----------
    places : mapping of str to int
        The place of each label among all.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self.places = {label: at for at, label in enumerate(_labels(loaded))}
        self._labels = list(self.places)
        facts = [loaded.labels.shown.get(label, {}) for label in self._labels]
        # names between line ends, so that one test finds those that begin with something, or are equal to it
        self._texts = [
            "\n".join(["", *_names(label, each), ""]) for label, each in zip(self._labels, facts, strict=True)
        ]
        self._by_name: dict[str, int | None] = {}
        for at, text in enumerate(self._texts):
            for name in {*text.split("\n")} - {""}:
                self._by_name[name] = None if name in self._by_name else at
        self._by_bare_code: dict[str, str | None] = {}
        for label in self._labels:
            bare = label.lstrip("0")
            if label.isdigit():
                self._by_bare_code[bare] = None if bare in self._by_bare_code else label

    def search(self, query: str, limit: int) -> tuple[list[str], int]:
        """Labels that have all words of the query in their names, the best first, and how many there are.

        Equal names come first, then names that begin with the query, then those in which each word begins a word.
        """
        words = folded(query).split()
        found: Sequence[int] = range(len(self._labels))
        if not words:
            return self._labels[:limit], len(found)
        texts = self._texts
        for word in sorted(words, key=len, reverse=True):
            found = [at for at in found if word in texts[at]]
        phrase, beginnings = "\n" + " ".join(words), [(f"\n{word}", f" {word}") for word in words]

        def rank(at: int) -> int:
            text = texts[at]
            if phrase in text:
                return 0 if f"{phrase}\n" in text else 1
            for first, later in beginnings:
                if first not in text and later not in text:
                    return 3
            return 2

        # equal ranks stay in order
        best = heapq.nsmallest(limit, found, key=rank)
        return [self._labels[at] for at in best], len(found)

    def named(self, name: str) -> str | None:
        """The one label with a name or notation, in upper or lower case and without regard to accents.

        Else the one code of digits that is the name with zeros before it: spreadsheets make numbers of codes.
        """
        at = self._by_name.get(folded(name))
        return self._by_bare_code.get(name) if at is None else self._labels[at]


_indexes: WeakKeyDictionary[LoadedModel, LabelIndex] = WeakKeyDictionary()


def index_of(loaded: LoadedModel) -> LabelIndex:
    """The index of a version, made once for as long as the version is in memory."""
    found = _indexes.get(loaded)
    if found is None:
        found = _indexes[loaded] = LabelIndex(loaded)
    return found


def load_reviewed(session: Session, cache: ModelCache, ref: str) -> LoadedModel:
    """The model version of a queue.

    Raises
    ------
    NotFound
        There is no such queue, or the version was deleted.
    """
    return cache.get(_version(session, ref))


def load_if_kept(session: Session, cache: ModelCache, ref: str) -> LoadedModel | None:
    """The model version of a queue, None where it was deleted; raises NotFound if there is no such queue."""
    version = _version(session, ref)
    try:
        return cache.get(version)
    except NotFound:
        return None


def _version(session: Session, ref: str) -> Reference:
    with reading(session):
        review = by_ref(session, tables.Review, ref)
        return review.workspace, review.model, review.version, None


def find(
    session: Session,
    cache: ModelCache,
    ref: str,
    search: str | None,
    labels: Sequence[str],
    limit: int,
    language: str | None,
) -> FoundLabels:
    """Search the labels of a queue's version, or describe some of them, by default in the language of the queue.

    Raises
    ------
    NotFound
        There is no such queue, or the version was deleted.
    """
    loaded = load_reviewed(session, cache, ref)
    if language is None:
        with reading(session):
            language = reviews.language_of(session, by_ref(session, tables.Review, ref))
    index = index_of(loaded)
    if labels:
        chosen = [label for label in dict.fromkeys(labels) if label in index.places]
        n_labels = len(chosen)
    else:
        chosen, n_labels = index.search(search or "", limit)
    return FoundLabels(labels=[_found(loaded, label, language) for label in chosen[:limit]], n_labels=n_labels)


def folded(text: str) -> str:
    """The text in lower case, without accents, with single blanks."""
    text = " ".join(text.split()).casefold()
    if text.isascii():
        return text
    return "".join(mark for mark in unicodedata.normalize("NFKD", text) if not unicodedata.combining(mark))


def _labels(loaded: LoadedModel) -> list[str]:
    nodes = () if loaded.tree is None else loaded.tree.names
    return list(dict.fromkeys([*loaded.model.classes, *nodes]))


def _names(label: str, facts: Mapping[str, Any]) -> list[str]:
    given = [label, facts.get("notation") or "", *facts.get("names", {}).values()]
    return list(dict.fromkeys(folded(name) for name in given if name))


def _found(loaded: LoadedModel, label: str, language: str | None) -> FoundLabel:
    above = (loaded.path(label) or [label])[:-1]
    return FoundLabel(
        label=label,
        name=_name(loaded, label, language),
        notation=loaded.labels.shown.get(label, {}).get("notation"),
        path=[_name(loaded, node, language) or node for node in above],
    )


def _name(loaded: LoadedModel, label: str, language: str | None) -> str | None:
    return display_name(loaded.labels.shown.get(label, {}).get("names", {}), language)
