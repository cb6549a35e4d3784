"""A value has one canonical form, whatever wrote it, by the type of its column."""

import csv
import datetime
import io
import json
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.values import ColumnType, canonical, column_type, whole_number, written

numbers = st.integers(-(10**25), 10**25) | st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("type", "value", "form"),
    [
        ("boolean", "True", "true"),
        ("boolean", "FALSE", "false"),
        ("boolean", "1", "true"),
        ("boolean", "0.0", "false"),
        ("boolean", "yes", "yes"),
        ("number", "7.0", "7"),
        ("number", "+7", "7"),
        ("number", "-0.0", "0"),
        ("number", ".50", "0.5"),
        ("number", "1e+20", "100000000000000000000"),
        ("number", "12345678901234567890", "12345678901234567890"),
        ("number", "1E30", "1E30"),
        ("number", "007", "007"),
        ("number", "true", "1"),
        ("number", "1e+999", "1e+999"),
        ("date", "2024-01-31 00:00:00", "2024-01-31"),
        ("date", "2024-01-31T00:00:00.000", "2024-01-31"),
        ("date", "2024-01-31 10:00:00.500000+02:00", "2024-01-31T08:00:00.5Z"),
        ("date", "2024-02-31", "2024-02-31"),
        ("text", " cafe\u0301 ", "caf\u00e9"),
        ("text", "7.0", "7.0"),
        ("text", "True", "true"),
    ],
)
def test_a_value_has_this_form(type: ColumnType, value: str, form: str) -> None:
    assert canonical(value, type) == form


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (["True", "False", ""], "boolean"),
        (["7.0", "", "11"], "number"),
        (["0.5", "1e-07"], "number"),
        (["007", "42"], "text"),
        (["1E30", "1E31"], "text"),
        (["2024-01-31", "2024-01-31T10:00"], "date"),
        (["31.01.2024"], "text"),
        (["", ""], "text"),
        (["true", "1"], "text"),
    ],
)
def test_the_type_of_a_column_is_that_of_all_its_values(values: list[str], type: str) -> None:
    assert column_type(values) == type


@given(numbers)
def test_a_number_has_one_form_in_csv_json_and_as_a_decimal(number: float) -> None:
    stream = io.StringIO()
    csv.writer(stream).writerow([number])
    forms = {canonical(written(each), "number") for each in (number, json.loads(json.dumps(number)))}
    forms.add(canonical(stream.getvalue().strip(), "number"))
    if isinstance(number, float):
        forms.add(canonical(written(Decimal(repr(number))) if abs(number) < 1e15 else written(number), "number"))
        forms.add(canonical(repr(number), "number"))
    assert len(forms) == 1
    assert float(forms.pop()) == float(number)


@given(st.integers(-(2**53), 2**53))
def test_a_whole_number_is_one_as_integer_and_as_float(number: int) -> None:
    assert canonical(written(number), "number") == canonical(written(float(number)), "number") == str(number)


@given(
    st.text(max_size=8) | numbers.map(str) | st.dates().map(str), st.sampled_from(["boolean", "number", "date", "text"])
)
def test_a_canonical_form_is_its_own(value: str, type: ColumnType) -> None:
    form = canonical(value, type)
    assert canonical(form, type) == form
    assert unicodedata.is_normalized("NFC", form)


@given(st.datetimes(timezones=st.just(datetime.UTC) | st.none()))
def test_a_moment_has_one_form_however_it_is_written(moment: datetime.datetime) -> None:
    written_so = {moment.isoformat(), moment.isoformat(" "), moment.isoformat().replace("+00:00", "Z")}
    forms = {canonical(each, "date") for each in written_so}
    assert len(forms) == 1
    assert datetime.datetime.fromisoformat(forms.pop()) == moment


def test_a_value_that_no_category_can_have_is_refused() -> None:
    with pytest.raises(TypeError, match="list cannot be the value"):
        written([1])


@pytest.mark.parametrize(
    ("text", "whole"), [("007", "7"), ("7.0", "7"), ("0", "0"), ("000", "0"), ("7.5", None), ("x", None)]
)
def test_a_whole_number_loses_its_zeros(text: str, whole: str | None) -> None:
    assert whole_number(text) == whole
