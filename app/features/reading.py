"""Tokenization: Unicode normalization, case folding, invisible characters, and scripts without spaces.

Version 2 of the reading follows Unicode's text segmentation (UAX 29): a word is a run of letters, digits and
underscores with their combining marks. Apostrophes, full stops and hyphens end a word, as in scikit-learn. Scripts
that put no blanks between words (Han, kana, Thai, Lao, Khmer, Burmese and their like) become runs of characters.
Version 1 is what models of earlier releases were trained with: runs of Python's word characters in the text's
lower case.

This module needs the standard library alone: archives carry its source within their script `load.py`.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

Placed = list[tuple[str, int, int]]


def _class(*ranges: str) -> str:
    """Ranges such as "0E01-0E4F 0E5A" as the inside of a character class."""
    found = []
    for part in " ".join(ranges).split():
        first, _, last = part.partition("-")
        found.append(f"\\U{int(first, 16):08x}-\\U{int(last or first, 16):08x}")
    return "".join(found)


def _marks() -> str:
    """All combining marks, the inside of a character class."""
    ranges: list[list[int]] = []
    # no plane between the second and the fifteenth has any; variation selectors are dropped before words are sought
    for code in range(0x300, 0x20000):
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return _class(*(f"{first:x}-{last:x}" for first, last in ranges))


_ZWSP, _ZWNJ, _ZWJ = "\u200b", "\u200c", "\u200d"
# Default_Ignorable_Code_Point of the Unicode character database, and the signs of trade marks, whose compatible
# forms are letters that would stick to the word before
_UNSEEN = _class(
    "AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0",
    "FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF 2120 2122",
)
# scripts whose letters join, where a joiner or non-joiner between two letters is spelling
_CURSIVE = _class("600-6FF 700-77F 7C0-7FA 840-8FF 1800-18AF A840-A877 FB50-FDFF FE70-FEFC 10AC0-10AFF 1E900-1E95F")
# scripts without blanks between words: ideographs with kana, and those of Line_Break SA, AK and their like; their
# digits are left to words
_IDEOGRAPHS = _class(
    "2E80-2FDF 3005-3007 3021-3029 3031-3035 3038-303C 3041-30FA 30FC-312F 31A0-31FF 3400-4DBF 4E00-9FFF A000-A48C",
    "F900-FAFF FF66-FF9F 16FE0-18D8F 1AFF0-1B2FF 20000-3FFFF",
)
_COMPLEX = _class(
    "E01-E3A E40-E4F E81-ECF EDC-EDF 1000-103F 104C-108F 109A-109F 1780-17DF 1950-19CF 19DE-19DF 1A20-1A7F 1AA0-1AAF",
    "1B00-1B4C A980-A9CF A9E0-A9EF A9FA-A9FE AA60-AADF 11700-1172B 11740-11746",
)
# consonants without their vowel: as spelt before Unicode 5.1 and 4.1, and the letters that are the same since
_BARE = {
    "\u0d23\u0d4d\u200d": "\u0d7a", "\u0d28\u0d4d\u200d": "\u0d7b", "\u0d30\u0d4d\u200d": "\u0d7c",
    "\u0d32\u0d4d\u200d": "\u0d7d", "\u0d33\u0d4d\u200d": "\u0d7e", "\u0d15\u0d4d\u200d": "\u0d7f",
    "\u09a4\u09cd\u200d": "\u09ce",
}  # fmt: skip
# viramas that stack the next consonant below the one before
_STACKERS = _class("1039 17D2 1A60 1B44 A9C0")
_HANGUL = _class("AC00-D7A3")
_EMOJI = _class("231A-231B 23E9-23F3 2600-2775 2795-27BF 2B1B-2B1C 2B50-2B55 1F300-1F3FA 1F400-1FAFF")
_SKIN, _FLAG = _class("1F3FB-1F3FF"), _class("1F1E6-1F1FF")
# MidLetter, without those that are ASCII or look alike; Hebrew's signs and the Ukrainian apostrophe by what is typed
_WITHIN = "\u00b7\u0387\u055f\u05f3\u05f4\u2027"
_MARKS = _marks()
_LETTER = rf"\w{_MARKS}{_ZWNJ}{_ZWJ}"

_unseen = re.compile(f"[{_UNSEEN}]+")
_cursive = re.compile(f"[{_CURSIVE}]")
_emoji = re.compile(f"[{_EMOJI}{_SKIN}]")
_unspaced = re.compile(f"[{_IDEOGRAPHS}{_COMPLEX}]")
# what a limit in words counts: words, and characters of scripts without blanks
counted_words = re.compile(f"[{_IDEOGRAPHS}{_COMPLEX}]|(?:[^\\W{_IDEOGRAPHS}{_COMPLEX}]|[{_MARKS}{_ZWNJ}{_ZWJ}])+")
_within = re.compile(f"[{_WITHIN}]")
_run = re.compile(rf"\w[{_LETTER}]*")
_run_within = re.compile(rf"\w[{_LETTER}]*(?:[{_WITHIN}](?=[^\W\d_])[{_LETTER}]+)*")
_faces = re.compile(f"[{_FLAG}]{{2}}|[{_EMOJI}][{_SKIN}]?(?:{_ZWJ}[{_EMOJI}][{_SKIN}]?)*")
_piece = re.compile(
    rf"(?P<ideographs>[{_IDEOGRAPHS}{_ZWNJ}{_ZWJ}]+)|(?P<complex>[{_COMPLEX}{_ZWNJ}{_ZWJ}]+)"
    rf"|(?P<word>[^{_IDEOGRAPHS}{_COMPLEX}]+)"
)
_cluster = re.compile(rf"(?s:.)(?:[{_MARKS}{_ZWNJ}{_ZWJ}]|(?<=[{_STACKERS}])\w)*")
# a long text is normalised in pieces: a piece may begin at a character that does not combine with the one before
_chunk = re.compile(rf"(?s:.)[{_MARKS}{_ZWJ}{_class('1160-11FF FF9E-FF9F')}]*")
_bare = re.compile("|".join(_BARE))
_blanks = re.compile(r"\s+|\S+")
_dotted = re.compile("([ij\u012f\u1ecb])\u0307")
_typed = re.compile(
    "(?<=[\u0400-\u052f])['\u2019](?=[\u0400-\u052f])"
    "|(?<=[\u05d0-\u05ea])['\u2019](?=[\u05d0-\u05ea])|(?<=[\u05d0-\u05ea])[\"\u201d](?=[\u05d0-\u05ea])"
)
_two_letters = re.compile(f"[{_HANGUL}{_IDEOGRAPHS}]")
_TURKIC = ("tr", "az", "crh", "gag")
# characters of a gram, by script: an ideograph is about a word, a cluster of the others about a sound
_IDEOGRAPH_LENGTHS, _COMPLEX_LENGTHS = range(1, 3), range(1, 4)


class Reader(Protocol):
    """What reads texts, by the version that a recipe names."""

    def fold(self, text: str) -> str:
        """The text in the form in which words are sought."""

    def ascii_alike(self, text: str) -> bool:
        """Whether an ASCII text reads as runs of its letters, digits and underscores, lowered if the recipe says so."""

    def read(self, text: str) -> tuple[list[str], list[str]]:
        """The words of a text, and its runs of characters where no blanks are between words."""

    def placed(self, text: str) -> tuple[Placed, Placed]:
        """As :meth:`read`, each with its beginning and end in :meth:`fold` of the text."""

    def origins(self, text: str) -> list[tuple[int, int]] | None:
        """For each character of :meth:`fold`, where it comes from in the text; None where each one is its own."""


def reader(recipe: Mapping[str, Any]) -> Reader:
    """The reader of a recipe as JSON values; one without a version is of a model of an earlier release."""
    return Reader1(recipe) if recipe.get("reader", 1) == 1 else Reader2(recipe)


class Reader1:
    """Runs of Python's word characters in the text's lower case; nothing is normalised."""

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        self._lowercase = recipe["lowercase"]
        self._pattern = re.compile(rf"\b\w{{{recipe.get('min_word_length', 2)},}}\b")

    def fold(self, text: str) -> str:
        """The lower case, where the recipe says so."""
        return text.lower() if self._lowercase else text

    def ascii_alike(self, text: str) -> bool:
        """True."""
        return True

    def read(self, text: str) -> tuple[list[str], list[str]]:
        """The words; no script has its characters in runs."""
        return self._pattern.findall(self.fold(text)), []

    def placed(self, text: str) -> tuple[Placed, Placed]:
        """As :meth:`read`."""
        return [(match[0], *match.span()) for match in self._pattern.finditer(self.fold(text))], []

    def origins(self, text: str) -> list[tuple[int, int]] | None:
        """Lower case is made character by character."""
        if len(self.fold(text)) == len(text):
            return None
        return [(place, place + 1) for place, character in enumerate(text) for _ in character.lower()]


class Reader2:
    """Words of UAX 29, normalised, case folded by the recipe's language, without what nobody sees."""

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        self._form, self._lowercase = recipe["normalization"], recipe["lowercase"]
        self._turkic = (recipe.get("language") or "").split("-")[0].lower() in _TURKIC
        self._least, self._grams = recipe["min_word_length"], recipe["unspaced"] == "ngrams"
        self._plain = re.compile(rf"\b\w{{{self._least},}}\b", re.ASCII)
        # dictionaries of lemmas have words in lower case, with the letters that folding replaces
        self._lower = str.lower if recipe.get("lemmas") else str.casefold
        first, last = recipe.get("char_ngrams") or (1, 0)
        lengths = set(range(first, last + 1))
        self._ideograph_lengths = sorted(lengths.union(_IDEOGRAPH_LENGTHS))
        self._complex_lengths = sorted(lengths.union(_COMPLEX_LENGTHS))

    def fold(self, text: str) -> str:
        """Normalised, folded, without default ignorable characters."""
        if not text.isascii():
            text = _unseen.sub(_seen, text)
        return _as_typed(self._normal(text))

    def ascii_alike(self, text: str) -> bool:
        """All but a capital I that becomes a dotless one."""
        return not (self._turkic and self._lowercase and "I" in text)

    def read(self, text: str) -> tuple[list[str], list[str]]:
        """The words, and where scripts have no blanks the runs of their characters; emoji are words."""
        if text.isascii() and self.ascii_alike(text):
            return self._plain.findall(text.lower() if self._lowercase else text), []
        text = self.fold(text)
        if self._simple(text):
            least = self._least
            return [run for run in _run.findall(text) if len(run) >= least or self._long(run)], []
        words, grams = self._found(text)
        return [word for word, _, _ in words], [gram for gram, _, _ in grams]

    def placed(self, text: str) -> tuple[Placed, Placed]:
        """As :meth:`read`."""
        return self._found(self.fold(text))

    def origins(self, text: str) -> list[tuple[int, int]] | None:
        """Of characters that are made of several, where all of them are."""
        folded = self.fold(text)
        if text.isascii() and len(folded) == len(text):
            return None
        cleaned: list[str] = []
        places: list[int] = []
        end = 0
        for match in _unseen.finditer(text):
            kept = _seen(match)
            cleaned.append(text[end : match.start()] + kept)
            places += range(end, match.start())
            places += [match.start()] * len(kept)
            end = match.end()
        places += range(end, len(text))
        plain = "".join(cleaned) + text[end:]
        for pattern in (_chunk, _blanks):
            found = [
                (places[match.start()], places[match.end() - 1] + 1)
                for match in pattern.finditer(plain)
                for _ in self._normal(match[0])
            ]
            if len(found) == len(folded):
                return found
        return [(0, len(text))] * len(folded)

    def _normal(self, text: str) -> str:
        if text.isascii() and not self._turkic:
            return text.lower() if self._lowercase else text
        text = unicodedata.normalize(self._form, text)
        if _ZWJ in text:
            text = _bare.sub(lambda match: _BARE[match[0]], text)
        if not self._lowercase:
            return text
        if self._turkic:
            text = text.replace("\u0130", "i").replace("I", "\u0131")
        text = self._lower(text)
        if not self._turkic:
            text = text.replace("\u0131", "i")  # its capital is I, which may be either
        # a dot above an i is the same letter, as in Lithuanian, or what is left of a Turkish capital
        text = _dotted.sub(r"\1", text) if "\u0307" in text else text
        return unicodedata.normalize(self._form, text)

    @staticmethod
    def _simple(text: str) -> bool:
        return not any(pattern.search(text) for pattern in (_unspaced, _within, _emoji_or_flag))

    def _long(self, word: str) -> bool:
        """Whether a word is long enough; a Hangul syllable or an ideograph counts as two letters."""
        return len(word) + len(_two_letters.findall(word)) >= int(self._least)

    def _found(self, text: str) -> tuple[Placed, Placed]:
        words: Placed = []
        grams: Placed = []
        for match in _run_within.finditer(text):
            run, begin = match[0], match.start()
            if self._grams and _unspaced.search(run):
                for piece, at, lengths in self._pieces(run):
                    if lengths is not None:
                        grams += _grams(piece, begin + at, lengths)
                    elif self._long(piece):
                        words.append((piece, begin + at, begin + at + len(piece)))
            elif self._long(run):
                words.append((run, *match.span()))
        faces = [(match[0], *match.span()) for match in _faces.finditer(text)]
        return (sorted(words + faces, key=lambda word: word[1]) if faces else words), grams

    def _pieces(self, run: str) -> Iterator[tuple[str, int, list[int] | None]]:
        """Parts of a run of one kind of script, with their beginnings and the lengths of grams; None of words."""
        for match in _piece.finditer(run):
            piece = match[0]
            if match["word"] is None:
                ideographs = match["ideographs"] is not None
                yield piece, match.start(), self._ideograph_lengths if ideographs else self._complex_lengths
            elif (word := _run_within.search(piece)) is not None:  # not from a mark of the script before
                yield word[0], match.start() + word.start(), None


_emoji_or_flag = re.compile(f"[{_EMOJI}{_FLAG}]")


def _seen(match: re.Match[str]) -> str:
    """What is left of a run of default ignorable characters.

    A joiner or non-joiner is spelling beside a virama and between letters of scripts that join; a joiner makes one
    emoji of several. A blank without width parts words of scripts that have no others.
    """
    text, run = match.string, match[0]
    if match.start() == 0:
        return ""
    base = match.start() - 1
    while base > 0 and unicodedata.combining(text[base]):
        base -= 1
    end = match.end()
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    # marks have no one order before texts are normalised
    marks = text[base + 1 : match.start()] + text[match.end() : end]
    before, after = text[base], text[match.end() : match.end() + 1]  # the end of a text is as a blank
    for character in run:
        if character == _ZWSP and (_unspaced.match(before) or _unspaced.match(after)):
            return character
        if character in (_ZWNJ, _ZWJ) and (
            9 in map(unicodedata.combining, marks)
            or (_cursive.match(before) and end == match.end() and _cursive.match(after))
        ):
            return character
        if character == _ZWJ and _emoji.match(before) and _emoji.match(after):
            return character
    return ""


def _as_typed(text: str) -> str:
    """Replace apostrophes and quotation marks within Cyrillic and Hebrew words by the letters that they represent."""
    if text.isascii() or not ("'" in text or "\u2019" in text or '"' in text or "\u201d" in text):
        return text

    def sign(match: re.Match[str]) -> str:
        if text[match.start() - 1] < "\u0530":
            return "\u02bc"
        return "\u05f3" if match[0] in "'\u2019" else "\u05f4"

    return _typed.sub(sign, text)


def _grams(piece: str, begin: int, lengths: list[int]) -> Placed:
    """Runs of so many characters, each with its marks."""
    ends = [0, *(match.end() for match in _cluster.finditer(piece))]
    return [
        (sys.intern(piece[ends[start] : ends[start + n]]), begin + ends[start], begin + ends[start + n])
        for n in lengths
        for start in range(len(ends) - n)
    ]
