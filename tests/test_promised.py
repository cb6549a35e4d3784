"""What programs of others rely on only grows within a major version."""

from collections.abc import Iterable

import pytest
from promised import FOLDER, SURFACES


def _broken(kept: Iterable[str], found: Iterable[str]) -> list[str]:
    """Lines that are gone, and demands on callers that were not made before, of things that were there."""
    kept, found = set(kept), set(found)
    owners = {_owner(line) for line in kept}
    gone = [line for line in kept - found if not line.startswith("needs ")]
    return sorted(gone + [line for line in found - kept if line.startswith("needs ") and _owner(line) in owners])


def _owner(line: str) -> str:
    """A schema, a method of a client, a command, or an operation."""
    named = line.removeprefix("needs ")
    if named.startswith(("polymargin ", "/")):
        return named.rpartition(" ")[0]
    if " " in named:
        return " ".join(named.split(" ")[:2])
    return named.partition("(")[0] if "(" in named else named.rpartition(".")[0]


@pytest.mark.parametrize("name", SURFACES)
def test_nothing_that_others_rely_on_is_gone_and_nothing_more_is_demanded(name: str) -> None:
    kept = (FOLDER / f"{name}.txt").read_text().splitlines()
    assert len(kept) > 50
    assert _broken(kept, SURFACES[name]()) == []


KEPT = ["POST /a", "POST /a query x", "A.b", "A.b: string", 'A.b: = "one"', "needs A.b", "Client.f", "Client.f(x)"]


@pytest.mark.parametrize("lost", ["POST /a query x", "A.b", 'A.b: = "one"', "Client.f(x)"])
def test_what_is_removed_is_found(lost: str) -> None:
    assert _broken(KEPT, [line for line in KEPT if line != lost]) == [lost]


@pytest.mark.parametrize("demand", ["needs A.c", "needs POST /a query x", "needs Client.f(y)"])
def test_what_a_caller_must_give_now_is_found(demand: str) -> None:
    assert _broken(KEPT, [*KEPT, demand]) == [demand]


@pytest.mark.parametrize(
    "new", ["A.c", 'A.b: = "two"', "POST /new", "needs New.field", "Client.g", "needs Client.g(x)"]
)
def test_what_is_added_and_what_need_not_be_given_any_more_is_no_break(new: str) -> None:
    assert _broken(KEPT, [*(line for line in KEPT if line != "needs A.b"), new]) == []
