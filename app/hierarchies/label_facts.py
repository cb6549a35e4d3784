"""Facts about labels in predictions, with names in all languages or in one."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from app.datasets.recipe_schemas import shortened
from app.errors import InvalidInput, Item
from app.formats.likeness import key
from app.predictions.schemas import LANGUAGE_PATTERN

_TAG = re.compile(LANGUAGE_PATTERN)


class LabelFacts(Protocol):
    """Facts by label, with a mapping's ``get``."""

    def get(self, label: str, default: Mapping[str, Any], /) -> Mapping[str, Any]:
        """The facts of a label, or the default."""


class _InOneLanguage:
    def __init__(self, shown: Mapping[str, Mapping[str, Any]], language: str) -> None:
        self._shown, self._language = shown, language.lower()

    def get(self, label: str, default: Mapping[str, Any], /) -> Mapping[str, Any]:
        facts = self._shown.get(label)
        if facts is None or "names" not in facts:
            return default if facts is None else facts
        name = name_in(facts["names"], self._language)
        others = {fact: value for fact, value in facts.items() if fact != "names"}
        return others if name is None else {**others, "name": name}


def facts_in(shown: Mapping[str, Mapping[str, Any]], language: Any) -> LabelFacts:
    """The facts with names in one language, or in all if it is None; raises InvalidInput for an invalid tag."""
    if language is None:
        return shown
    if not isinstance(language, str) or not _TAG.fullmatch(language):
        fault = Item("expected a language tag, for example fi or de-AT", "/language")
        raise InvalidInput("The request does not fit its schema.", [fault])
    return _InOneLanguage(shown, language)


def name_in(names: Mapping[str, str], language: str) -> str | None:
    """The name in a language, or in the closest shorter tag (RFC 4647, section 3.4).

    Where there is none, the name in a variety of the language will do (section 3.3.1): asked for pt, that in pt-BR.
    """
    by_tag = {tag.lower(): name for tag, name in names.items()}
    found = next((by_tag[tag] for tag in shortened(language) if tag in by_tag), None)
    if found is not None:
        return found
    return next((by_tag[tag] for tag in sorted(by_tag) if tag.startswith(f"{language.lower()}-")), None)


def display_name(names: Mapping[str, str], *languages: str | None) -> str | None:
    """The name in the first of these languages that has one, else the English one, else the first."""
    wanted = (name_in(names, language) for language in (*languages, "en") if language is not None)
    return next((name for name in wanted if name), None) or next(iter(names.values()), None)


def named_labels(shown: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Labels by the :func:`name_key` of their notation or preferred names in any language."""
    found: dict[str, dict[str, None]] = {}
    for label, facts in shown.items():
        for name in (*facts.get("names", {}).values(), facts.get("notation")):
            if name:
                found.setdefault(name_key(name), {})[label] = None
    return {name: list(labels) for name, labels in found.items()}


def name_key(name: Any) -> str:
    """A key that is equal for names that differ only in Unicode form, invisible characters, case or white space."""
    return key(str(name), ("unicode", "case"))


def name_steps(steps: Iterable[dict[str, Any]], facts: LabelFacts) -> None:
    """Add label names to the steps of an explanation, if one language was requested."""
    if not isinstance(facts, _InOneLanguage):
        return
    for step in steps:
        step["name"] = facts.get(step["label"], {}).get("name")
        step["rival_name"] = None if step["rival"] is None else facts.get(step["rival"], {}).get("name")
