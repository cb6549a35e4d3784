"""MARC-8, the character sets of MARC 21 records from before Unicode, by the Library of Congress's code tables.

Two sets are active at a time, G0 for bytes below 0x80 and G1 for those above; escape sequences change them. Combining
marks come before their letter. Each field begins with ASCII and ANSEL.
"""

import re
import unicodedata

from pymarc.marc8_mapping import CODESETS, ODD_MAP

_ASCII, _ANSEL, _CHINESE = 0x42, 0x45, 0x31
# (or , for G0, ) or - for G1, each perhaps after the $ of sets of three bytes; ANSEL's final character is !E
_DESIGNATION = re.compile(rb"\x1b\$?([(,)\-])?!?([1-4BENQS])")
_SIMPLE = {b"s": _ASCII, b"g": 0x67, b"b": 0x62, b"p": 0x70}


def decode_marc8(data: bytes) -> str:
    """The text of a subfield, in NFC.

    Raises
    ------
    ValueError
        Bytes that are no character of the active set; the message names the first.
    """
    if data.isascii() and b"\x1b" not in data:
        return data.decode()
    found: list[str] = []
    marks: list[str] = []
    low, high, at = _ASCII, _ANSEL, 0
    while at < len(data):
        if data[at] == 0x1B:
            simple = _SIMPLE.get(data[at + 1 : at + 2])
            designated = None if simple is not None else _DESIGNATION.match(data, at)
            if simple is not None:
                low, at = simple, at + 2
            elif designated is not None:
                if designated[1] in (b")", b"-"):
                    high = designated[2][0]
                else:
                    low = designated[2][0]
                at = designated.end()
            else:
                raise ValueError(f"an escape sequence {_hex(data[at : at + 3])} that MARC-8 does not have")
            continue
        active = low if data[at] < 0x80 else high
        width = 3 if active == _CHINESE and data[at] != 0x20 else 1
        character, combines = _character(data[at : at + width], active, width)
        at += width
        if combines:
            marks.append(character)
        else:
            found += [character, *marks]
            marks = []
    if marks:
        raise ValueError("a combining mark without a letter")
    return unicodedata.normalize("NFC", "".join(found))


def _character(code: bytes, active: int, width: int) -> tuple[str, bool]:
    """A character, and whether it is a mark of the next one."""
    if len(code) == 1 and code[0] <= 0x20:
        return chr(code[0]), False
    table = CODESETS[active]
    number = int.from_bytes(code)
    # the tables have a set's codes for G0 or for G1 alone, which differ in each byte's highest bit
    other = int.from_bytes(bytes(byte ^ 0x80 for byte in code))
    for key in (number, other):
        if key in table:
            character, combines = table[key]
            return chr(character), bool(combines)
        if width == 3 and key in ODD_MAP:
            return chr(ODD_MAP[key]), False
    raise ValueError(f"bytes {_hex(code)} that are not a MARC-8 character")


def _hex(code: bytes) -> str:
    return " ".join(f"{byte:02X}" for byte in code)
