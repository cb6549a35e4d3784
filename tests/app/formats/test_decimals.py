import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.formats.decimals import EXACT, LONG, NOT_A_NUMBER, NOT_FINITE, long_decimals, read_decimal


def read(text: str) -> tuple[int, float]:
    data = np.frombuffer(b"(" + text.encode() + b")", dtype=np.uint8)
    code, value = read_decimal(data, 1, len(data) - 1)
    if code == LONG:
        value = long_decimals(data, np.array([1]), np.array([len(data) - 1]))[0]
    return code, value


@settings(deadline=None, max_examples=300)
@given(st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True))
@example("9007199254740993")
@example("1e23")
@example("+123456789012345678901234567890e-7")
@example("4.9e-324")
@example("1e999")
def test_every_decimal_is_rounded_as_python_rounds_it(text: str) -> None:
    code, value = read(text)
    assert code in (EXACT, LONG)
    assert value == float(text)


@settings(deadline=None, max_examples=300)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_shortest_writing_of_a_float_reads_back_as_the_same_float(value: float) -> None:
    assert read(repr(value))[1] == value


@pytest.mark.parametrize(
    "text", ["", "+", ".", "e5", "1e", "1e+", "1.2.3", "1_000", "0x10", "1,5", "1 ", "--1", "infi"]
)
def test_what_is_no_decimal_is_not_read(text: str) -> None:
    assert read(text)[0] == NOT_A_NUMBER


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "inf", "+Inf", "-infinity", "INFINITY"])
def test_words_for_what_is_not_finite_are_distinguished_from_other_words(text: str) -> None:
    assert read(text)[0] == NOT_FINITE
