"""Which role, in which workspace, the groups of a person give."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import get_args

from app.access.schemas import Role
from app.schemas import NAME_PATTERN

_ROLES: tuple[Role, ...] = get_args(Role)  # the lowest first
_DEFAULT_WORKSPACE = "default"
_EXPECTED = "expected entries such as annotators=clerk or legal=editor@legal, with semicolons between them"


@dataclass(frozen=True)
class Place:
    """A role in a workspace."""

    role: Role
    workspace: str = _DEFAULT_WORKSPACE


def parse_place(text: str) -> Place:
    """The place that ``role`` or ``role@workspace`` names; raises ValueError."""
    name, at, workspace = text.strip().partition("@")
    role = next((role for role in _ROLES if role == name), None)
    if role is None:
        raise ValueError(f"expected one of the roles {', '.join(_ROLES)}, got {name!r:.80}")
    if at and not re.fullmatch(NAME_PATTERN, workspace):
        raise ValueError(f"{workspace!r:.80} is not the name of a workspace")
    return Place(role, workspace or _DEFAULT_WORKSPACE)


def parse_groups(text: str) -> dict[str, Place]:
    """The places of groups: ``admins=admin; legal=editor@legal``; raises ValueError.

    Semicolons separate the entries, and the last ``=`` ends a group's name: names in directories have commas and ``=``.
    """
    places: dict[str, Place] = {}
    for entry in filter(None, map(str.strip, text.split(";"))):
        group, _, place = entry.rpartition("=")
        group = group.strip()
        if not group or re.search(rf"=\s*({'|'.join(_ROLES)})(@[^,]*)?\s*,", group):
            raise ValueError(_EXPECTED)
        if group in places:
            raise ValueError(f"the group {group!r:.80} is named twice")
        places[group] = parse_place(place)
    return places


def highest_place(groups: Collection[str], places: dict[str, Place], default: Place | None) -> Place | None:
    """The place with the highest role among those of ``groups``; of equal roles, the one that is listed first."""
    found = [place for group, place in places.items() if group in groups]
    return max(found, key=lambda place: _ROLES.index(place.role), default=default)
