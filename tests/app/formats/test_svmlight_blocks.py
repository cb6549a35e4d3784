"""Plain blocks of svmlight files are read as the compiled loops read them, to the bit, and nothing else is plain."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.datasets.schemas import ImportOptions
from app.formats import decimals, svmlight
from app.formats.decimals import EXACT, read_decimals
from app.formats.labels import distinct
from app.formats.svmlight import parse_svmlight
from app.formats.svmlight_blocks import plain_block
from app.formats.svmlight_lines import read_lines
from app.formats.table import FormatError, Problems
from app.formats.weights import Weights
from app.formats.window import as_array

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
ENDS = st.sampled_from(
    ["\n", "\n", "\n", "\r\n", " \n", " \t \n", "\n\n", "", " # said\n", "#qid:1 3:4\n", "\n#\x00\n \n", "\n \r\n\n"]
)
BESIDE = st.one_of(
    st.builds("qid:{}".format, st.sampled_from(["1", "7", "x", "é", ",", ""])),
    st.builds("cost:{}".format, st.one_of(st.integers(1, 99).map(str), DECIMALS, ODD)),
    st.sampled_from(["qid:1:2", "cost:1:2", "Qid:1", "qid", "qid :1", "xqid:1", "costs:1"]),
)


@st.composite
def blocks(draw: st.DrawFn, odd: bool = True) -> bytes:
    """Lines that are plain but for a few things."""
    lines = []
    beside = draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 8))):
        indices = draw(st.lists(st.integers(1, 60), max_size=6, unique=True).map(sorted))
        tokens = [draw(LABELS if odd else st.sampled_from("ab")), *(f"{j}:{draw(DECIMALS)}" for j in indices)]
        if odd and draw(st.integers(0, 9)) == 0:
            token = (
                f"{draw(INDICES)}{draw(st.sampled_from([':', ':', '::', ' :', ': ']))}{draw(st.one_of(DECIMALS, ODD))}"
            )
            tokens.insert(draw(st.integers(0, len(tokens))), token)
        usual = draw(st.lists(st.sampled_from(["qid:3", "cost:0.25"]), unique=True)) if beside == 0 else []
        more = draw(st.lists(BESIDE, max_size=1)) if odd else []
        for token in [*usual, *more]:
            tokens.insert(draw(st.integers(1, len(tokens))), token)
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
    assert (block.lines + 1).tolist() == columns.lines.tolist()
    starts, ends = columns.costs.T
    assert (block.costs is None) == (not ends.any())
    if block.costs is not None:
        weights = Weights("cost")
        weights.add_decimals(data, starts, ends, columns.lines, problems, ends == 0)
        assert not problems
        assert block.costs.tobytes() == weights.build().tobytes()
    np.testing.assert_array_equal(block.n_features, columns.n_features)
    np.testing.assert_array_equal(block.indices, columns.indices)
    assert block.indices.dtype == columns.indices.dtype
    # the sign of zeros is not kept, as they are not
    assert (block.values + 0.0).tobytes() == (columns.values + 0.0).tobytes()
    return True


@settings(deadline=None, max_examples=200)
@given(blocks(), st.booleans())
@example(b"a 0x10:1\n", False)
@example(b"a 1: 2\n", False)
@example(b"a 1 :2\n", False)
@example(b" a 1:2\n", False)
@example(b"3,5 1:2\n", True)
@example(b"a, 1:2\n", True)
@example(b"a 1:2\n\nb 1:2\n", False)
@example(b"a\n\x0b\nb\n", False)
@example(b"a, qid:1 1:2\n", True)
@example(b"a , qid:1 1:2\n", True)
@example(b"a,b, cost:2 qid:1\n", True)
@example(b"qid:1 qid:2 1:2\n", False)
@example(b" # qid:1 cost:2\n", False)
@example(b"a 100:1 qid:1 5:1\n", False)
@example(b"a cost:1 1:2 cost:1\n", False)
@example(b"a cost:+1 1:2\nb cost:1e-400\n", False)
@example(b"a 1:1e-400 2:-0 3:4.9e-324\n", False)
def test_what_is_plain_is_read_as_the_compiled_loops_read_it(content: bytes, sets: bool) -> None:
    agree(content, sets)


@settings(deadline=None, max_examples=300)
@given(st.text("01.:e+-xna# \n\t\r", min_size=1, max_size=60).map(str.encode), st.booleans())
@example(b"#", True)
@example(b"\n", False)
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
        (b"\n \n\t\n", False),
        (b"# by \xff\x00 qid:1 cost:\n\n  #\na 1:1# 0:0\nb#3:1\n \t# c\r\n\r\na 2:.5 #", False),
        (b"a qid:1 2:1\nb 3:1 qid:x\na 3:1\tqid:2 4:1 qid:5\r\nqid 1:1\n", False),
        (b"a cost:2 1:1\nb 1:1 cost:1e-3 qid:1\na 1:1\nb cost:3\n", False),
        (b"a,b qid:1 2:1\n", True),
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
            "a qid: 2:1",
            "a qid:1:2 2:1",
            "qid:1 1:1",
            "a cost: 1:1",
            "a cost:0 1:1",
            "a cost:-1 1:1",
            "a cost:nan 1:1",
            "a cost:1e999 1:1",
            "a cost:1 cost:2",
            "a 2:1 qid:1 1:1",
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
    rows = (b"%d 1:%d qid:%d 9:0.25 # row %d\r\n" % (k % 3, k + 1, k, k) for k in range(100))
    path.write_bytes(b"# made by a test\n#\n\n" + b"".join(rows) + b"1 cost:2 1:1\n")
    monkeypatch.setattr(svmlight, "BLOCK_BYTES", 64)
    monkeypatch.setattr(svmlight, "read_lines", refuse)
    monkeypatch.setattr(decimals, "_read_decimals", refuse)
    parsed = parse_svmlight(path, ImportOptions())
    assert parsed.n_rows == 101
    assert parsed.weights is not None
    assert parsed.weights.tolist() == [1.0] * 100 + [2.0]


def test_lines_after_a_plain_block_are_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.svm"
    lines = [b"a 1:%d\n" % (k + 1) for k in range(30)]
    path.write_bytes(b"".join([*lines, b"# said\n\n", b"b cost:+2 2:1\n", *lines]))
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


@pytest.mark.parametrize("block_bytes", [16, 64, 1 << 19])
def test_errors_name_the_lines_whatever_is_skipped_before_them(
    block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.svm"
    monkeypatch.setattr(svmlight, "BLOCK_BYTES", block_bytes)
    path.write_bytes(b"# 1\n\na qid:1 1:1 # 3\n \n\n# 6\n\xff 1:1\nb 0:1\n")
    with pytest.raises(FormatError) as caught:
        parse_svmlight(path, ImportOptions())
    assert [error.row for error in caught.value.errors] == [7, 8]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"# only this", "empty"), (b"\n# this\n", "only blank lines"), (b"#\n" * 40, "only blank lines")],
)
def test_a_file_without_rows_is_refused_as_the_loops_do(
    content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.svm"
    path.write_bytes(content)
    monkeypatch.setattr(svmlight, "BLOCK_BYTES", 16)
    found = []
    for plain in (True, False):
        if not plain:
            monkeypatch.setattr(svmlight, "plain_block", lambda *_: None)
        with pytest.raises(FormatError) as caught:
            parse_svmlight(path, ImportOptions())
        found.append(caught.value.errors)
    assert found[0] == found[1]
    assert said in found[0][0].detail
