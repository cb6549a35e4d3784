"""Plain blocks of svmlight files are read as the compiled loops read them, to the bit, and nothing else is plain."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.formats import svmlight
from app.formats.decimals import EXACT, read_decimals
from app.formats.labels import distinct
from app.formats.svmlight import parse_svmlight
from app.formats.svmlight_blocks import plain_block
from app.formats.svmlight_lines import read_lines
from app.formats.table import Problems
from app.formats.window import as_array
from app.schemas.datasets import ImportOptions

KEPT = sorted((Path(__file__).parents[2] / "corpus" / "datasets").glob("*.svmlight"))

DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.from_regex(r"-?([0-9]{1,20}\.[0-9]{0,20}|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
)
ODD = st.sampled_from(
    [
        *("0", "00", "-0", "+1", "0x10", "0X1p3", "1e", "1_0", "1,5", "nan", "-inf", "infinity", "1e999", "1e-999"),
        *("2147483647", "2147483648", "9" * 30, "", "#", "qid", "cost", "\x00", "\x7f", "\x1f", "é", "'"),
    ]
)
LABELS = st.one_of(st.sampled_from(["1", "-1", "+1.0", "a", "é", "a,b", "3,5", ",", "a,", "x" * 1001]), ODD)
BLANKS = st.sampled_from([" ", " ", " ", " ", "\t", "  ", "\v", "\f", "\r", ""])
INDICES = st.one_of(st.integers(1, 40).map(str), ODD)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", " \n", " \t \n", "\n\n", "", " # said\n"])


@st.composite
def blocks(draw: st.DrawFn, odd: bool = True) -> bytes:
    """Lines that are plain but for a few things."""
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        indices = draw(st.lists(st.integers(1, 60), max_size=6, unique=True).map(sorted))
        tokens = [draw(LABELS if odd else st.sampled_from("ab")), *(f"{j}:{draw(DECIMALS)}" for j in indices)]
        if odd and draw(st.integers(0, 9)) == 0:
            token = (
                f"{draw(INDICES)}{draw(st.sampled_from([':', ':', '::', ' :', ': ']))}{draw(st.one_of(DECIMALS, ODD))}"
            )
            tokens.insert(draw(st.integers(0, len(tokens))), token)
        between = draw(BLANKS) if odd else " "
        lines.append(between.join(tokens) + (draw(ENDS) if odd else "\n"))
    return "".join(lines).encode()


def agree(content: bytes, sets: bool) -> bool:
    """Whether the content is plain; where it is, both readers have found the same, and no error."""
    block, problems = plain_block(content, sets), Problems()
    if block is None:
        return False
    data = as_array(content)
    columns, n_lines = read_lines(data, 1, sets, problems)
    assert not problems
    assert n_lines == content.count(b"\n")
    codes, names = distinct(data, columns.labels[:, 0], columns.labels[:, 1])
    assert (block.codes.tolist(), block.names) == (codes.tolist(), names)
    assert columns.lines.tolist() == list(range(1, len(codes) + 1))
    assert not columns.costs.any()
    np.testing.assert_array_equal(block.n_features, columns.n_features)
    np.testing.assert_array_equal(block.indices, columns.indices)
    assert block.indices.dtype == columns.indices.dtype
    # the sign of zeros is not kept, as they are not
    assert (block.values + 0.0).tobytes() == (columns.values + 0.0).tobytes()
    return True


@settings(deadline=None, max_examples=600)
@given(blocks(), st.booleans())
@example(b"a 0x10:1\n", False)
@example(b"a 1: 2\n", False)
@example(b"a 1 :2\n", False)
@example(b" a 1:2\n", False)
@example(b"3,5 1:2\n", True)
@example(b"a, 1:2\n", True)
@example(b"a 1:2\n\nb 1:2\n", False)
@example(b"a\n\x0b\nb\n", False)
@example(b"a 1:1e-400 2:-0 3:4.9e-324\n", False)
def test_what_is_plain_is_read_as_the_compiled_loops_read_it(content: bytes, sets: bool) -> None:
    agree(content, sets)


@settings(deadline=None, max_examples=300)
@given(st.text("01.:e+-xna# \n\t\r", min_size=1, max_size=60).map(str.encode), st.booleans())
def test_any_characters_are_plain_or_left(content: bytes, sets: bool) -> None:
    agree(content, sets)


@settings(deadline=None)
@given(blocks(odd=False))
def test_lines_of_a_label_and_pairs_are_plain(content: bytes) -> None:
    assert agree(content, sets=False)


@pytest.mark.parametrize(
    ("content", "sets"),
    [
        (b"a", False),
        (b"+1 1:0.5 7:-2e-3\n-1 2147483647:1.\n", False),
        (b"a 1:1 \nb 2:.5\t\r\nc \t\n", False),
        (b"  a  1:1\t\t2:1\r\nb 1:12345678901234567890123\n", False),
        (b"b,a 1:0.5 7:2\na 1:1", True),
        ("é\u2028 3:1\n".encode(), False),
    ],
)
def test_blanks_and_line_ends_are_plain(content: bytes, sets: bool) -> None:
    assert agree(content, sets)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "3:1",
            "a 1:1 # said",
            "a qid:1 2:1",
            "a cost:2 1:1",
            "\na 1:1",
            "a 0:1",
            "a 2:1 1:1",
            "a 1:1 1:1",
            "a 1:nan",
        ),
        *(
            "a 1:1e999",
            "a 2147483648:1",
            "3,5 1:1",
            "a\x00 1:1",
            "a 1:",
            "a :1",
            "a 1:: 2:1",
            "a 1",
            "a -1:1",
            "b:a 1:1",
        ),
    ],
)
def test_all_else_is_left_to_the_compiled_loops(line: str) -> None:
    assert plain_block(f"{line}\n".encode(), sets=False) is None


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
@pytest.mark.parametrize("sets", [False, True])
def test_kept_inputs_are_plain_or_left(path: Path, sets: bool) -> None:
    agree(path.read_bytes(), sets)


def test_arrow_takes_no_other_decimal_than_the_compiled_loops_and_reads_the_same() -> None:
    tokens = ["".join(token) for n in range(1, 5) for token in product("+-.0e1xnI", repeat=n)]
    tokens += ["Infinity", "nan(1)", "1f", "1d0", "1p3", "0b1", "1'0", "1,0", "1e1.5", "\N{ARABIC-INDIC DIGIT ONE}"]
    lengths = np.array([len(token.encode()) for token in tokens])
    ends = np.cumsum(lengths)
    values, codes = read_decimals(as_array("".join(tokens).encode()), ends - lengths, ends)
    taken = 0
    for token, value, code in zip(tokens, values, codes, strict=True):
        block = plain_block(f"a 1:{token}\n".encode(), sets=False)
        if block is not None:
            taken += 1
            assert code == EXACT, token
            assert block.values.tolist() == [value], token
    assert taken > 100


def test_a_plain_file_needs_nothing_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a loop is used")

    path = tmp_path / "rows.svm"
    path.write_bytes(b"".join(b"%d 1:%d 9:0.25 \r\n" % (k % 3, k + 1) for k in range(100)))
    monkeypatch.setattr(svmlight, "BLOCK_BYTES", 64)
    monkeypatch.setattr(svmlight, "read_lines", refuse)
    assert parse_svmlight(path, ImportOptions()).n_rows == 100


def test_lines_after_a_plain_block_are_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.svm"
    lines = [b"a 1:%d\n" % (k + 1) for k in range(30)]
    path.write_bytes(b"".join([*lines, b"# said\n", b"b cost:2 2:1\n", *lines]))
    whole = parse_svmlight(path, ImportOptions())
    monkeypatch.setattr(svmlight, "BLOCK_BYTES", 32)
    parsed = parse_svmlight(path, ImportOptions())
    assert parsed.n_rows == 61
    for found in (whole, parsed):
        assert found.weights is not None
        assert found.weights.tolist() == [1.0] * 30 + [2.0] + [1.0] * 30
    assert parsed.X is not None
    assert whole.X is not None
    assert (parsed.X != whole.X).nnz == 0
