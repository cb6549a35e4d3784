"""What a file of labels comes to: their tree, what is said of each, and what found no place in the tree."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from app.datasets.recipe_schemas import shortened
from solvers.labels.taxonomy import Taxonomy

NO_LANGUAGE = "und"


@dataclass(frozen=True)
class Label:
    """What a vocabulary says of one label beside its place in the tree.

    Attributes
    ----------
    id : str, optional
        Its URI or code, where datasets call it by something else.
    notation : str, optional
        The code by which people know it.
    names : mapping of str to str
        The preferred name by language (a BCP 47 tag, in lower case; `und`: not given).
    alternatives : mapping of str to sequence of str
        Other names by language.
    replaced_by : sequence of str
        Labels to be used in its place.
    excluded : bool
        The import has left it out.
    """

    id: str | None = None
    notation: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    alternatives: Mapping[str, Sequence[str]] = field(default_factory=dict)
    deprecated: bool = False
    replaced_by: Sequence[str] = ()
    excluded: bool = False

    def facts(self) -> dict[str, Any]:
        """What is known, as JSON; what is not known is left out."""
        known: dict[str, Any] = {
            "id": self.id,
            "notation": self.notation,
            "names": dict(self.names),
            "alternatives": {language: list(names) for language, names in self.alternatives.items()},
            "deprecated": self.deprecated,
            "replaced_by": list(self.replaced_by),
            "excluded": self.excluded,
        }
        return {name: value for name, value in known.items() if value}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Label:
        """A label of what :meth:`facts` gave."""
        return cls(**facts)


class Dropped(NamedTuple):
    """A parent that a label has in the file and not in the tree."""

    label: str
    parent: str
    line: int


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A parsed file of labels.

    Attributes
    ----------
    labels : mapping of str to Label
        By node of the tree, without nodes that have nothing but a name.
    retired : mapping of str to Label
        Deprecated labels without a place in the tree, and excluded ones.
    dropped : sequence of Dropped
        The parents that the tree had no room for, by line.
    read_as : mapping of str to str
        What was found out about the file from itself.
    """

    tree: Taxonomy
    labels: Mapping[str, Label] = field(default_factory=dict)
    retired: Mapping[str, Label] = field(default_factory=dict)
    dropped: Sequence[Dropped] = ()
    read_as: Mapping[str, str] = field(default_factory=dict)


class Names:
    """Collects the names of one label by language.

    Parameters
    ----------
    languages : collection of str, optional
        The languages to keep, in any case of their tags, `en` also for `en-GB`; all, if None.
    """

    def __init__(self, languages: Iterable[str] | None = None) -> None:
        self._languages = None if languages is None else {language.lower() for language in languages}
        self.preferred: dict[str, str] = {}
        self.alternatives: dict[str, list[str]] = {}

    def prefer(self, name: str, language: str | None = None) -> None:
        """Take a preferred name; where a language has one already, this is another name."""
        language = (language or NO_LANGUAGE).lower()
        name = tidy(name)
        if not name or not self._wanted(language):
            return
        if self.preferred.setdefault(language, name) != name:
            self.also(name, language)

    def also(self, name: str, language: str | None = None) -> None:
        """Take another name."""
        language = (language or NO_LANGUAGE).lower()
        name = tidy(name)
        if name and self._wanted(language):
            known = self.alternatives.setdefault(language, [])
            if name not in known:
                known.append(name)

    def _wanted(self, language: str) -> bool:
        wanted = self._languages
        return wanted is None or any(tag in wanted for tag in shortened(language))


def tidy(text: str) -> str:
    """A text in one line, without control characters and halves of characters."""
    text = " ".join(text.split())
    if text.isprintable():
        return text
    return "".join(character for character in text if unicodedata.category(character) not in ("Cc", "Cs"))


def primary(tag: str) -> str:
    """The language of a tag without its script, region and variants."""
    return tag.split("-")[0].lower()


def names_in(
    label: str, preferred: Mapping[str, str], others: Mapping[str, Sequence[str]], language: str | None
) -> list[str]:
    """All names of a label in a language and without one, the preferred first; in all languages where it is None.

    A label without names is its own name, unless it is an address.
    """
    wanted = None if language is None else {primary(language), NO_LANGUAGE}
    found = [name for tag, name in preferred.items() if wanted is None or primary(tag) in wanted]
    found += [name for tag, some in others.items() if wanted is None or primary(tag) in wanted for name in some]
    if found or preferred or others:
        return found
    return [] if "://" in label else [label]
