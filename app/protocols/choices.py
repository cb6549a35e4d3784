"""The choices of a Label Studio project and the labels of a model that they map to."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

from app.predictions.model_cache import LoadedModel

Path = tuple[str, ...]
_SEPARATORS = (" > ", ">", " / ", "/", "::", " | ", "|", ".")
# choices from the top whose values and aliases are combined
_MOST_RENAMED = 6
_KNOWN: WeakKeyDictionary[LoadedModel, Mapping[str, Sequence[str]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Choice:
    """One choice: what annotations call it, all words for it, and the choices below it."""

    shown: str
    words: tuple[str, ...]
    below: tuple["Choice", ...] = ()


def from_elements(tag: Any) -> tuple[Choice, ...]:
    """The choices that a labeling configuration lists within a tag; an alias replaces the value in annotations."""
    found = []
    for element in tag:
        value, alias = element.get("value"), element.get("alias")
        if element.tag == "Choice" and (value or alias):
            words = tuple(word for word in (value, alias) if word)
            found.append(Choice(alias or value, words, from_elements(element)))
    return tuple(found)


def from_task(given: Any) -> tuple[Choice, ...]:
    """The choices that a task lists in its data: words, or objects with a value, an alias and children."""
    found = []
    for one in given if isinstance(given, list) else []:
        entry = {"value": one} if isinstance(one, str) else one
        if not isinstance(entry, dict):
            continue
        words = tuple(entry[name] for name in ("value", "alias") if isinstance(entry.get(name), str) and entry[name])
        if words:
            found.append(Choice(words[-1], words, from_task(entry.get("children"))))
    return tuple(found)


class ChosenLabels:
    """Which choice maps to which label, both ways.

    A choice maps to a label by the label itself, its id, its notation or one of its names; below another choice also
    by what a label that is a path has after its parent. A choice that could map to several labels maps to none.

    Attributes
    ----------
    label_of : mapping of tuple of str to str
        The label of each choice, by the choices from the top to it; also by values where annotations have aliases.
    path_of : mapping of str to tuple of str
        The choices from the top to the one of a label.
    """

    def __init__(self, loaded: LoadedModel, choices: Sequence[Choice]) -> None:
        names = _names(loaded)
        self.label_of: dict[Path, str] = {}
        for path, chain in _chains(choices, (), ()):
            label = self._resolve(loaded, names, path, chain)
            if label is not None:
                self.label_of[path] = label
        self.path_of: Mapping[str, Path] = {label: path for path, label in reversed(self.label_of.items())}
        others: dict[Path, set[str]] = {}
        for path, chain in _chains(choices, (), ()):
            if path in self.label_of and len(chain) <= _MOST_RENAMED:
                for words in product(*(choice.words for choice in chain)):
                    others.setdefault(words, set()).add(self.label_of[path])
        self.label_of = {words: next(iter(found)) for words, found in others.items() if len(found) == 1} | self.label_of

    def _resolve(
        self, loaded: LoadedModel, names: Mapping[str, Sequence[str]], path: Path, chain: Sequence[Choice]
    ) -> str | None:
        words = chain[-1].words
        joined = [separator.join(path) for separator in _SEPARATORS] if len(chain) > 1 else []
        above = self.label_of.get(path[:-1]) if len(path) > 1 else None
        for word in (*joined, *words):
            found = names.get(_key(word), ())
            if loaded.tree is not None and (above is not None or len(chain) == 1):
                steps = {label: loaded.path(label) or [label] for label in found}
                below = [label for label, step in steps.items() if step[-2:-1] == ([] if above is None else [above])]
                found = below or ([] if above is not None else found)
            exact = [label for label in found if label == word]
            if len(exact or found) == 1:
                return (exact or found)[0]
        return None


def _chains(
    choices: Sequence[Choice], path: Path, chain: tuple[Choice, ...]
) -> Iterator[tuple[Path, tuple[Choice, ...]]]:
    for choice in choices:
        here, through = (*path, choice.shown), (*chain, choice)
        yield here, through
        yield from _chains(choice.below, here, through)


def _names(loaded: LoadedModel) -> Mapping[str, Sequence[str]]:
    """The labels by all words for them."""
    if loaded in _KNOWN:
        return _KNOWN[loaded]
    found: dict[str, list[str]] = {}
    labels = loaded.model.classes if loaded.tree is None else (*loaded.model.classes, *loaded.tree.names)
    for label in dict.fromkeys(labels):
        facts = loaded.labels.shown.get(label, {})
        words = [label, facts.get("id"), facts.get("notation"), *(facts.get("names") or {}).values()]
        path = loaded.path(label) or []
        if len(path) > 1 and label.startswith(path[-2]):
            words.append(label[len(path[-2]) :].strip(" >/:|."))
        for key in dict.fromkeys(_key(word) for word in words if word):
            found.setdefault(key, []).append(label)
    _KNOWN[loaded] = found
    return found


def _key(word: str) -> str:
    return unicodedata.normalize("NFC", word).strip()
