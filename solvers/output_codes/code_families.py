"""Families of output codes: one-vs-rest, all pairs, random, exhaustive, and error-correcting by Bose and others."""

from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from solvers.numerics.array_types import Ints
from solvers.output_codes.codes import Code, CodeError, closest_rows

Family = Literal["one_vs_rest", "all_pairs", "dense_random", "sparse_random", "exhaustive", "bch"]

FAMILIES: tuple[str, ...] = get_args(Family)
EXHAUSTIVE_CLASSES = 11
DRAWS = 1000
DRAW_WORK = 1 << 28
# primitive polynomials over the field of two elements by degree; bit j is the coefficient of x^j
_PRIMITIVE = {2: 0x7, 3: 0xB, 4: 0x13, 5: 0x25, 6: 0x43, 7: 0x89, 8: 0x11D, 9: 0x211, 10: 0x409, 11: 0x805, 12: 0x1053}


def make(family: str, n_classes: int, n_columns: int | None = None, seed: int = 0) -> Code:
    """The code of a family.

    Two classes have one column, whatever the family.

    Parameters
    ----------
    family : str
        ``one_vs_rest``: a column a class. ``all_pairs``: a column a pair of classes, the others left out.
        ``dense_random``: +1 and -1 with equal chance. ``sparse_random``: 0 with chance 1/2. ``exhaustive``: every
        split of the classes. ``bch``: words of a Bose-Chaudhuri-Hocquenghem code as rows.
    n_columns : int, optional
        For the random families, by default 10 and 15 times the binary logarithm of ``n_classes``, rounded up; for
        ``bch`` rounded up to a power of two less one. Never more than there are different columns.
    seed : int
        Decides the draws of the random families and of ``bch``.

    Returns
    -------
    int8 array, shape (n_classes, n_columns)

    Raises
    ------
    CodeError
        Fewer than two classes, too many for ``exhaustive`` or ``bch``, or ``n_columns`` where the family fixes it.
    """
    if n_classes < 2:
        raise CodeError(f"a code needs at least two classes; got {n_classes}")
    if family in ("one_vs_rest", "all_pairs", "exhaustive") and n_columns is not None:
        raise CodeError(f"the number of classes determines the number of columns of {family}; do not give n_columns")
    if n_columns is not None and n_columns < 1:
        raise CodeError(f"a code needs at least one column; got {n_columns}")
    if n_classes == 2:
        return np.array([[-1], [1]], np.int8)
    match family:
        case "one_vs_rest":
            code = np.full((n_classes, n_classes), -1, np.int8)
            np.fill_diagonal(code, 1)
            return code
        case "all_pairs":
            return _all_pairs(n_classes)
        case "exhaustive":
            return _exhaustive(n_classes)
        case "dense_random" | "sparse_random" | "bch":
            return _drawn(family, n_classes, n_columns or _default_columns(family, n_classes), seed)
    raise CodeError(f"unknown family of codes {family!r:.80}; expected one of {', '.join(FAMILIES)}")


def most_columns(family: str, n_classes: int, n_columns: int | None = None) -> int:
    """How many columns :func:`make` would give, or some more, without making them."""
    if n_classes == 2:
        return 1
    match family:
        case "one_vs_rest":
            return n_classes
        case "all_pairs":
            return n_classes * (n_classes - 1) // 2
        case "exhaustive":
            return int(2 ** (min(n_classes, EXHAUSTIVE_CLASSES) - 1) - 1)
    wanted = n_columns or _default_columns(family, n_classes)
    if family == "bch":
        return int(2 ** min(_degree(n_classes, wanted), max(_PRIMITIVE)) - 1)
    return min(wanted, _possible(n_classes, family == "sparse_random"))


def _default_columns(family: str, k: int) -> int:
    return int(np.ceil((15 if family == "sparse_random" else 10) * np.log2(k)))


def _possible(k: int, sparse: bool) -> int:
    """How many columns there are with two sides, complements counted once."""
    return int((3**k - 2 ** (k + 1) + 1) // 2 if sparse else 2 ** (k - 1) - 1)


@lru_cache(maxsize=4)
def _drawn(family: str, k: int, wanted: int, seed: int) -> Code:
    """A code that is drawn; many draws of many classes take seconds, so the last ones are kept."""
    if family == "bch":
        code = _bch(k, wanted, np.random.default_rng([seed]))
    else:
        code = _random(k, wanted, np.random.default_rng([seed, k]), family == "sparse_random")
    code.setflags(write=False)
    return code


def _all_pairs(k: int) -> Code:
    first, second = np.triu_indices(k, 1)
    code = np.zeros((k, len(first)), np.int8)
    columns = np.arange(len(first))
    code[first, columns], code[second, columns] = 1, -1
    return code


def _exhaustive(k: int) -> Code:
    if k > EXHAUSTIVE_CLASSES:
        raise CodeError(
            f"the exhaustive code of {k} classes has {2 ** (k - 1) - 1} columns; at most {EXHAUSTIVE_CLASSES} classes "
            f"({2 ** (EXHAUSTIVE_CLASSES - 1) - 1} columns) are supported"
        )
    return _splits(k, np.arange(2 ** (k - 1) - 1))


def _splits(k: int, numbers: Ints) -> Code:
    """The splits of k classes by number, 0 to 2^(k - 1) - 2, without complements: the first class is always at +1."""
    bits = (numbers[None, :] >> np.arange(k - 1)[:, None]) & 1
    first = np.ones((1, len(numbers)), np.int64)
    return np.concatenate([first, 2 * bits - 1]).astype(np.int8)


def _random(k: int, wanted: int, rng: np.random.Generator, sparse: bool) -> Code:
    """Of many random codes the one with the largest least distance of rows, then with the fewest pairs at it."""
    possible = _possible(k, sparse)
    wanted = min(wanted, possible)
    # all columns that there are need no choice
    draws = 1 if wanted == possible else int(np.clip(DRAW_WORK // (k * k * wanted), 10, DRAWS))
    best, chosen = (-np.inf, 0.0), None
    for _ in range(draws):
        code = _random_columns(k, wanted, rng, sparse)
        least, pairs = closest_rows(code)
        rank = (least, -float(pairs))
        if rank > best and code.any(axis=1).all() and len(np.unique(code, axis=0)) == k:
            best, chosen = rank, code
    if chosen is None:
        raise CodeError(
            f"none of {draws} random codes with {wanted} columns distinguishes all {k} classes; raise n_columns"
        )
    return chosen


def _random_columns(k: int, wanted: int, rng: np.random.Generator, sparse: bool) -> Code:
    """Columns with two sides, none equal to another or to its complement."""
    if not sparse and k <= 16:
        return _splits(k, rng.choice(2 ** (k - 1) - 1, wanted, replace=False))
    kept = np.empty((k, 0), np.int8)
    while kept.shape[1] < wanted:
        shape = (k, 2 * wanted)
        fresh = rng.choice(np.array([-1, 0, 0, 1], np.int8), shape) if sparse else rng.choice([-1, 1], shape)
        kept = _distinct(np.concatenate([kept, fresh.astype(np.int8)], axis=1))
    return kept[:, :wanted]


def _distinct(code: Code) -> Code:
    """The columns with two sides, each only once and without its complement, in their order."""
    two_sided = (code > 0).any(axis=0) & (code < 0).any(axis=0)
    code = code[:, two_sided]
    leading = code[(code != 0).argmax(axis=0), np.arange(code.shape[1])]
    first: dict[bytes, int] = {}
    for t, column in enumerate(np.ascontiguousarray((code * leading).T)):
        first.setdefault(column.tobytes(), t)
    return np.ascontiguousarray(code[:, list(first.values())])


def _bch(k: int, wanted: int, rng: np.random.Generator) -> Code:
    """Rows are words of the narrow-sense primitive code of the least dimension that has k words.

    The words are drawn: of many draws the one with the largest least distance of rows. Columns that are constant or
    repeat another, as they must where classes are few, are left out.
    """
    degree = _degree(k, wanted)
    if degree > max(_PRIMITIVE):
        raise CodeError(f"a bch code has at most {2 ** max(_PRIMITIVE) - 1} columns; got {wanted}")
    generators = _bch_generators(degree, int(np.ceil(np.log2(k))))
    dimension, length = generators.shape
    n_words = 2 ** min(dimension, 62)
    draws = int(np.clip(DRAW_WORK // (8 * k * k * length), 10, DRAWS))
    best, chosen = (-1.0, 0.0), None
    for _ in range(draws):
        messages = rng.choice(n_words, k, replace=False) if dimension <= 20 else rng.integers(0, n_words, k)
        bits = (messages[:, None] >> np.arange(min(dimension, 62))[None, :]) & 1
        code = (2 * (bits @ generators[: bits.shape[1]] % 2) - 1).astype(np.int8)
        rank = (closest_rows(code)[0], float(_distinct(code).shape[1]))
        if rank > best:
            best, chosen = rank, code
    assert chosen is not None
    return _distinct(chosen)


def _degree(k: int, wanted: int) -> int:
    """Of the field of a bch code with so many words and so many columns at least."""
    return max(3, int(np.ceil(np.log2(wanted + 1))), int(np.ceil(np.log2(np.log2(k) + 1))))


def _bch_generators(degree: int, at_least: int) -> Ints:
    """Generators, shape (dimension, 2^degree - 1), of the code with the largest designed distance that is so large."""
    length = 2**degree - 1
    powers, logs = _field(degree)
    polynomial, roots = np.ones(1, np.int64), set[int]()
    for exponent in range(1, length):
        if exponent in roots:
            continue
        coset = {exponent * 2**j % length for j in range(degree)}
        if length - len(roots) - len(coset) < at_least:
            break
        roots |= coset
        polynomial = np.convolve(polynomial, _minimal_polynomial(coset, powers, logs)) % 2
    dimension = length - len(roots)
    return np.stack([np.pad(polynomial, (shift, dimension - 1 - shift)) for shift in range(dimension)])


def _field(degree: int) -> tuple[list[int], dict[int, int]]:
    """Powers of the primitive element of the field of 2^degree elements, and their logarithms."""
    powers, value = [], 1
    for _ in range(2**degree - 1):
        powers.append(value)
        value <<= 1
        if value >> degree:
            value ^= _PRIMITIVE[degree]
    return powers, {value: exponent for exponent, value in enumerate(powers)}


def _minimal_polynomial(coset: set[int], powers: list[int], logs: dict[int, int]) -> Ints:
    """The product of (x - a^e) over the exponents e of a coset; its coefficients are 0 and 1."""
    coefficients = [1]
    for exponent in coset:
        times = [0 if c == 0 else powers[(logs[c] + exponent) % len(powers)] for c in coefficients]
        coefficients = [a ^ b for a, b in zip([*coefficients, 0], [0, *times], strict=True)]
    return np.array(coefficients, np.int64)
