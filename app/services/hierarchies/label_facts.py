"""What answers tell of labels beside themselves, with names in all languages or in one."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from app.errors import InvalidInput, Item
from app.schemas.datasets.texts import shortened
from app.schemas.predictions.predictions import LANGUAGE_PATTERN

_TAG = re.compile(LANGUAGE_PATTERN)


class LabelFacts(Protocol):
    """Facts by label, as a mapping's ``get`` gives them."""

    def get(self, label: str, default: Mapping[str, Any], /) -> Mapping[str, Any]:
        """The label's, or the default."""


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
    """The facts with names in one language, or in all where it is None; raises InvalidInput for what is no language."""
    if language is None:
        return shown
    if not isinstance(language, str) or not _TAG.fullmatch(language):
        fault = Item("a language's tag was expected, as fi or de-AT", "/language")
        raise InvalidInput("The request does not fit its schema.", [fault])
    return _InOneLanguage(shown, language)


def name_in(names: Mapping[str, str], language: str) -> str | None:
    """The name in a language, or in the one that its tag, shortened from its end, names (RFC 4647, section 3.4).

    Where there is none, the name in a variety of the language will do (section 3.3.1): asked for pt, that in pt-BR.
    """
    by_tag = {tag.lower(): name for tag, name in names.items()}
    found = next((by_tag[tag] for tag in shortened(language) if tag in by_tag), None)
    if found is not None:
        return found
    return next((by_tag[tag] for tag in sorted(by_tag) if tag.startswith(f"{language.lower()}-")), None)


def name_steps(steps: Iterable[dict[str, Any]], facts: LabelFacts) -> None:
    """Give the steps of an explanation the names of their labels, where one language was asked for."""
    if not isinstance(facts, _InOneLanguage):
        return
    for step in steps:
        step["name"] = facts.get(step["label"], {}).get("name")
        step["rival_name"] = None if step["rival"] is None else facts.get(step["rival"], {}).get("name")
