"""Labels that look alike: the same word in another Unicode form or case, the same number, or in brackets."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, get_args

from app.datasets.statistics_schemas import Likeness
from app.values import whole_number

KINDS: tuple[Likeness, ...] = get_args(Likeness)

# Default_Ignorable_Code_Point of Unicode 15: characters that nobody sees
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# what is above the small letter of a Turkish or a Lithuanian capital
_DOT = re.compile("(?<=[ij])\u0307")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*[1-9][0-9]*")
_BRACKETS = "[](){}<>\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb "


class Alike(NamedTuple):
    """Labels that one reader would take for one.

    Attributes
    ----------
    kinds : tuple of str
        In what they differ.
    """

    labels: tuple[str, ...]
    kinds: tuple[Likeness, ...]


def similar_labels(labels: Sequence[str]) -> list[Alike]:
    """The groups of labels that are alike, in the order of their first label."""
    found = []
    for group in _groups(labels, KINDS).values():
        if len(group) > 1:
            alone = [kind for kind in KINDS if len(_groups(group, [kind])) == 1][:1]
            needed = [kind for kind in KINDS if len(_groups(group, [each for each in KINDS if each != kind])) > 1]
            found.append(Alike(tuple(group), tuple(alone or needed or KINDS)))
    return found


def merged(labels: Sequence[str], counts: Sequence[int], kinds: Collection[Likeness]) -> list[str]:
    """What each label becomes where those that differ in these kinds alone are one: the one that most rows have.

    Parameters
    ----------
    labels : sequence of str
        Each once.
    counts : sequence of int
        Rows that have them; of as many the first in the order of characters is kept.
    kinds : collection of str
    """
    count = dict(zip(labels, counts, strict=True))
    kept: dict[str, str] = {}
    for group in _groups(labels, kinds).values():
        best = min(group, key=lambda label: (-count[label], label))
        kept |= dict.fromkeys(group, best)
    return [kept[label] for label in labels]


def key(label: str, kinds: Collection[Likeness] = KINDS) -> str:
    """Equal for labels that differ in these kinds alone."""
    if "unicode" in kinds:
        label = " ".join(_IGNORABLE.sub("", unicodedata.normalize("NFKC", label)).split())
    if "case" in kinds:
        label = _DOT.sub("", unicodedata.normalize("NFD", label.casefold())).replace("\u0131", "i")
        label = unicodedata.normalize("NFC", label)
    if "unicode" in kinds and "case" in kinds:  # folding may take a form apart
        label = unicodedata.normalize("NFKC", label)
    if "brackets" in kinds:
        label = label.strip(_BRACKETS) or label
    if "numbers" in kinds:
        label = _number(label)
    return label


def _number(label: str) -> str:
    """A number without needless zeros, in the digits of ASCII; any other label as it is."""
    digits = "".join(str(unicodedata.decimal(one, one)) for one in label)
    if not _DECIMAL.fullmatch(digits):
        return whole_number(digits) or label
    return digits.lstrip("0").rstrip("0") if digits.startswith("0") else digits.rstrip("0")


def _groups(labels: Sequence[str], kinds: Collection[Likeness]) -> Mapping[str, list[str]]:
    groups = defaultdict(list)
    for label in labels:
        groups[key(label, kinds)].append(label)
    return groups
