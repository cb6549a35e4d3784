from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reading import reading
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from app.datasets.schemas import ImportOptions
from app.formats import svmlight
from app.formats.svmlight import parse_svmlight
from app.formats.table import FormatError, RowError

parse, outcome, errors = reading(parse_svmlight)


finite = st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: value != 0.0)
rows = st.dictionaries(st.integers(1, 60), finite, max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abé"), rows), min_size=1, max_size=20), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_is_read(path: Path, table: list[tuple[str, dict[int, float]]], newline: str) -> None:
    lines = [" ".join([label, *(f"{j}:{row[j]!r}" for j in sorted(row))]) for label, row in table]
    parsed = parse(path, newline.join(lines))
    assert [parsed.labels[c] for c in parsed.y] == [label for label, _ in table]
    assert parsed.X is not None
    dense = np.zeros(parsed.X.shape)
    for i, (_, row) in enumerate(table):
        for j, value in row.items():
            dense[i, j - 1] = value
    np.testing.assert_array_equal(parsed.X.toarray(), dense)
    assert parsed.X.nnz == sum(len(row) for _, row in table)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**31), st.booleans(), st.booleans())
def test_a_file_of_scikit_learn_reads_as_scikit_learn_reads_it(path: Path, seed: int, qid: bool, comment: bool) -> None:
    rng = np.random.default_rng(seed)
    X = csr_matrix(rng.standard_normal((12, 9)) * (rng.random((12, 9)) < 0.4))
    y = rng.integers(-3, 4, 12)
    query = np.arange(12) // 3 if qid else None
    dump_svmlight_file(X, y, str(path), zero_based=False, comment="made by a test" if comment else None, query_id=query)
    expected_X, expected_y = load_svmlight_file(str(path), zero_based=False)
    parsed = parse_svmlight(path, ImportOptions())
    assert parsed.X is not None
    np.testing.assert_array_equal(parsed.X.toarray(), expected_X.toarray())
    np.testing.assert_array_equal([int(parsed.labels[c]) for c in parsed.y], expected_y)


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.binary(max_size=200), st.text("0123456789:. \n#+-eqid,nax\r\t", max_size=200).map(str.encode)))
@example(b"")
@example(b"1 1:1e999 2:3")
@example(b"\xff 1:1\n")
def test_any_bytes_are_read_or_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    found = outcome(path)
    if isinstance(found, FormatError):
        assert 1 <= len(found.errors) <= 20
        assert len(found.errors) <= found.n_errors
        assert all(1 <= one.row <= content.count(b"\n") + 1 for one in found.errors)
    else:
        assert found.X is not None
        assert found.X.shape[0] == found.n_rows > 0
        found.X.check_format()


def test_a_row_without_features_is_a_row_of_zeros(path: Path) -> None:
    parsed = parse(path, "a\nb 2:1\n\n# nothing\na # 3:4\n")
    assert parsed.X is not None
    np.testing.assert_array_equal(parsed.X.toarray(), [[0, 0], [0, 1], [0, 0]])
    assert parsed.labels == ["a", "b"]


def test_zeros_are_not_stored_but_count_as_columns(path: Path) -> None:
    parsed = parse(path, "a 1:1 4:0 5:0.0e9")
    assert parsed.X is not None
    assert parsed.X.shape == (1, 5)
    assert parsed.X.nnz == 1


def test_labels_are_integers_where_all_of_them_are_integral(path: Path) -> None:
    parsed = parse(path, "3 1:1\n+3.0 1:1\n-0 1:1\n007. 1:1\n-2.00 1:1\n")
    assert [parsed.labels[c] for c in parsed.y] == ["3", "3", "0", "7", "-2"]
    assert parsed.labels == sorted(parsed.labels)


def test_labels_stay_as_written_where_one_of_them_is_no_integer(path: Path) -> None:
    assert parse(path, "3 1:1\n3.0 1:1\n2.5 1:1\n").labels == ["2.5", "3", "3.0"]


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (
            "a 0:1",
            "the index of '0:1' is 0, but indices begin at 1; pass zero_based=true if indices begin at 0",
        ),
        ("a 2147483648:1", "the index of '2147483648:1' is not between 1 and 2147483647"),
        ("a 99999999999999999999:1", "the index of '99999999999999999999:1' is not between 1 and 2147483647"),
        ("a 3:1 3:2", "the index of '3:2' is not greater than the one before it: sort each row's features by index"),
        ("a 3:1 2:2", "the index of '2:2' is not greater than the one before it: sort each row's features by index"),
        ("a 3:nan", "'3:nan' is not a finite number"),
        ("a 3:-inf", "'3:-inf' is not a finite number"),
        ("a 3:1e309", "'1e309' is too large for a 64-bit number"),
        ("a 3:", "'3:' has no number after the colon"),
        ("a 3:x", "'3:x' has no number after the colon"),
        ("a b", "'b' is not index:value"),
        ("a 3", "'3' is not index:value"),
        ("a -1:2", "'-1:2' is not index:value"),
        ("3:1 4:2", "the line begins with the feature '3:1', expected a label"),
        ("3,5 4:2", "'3,5' is a list of labels, expected one label (pass label_separator=, to read sets)"),
        ("a 1:" + "9" * 50 + "x", "'1:" + "9" * 35 + "...' has no number after the colon"),
    ],
)
def test_an_error_names_its_line(path: Path, line: str, detail: str) -> None:
    assert errors(path, f"a 1:2\n\n{line}\nb 2:1\n") == [RowError(3, None, detail)]


def test_a_label_that_is_not_utf8_is_named_by_its_line(path: Path) -> None:
    assert errors(path, b"a 1:2\n\xff\xfe 1:2\n") == [RowError(2, "label", "the label is not valid UTF-8")]


def test_the_first_twenty_errors_are_listed_and_all_are_counted(path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        parse(path, "a 1:1\n" + "a 0:1\n" * 30 + "a 1:1e999\n")
    assert [error.row for error in caught.value.errors] == list(range(2, 22))
    assert caught.value.n_errors == 31


@pytest.mark.parametrize(
    ("content", "detail"), [("", "the file is empty"), ("\n# only this\n", "only blank lines or comments")]
)
def test_a_file_without_rows_is_refused(path: Path, content: str, detail: str) -> None:
    assert detail in errors(path, content)[0].detail


def test_blocks_do_not_show_in_what_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "".join(f"c{i % 7} {i % 5 + 1}:{i / 7!r} 9:{i}\n" for i in range(500))
    whole = parse(path, content)
    monkeypatch.setattr(svmlight, "BLOCK_BYTES", 64)
    pieces = parse(path, content)
    assert whole.X is not None
    assert pieces.X is not None
    np.testing.assert_array_equal(whole.X.toarray(), pieces.X.toarray())
    np.testing.assert_array_equal(whole.y, pieces.y)
    assert errors(path, content + "a 0:1\n")[0].row == 501


def test_a_cost_is_the_weight_of_its_row_wherever_it_stands(path: Path) -> None:
    parsed = parse(path, "a cost:2.5 1:1 2:2\nb 1:3 cost:1e-3\na 1:1\nb 2:1 qid:3 cost:12345678901234567890\n")
    assert parsed.weights is not None
    assert parsed.weights.tolist() == [2.5, 1e-3, 1.0, 12345678901234567890.0]
    assert parsed.X is not None
    np.testing.assert_array_equal(parsed.X.toarray(), [[1, 2], [3, 0], [1, 0], [0, 1]])
    assert parse(path, "a 1:1\nb 1:1\n").weights is None


def test_a_weight_in_a_later_block_gives_the_earlier_rows_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svmlight, "BLOCK_BYTES", 16)
    content = "".join(f"{'ab'[i % 2]} 1:{i + 1}\n" for i in range(40)) + "a 1:1 cost:3\n"
    weights = parse(path, content).weights
    assert weights is not None
    assert weights.tolist() == [1.0] * 40 + [3.0]


@pytest.mark.parametrize(
    ("token", "detail"),
    [
        ("cost:0", "the weight is not positive"),
        ("cost:-1", "the weight is not positive"),
        ("cost:", "the weight is empty, expected a number"),
        ("cost:much", "the weight 'much' is not a number"),
        ("cost:nan", "the weight 'nan' is not a finite number"),
        ("cost:1e999", "the weight is too large for a 64-bit number"),
    ],
)
def test_a_wrong_cost_is_reported_with_its_line(path: Path, token: str, detail: str) -> None:
    assert errors(path, f"a 1:1 cost:2\nb {token} 1:1\n") == [RowError(2, "cost", detail)]


def test_a_second_cost_is_refused(path: Path) -> None:
    assert errors(path, "a cost:1 1:1 cost:2\nb 1:1\n") == [RowError(1, None, "'cost:2' is a second cost in the row")]


def test_indices_that_begin_at_zero_are_read_where_the_options_say_so(tmp_path: Path) -> None:
    path = tmp_path / "zero"
    path.write_text("a 0:1 2:3 # c\nb 1:0.5\n")
    parsed = parse_svmlight(path, ImportOptions(zero_based=True))
    assert parsed.X is not None
    assert parsed.X.toarray().tolist() == [[1.0, 0.0, 3.0], [0.0, 0.5, 0.0]]
