"""Archives: Annif's folders of texts, Mulan's pairs, and archives that lead out of themselves or hold other things."""

import gzip
import io
import itertools
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.parsing import parse
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError, Parsed

TEXTS = {
    "docs/2.txt": "\ufeffBread",
    "docs/2.tsv": "<http://x/b>\tbread\n<http://x/f>\tfood\n\n",
    "docs/10.txt": "Fish\nand chips",
    "docs/10.tsv": "<http://x/f>\tfood\n",
    "README.md": "texts",
    "docs/.hidden": "x",
}
ARFF = "@relation m\n@attribute x numeric\n@attribute 'amazed' {0,1}\n@attribute sad {0,1}\n@data\n1.5,1,0\n2,1,1\n"
XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="amazed"><label name="sad"/></label></labels>'
MULAN = {"m.arff": ARFF, "m.xml": XML, "m-train.arff": ARFF}


def zipped(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(files: dict[str, str], form: int = tarfile.PAX_FORMAT, *others: tarfile.TarInfo) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
        for each in others:
            archive.addfile(each)
    return stream.getvalue()


def entry(name: str, kind: bytes) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, "/etc/passwd"
    return made


def read(folder: Path, content: bytes, **options: Any) -> Parsed:
    path = folder / "data"
    path.write_bytes(content)
    assert declared_format(path, ImportOptions()) == "archive"
    return parse(path, "archive", ImportOptions(**options))


def sets(parsed: Parsed) -> list[list[str]]:
    assert parsed.label_indptr is not None
    return [[parsed.labels[at] for at in parsed.y[i:j]] for i, j in itertools.pairwise(parsed.label_indptr.tolist())]


LONG = "folder/" * 30
CONTENTS = {
    "zip": zipped(TEXTS),
    "tar": tarred(TEXTS, tarfile.USTAR_FORMAT, entry("docs", tarfile.DIRTYPE)),
    "tar.gz": gzip.compress(tarred(TEXTS, tarfile.GNU_FORMAT)),
}


@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_texts_have_the_subjects_beside_them(tmp_path: Path, kind: str) -> None:
    parsed = read(tmp_path, CONTENTS[kind])
    assert parsed.texts is not None
    assert parsed.ids is not None
    assert list(parsed.texts) == ["Fish\nand chips", "Bread"]
    assert list(parsed.ids) == ["docs/10", "docs/2"]
    assert sets(parsed) == [["http://x/f"], ["http://x/b", "http://x/f"]]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_and_keys(tmp_path: Path, form: int) -> None:
    parsed = read(tmp_path, tarred({f"{LONG}é.txt": "a", f"{LONG}é.key": "bread\nfood\n"}, form))
    assert parsed.ids is not None
    assert list(parsed.ids) == [f"{LONG}é"]
    assert sets(parsed) == [["bread", "food"]]


def test_texts_without_subjects_are_for_predictions(tmp_path: Path) -> None:
    content = zipped({**TEXTS, "docs/3.txt": "alone"})
    assert read(tmp_path, content, unlabelled=True).n_rows == 3
    assert read(tmp_path, content, without_label="leave_out").n_left_out == 1
    with pytest.raises(FormatError, match=r"'docs/3.txt' has no .tsv or .key beside it"):
        read(tmp_path, content)


def test_an_arff_file_has_the_labels_of_the_xml(tmp_path: Path) -> None:
    parsed = read(tmp_path, zipped(MULAN))
    assert parsed.X is not None
    assert parsed.X.toarray().tolist() == [[1.5], [2.0]]
    assert sets(parsed) == [["amazed"], ["amazed", "sad"]]
    assert read(tmp_path, zipped(MULAN), unlabelled=True).labels == []


def linked_zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        link = zipfile.ZipInfo("1.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (zipped({"../1.txt": "x", "1.key": "a"}), "the path '../1.txt' leads out of the archive"),
        (tarred({"/etc/1.txt": "x"}), "the path '/etc/1.txt' leads out"),
        (zipped({"a\\..\\1.txt": "x"}), "leads out of the archive"),
        (linked_zip(), "'1.txt' in the archive is a link"),
        (tarred({}, tarfile.PAX_FORMAT, entry("1.txt", tarfile.SYMTYPE)), "'1.txt' in the archive is a link"),
        (tarred({}, tarfile.PAX_FORMAT, entry("1.txt", tarfile.LNKTYPE)), "'1.txt' in the archive is a link"),
        (tarred({}, tarfile.PAX_FORMAT, entry("1.txt", tarfile.CHRTYPE)), "neither a file nor a folder"),
        (tarred(TEXTS)[:2000], "the tar archive is damaged or ends too early"),
        (zipped({"rows.csv": "label,text\n"}), "the archive holds one file, 'rows.csv': unpack it"),
        (zipped({"a.csv": "", "b.csv": ""}), "expected texts (.txt) with their subjects beside them"),
        (zipped({**TEXTS, "docs/3.pdf": "%PDF"}), "'docs/3.pdf' is neither a text nor its subjects"),
        (zipped({**TEXTS, "docs/4.tsv": "<u:1>\tx"}), "'docs/4.tsv' has no matching text 'docs/4.txt'"),
        (zipped({**TEXTS, "docs/4.txt": "x", "docs/4.key": "x"}), "some texts have a .tsv file"),
        (zipped({"1.txt": "x", "1.tsv": "bread\n"}), "line 1 of '1.tsv' is 'bread', expected a URI"),
        (zipped({"m.arff": ARFF}), "the archive has 1 ARFF and 0 XML files"),
        (zipped({"m-train.arff": ARFF, "m-test.arff": ARFF, "m.xml": XML}), "several ARFF files"),
        (zipped({**MULAN, "m.xml": "<labels/>"}), "'m.xml' has no element 'label' with a name"),
        (
            zipped({**MULAN, "m.xml": XML.replace("sad", "glad")}),
            "the label 'glad' of 'm.xml' is no attribute of 'm.arff'",
        ),
    ],
)
def test_what_is_neither_is_refused(tmp_path: Path, content: bytes, detail: str) -> None:
    with pytest.raises(FormatError) as refused:
        read(tmp_path, content)
    assert detail in refused.value.errors[0].detail


def test_an_archive_cannot_come_to_more_than_it_may(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(zipped({"1.txt": "x" * 5000, "1.key": "a"}))
    with pytest.raises(FormatError, match="decompresses to more than 1,000 bytes"):
        parse(path, "archive", most_unpacked=MostUnpacked(n_bytes=1000))
    content = zipped(TEXTS)
    path.write_bytes(content[:42] + b"\xff\xff" + content[44:])
    with pytest.raises(FormatError):
        parse(path, "archive")
