"""What codes are below of, by the codes alone: beginnings, sections of letters, ranges, and zeros at their ends."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.formats.table import row_error, shorten

_MARKS = re.compile(r"[\s.\-/]")
_RANGE = re.compile(r"(\d{1,2})\s*[-\u2013]\s*(\d{1,2})")
_CHECKED = re.compile(r"\d{6,}-\d")
_LEAST_PADDED = 4
# of the codes between top and bottom: a reading by digits that lacks more parents than this is none
_LACKING = 0.1
_WAY = "name a column of parents (format=csv and parent_field), or pass code_lengths"

Fault = Callable[[int, str], None]


class Code(NamedTuple):
    """A code, its line, and the level that a column of the table gives it."""

    name: str
    line: int
    level: int | None = None


@dataclass(frozen=True)
class Parents:
    """What each code is directly below of, without those at the top; and by which rule."""

    of: Mapping[str, str]
    rule: str

    def levels(self) -> dict[str, int]:
        """How deep each code is that has a parent; those at the top, at 1, are left out."""
        found: dict[str, int] = {}
        for name in self.of:
            way: list[str] = []
            while name in self.of and name not in found:
                way.append(name)
                name = self.of[name]
            level = found.get(name, 1)
            for each in reversed(way):
                level += 1
                found[each] = level
        return found


def found_parents(codes: Sequence[Code], lengths: Sequence[int] | None, fault: Fault) -> Parents:
    """The parents of codes.

    Parameters
    ----------
    codes : sequence of Code
        In the order of the table, each once.
    lengths : sequence of int, optional
        How many characters of a code belong to its levels, from the top; found out if None.
    fault : callable
        Takes the line of a code and what is wrong with it.

    Raises
    ------
    FormatError
        The codes have no levels, or may be read in several ways.
    """
    if not codes:
        raise row_error(1, "the table has a header but no rows")
    checked = all(_CHECKED.fullmatch(code.name) for code in codes)
    ranges = _ranges(codes)
    plain = {
        code.name: code.name if code.name in ranges else _MARKS.sub("", code.name[:-2] if checked else code.name)
        for code in codes
    }
    by_plain: dict[str, str] = {}
    for code in codes:
        other = by_plain.setdefault(plain[code.name], code.name)
        if other != code.name:
            fault(code.line, f"'{shorten(code.name)}' differs from '{shorten(other)}' only in punctuation")
    widths = {len(each) for name, each in plain.items() if name not in ranges}
    padded = len(widths) == 1 and min(widths) >= _LEAST_PADDED and all(each.isdigit() for each in plain.values())
    padded = padded and any(each.endswith("0") for each in plain.values())
    if lengths is not None:
        return _by_lengths(codes, plain, by_plain, lengths, padded, fault)
    if padded:
        return _by_zeros(codes, plain, by_plain)
    if len(widths) == 1:
        detail = f"all codes have {min(widths)} characters, so none is the beginning of another: for a list without "
        raise row_error(codes[0].line, f"{detail}parents use format=csv; for levels pass code_lengths, as 1,2,4")
    return _by_beginnings(codes, plain, by_plain, ranges, fault)


def _by_beginnings(
    codes: Sequence[Code],
    plain: Mapping[str, str],
    by_plain: Mapping[str, str],
    ranges: Mapping[str, Sequence[str]],
    fault: Fault,
) -> Parents:
    sections = {code.name: code.line for code in codes if len(code.name) == 1 and code.name.isalpha()}
    known = {each: name for each, name in by_plain.items() if name not in ranges}
    known |= {number: name for name, numbers in ranges.items() for number in numbers}
    # with sections, the codes of digits have a shortest length of their own
    numbered = bool(sections) and any(each[:1].isdigit() for each in known)
    lengths = [len(each) for each in known if not numbered or each[:1].isdigit()]
    shortest = min(lengths)
    section: str | None = None
    filled: set[str] = set()
    of: dict[str, str] = {}
    for code in codes:
        mine = plain[code.name]
        if code.name in ranges:
            continue
        if numbered and code.name in sections:
            section = code.name
            continue
        above = next((known[mine[:at]] for at in range(len(mine) - 1, 0, -1) if mine[:at] in known), None)
        if above is None and known[mine] != code.name:  # a number within a range
            above = known[mine]
        if section is not None:
            filled.add(section)
            above = section if above is None and len(mine) == shortest else above
        if above is not None:
            of[code.name] = above
        elif numbered or len(mine) > shortest:
            what = "has no section above it" if numbered and len(mine) == shortest else "begins with no other code"
            fault(code.line, f"'{shorten(code.name)}' {what} of the table: add its parent, or {_WAY}")
    for name, line in sections.items() if numbered else ():
        if name not in filled:
            fault(
                line,
                f"no code follows the section '{name}': each section must directly precede its divisions, or {_WAY}",
            )
    return Parents(of, "sections, beginnings of codes" if numbered else "beginnings of codes")


def _ranges(codes: Sequence[Code]) -> dict[str, list[str]]:
    """The numbers within ranges: 31, 32 and 33 of `31-33`."""
    found: dict[str, list[str]] = {}
    for code in codes:
        match = _RANGE.fullmatch(code.name)
        if match is not None and len(match[1]) == len(match[2]) and match[1] < match[2]:
            numbers = range(int(match[1]), int(match[2]) + 1)
            found[code.name] = [str(number).zfill(len(match[1])) for number in numbers]
    return found


def _by_zeros(codes: Sequence[Code], plain: Mapping[str, str], by_plain: Mapping[str, str]) -> Parents:
    width = len(next(iter(plain.values())))
    pairs, digits = (
        {code.name: _padded_parent(plain[code.name], lengths) for code in codes}
        for lengths in (range(2, width + 1, 2), range(2, width + 1))
    )
    inner = [code.name for code in codes if plain[code.name].endswith("0") and digits[code.name]]
    lacking = {
        rule: [name for name, parent in above.items() if parent and parent not in by_plain]
        for rule, above in (("pairs", pairs), ("digits", digits))
    }
    n_lacking = len(set(inner) & set(lacking["digits"]))
    if width % 2 == 0 and not lacking["pairs"] and n_lacking > _LACKING * len(inner):
        return Parents({name: by_plain[each] for name, each in pairs.items() if each}, "pairs of digits")
    if not lacking["digits"] and (width % 2 or lacking["pairs"]):
        return Parents({name: by_plain[each] for name, each in digits.items() if each}, "digits")
    steps = [",".join(map(str, range(2, width + 1, step))) for step in (2, 1)]
    first = (lacking["pairs"] or lacking["digits"] or [codes[0].name])[0]
    line = next(code.line for code in codes if code.name == first)
    detail = "the codes are filled up with zeros, and how many digits a level has is not certain"
    missing = pairs[first] if lacking["pairs"] and pairs[first] else None
    detail += f" (of '{shorten(first)}' the parent by pairs, '{missing}', is not in the table)" if missing else ""
    raise row_error(line, f"{detail}: pass code_lengths={steps[0]} or code_lengths={steps[1]}")


def _padded_parent(code: str, lengths: Sequence[int]) -> str | None:
    """The code that is left when the last level that is not zero is taken away; None of one at the top."""
    own = _own_length(code, lengths)
    above = [length for length in lengths if length < own]
    return code[: above[-1]].ljust(len(code), "0") if above else None


def _own_length(code: str, lengths: Sequence[int]) -> int:
    return next((length for length in lengths if not code[length:].strip("0")), len(code))


def _by_lengths(
    codes: Sequence[Code],
    plain: Mapping[str, str],
    by_plain: Mapping[str, str],
    lengths: Sequence[int],
    padded: bool,
    fault: Fault,
) -> Parents:
    of: dict[str, str] = {}
    for code in codes:
        mine = plain[code.name]
        fill = len(mine) if padded else 0
        own = _own_length(mine, lengths) if padded else len(mine)
        if own not in lengths:
            fault(code.line, f"'{shorten(code.name)}' has {own} characters, which code_lengths does not name")
            continue
        shorter = [mine[:length].ljust(fill, "0") for length in reversed(lengths) if length < own]
        above = next((by_plain[each] for each in shorter if each in by_plain), None)
        if above is not None:
            of[code.name] = above
        elif shorter:
            fault(code.line, f"'{shorten(code.name)}' is below '{shorten(shorter[0])}', which is not in the table")
    return Parents(of, "code_lengths")
