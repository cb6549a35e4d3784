"""Archives (zip, tar) of several files that are one dataset: Annif's texts, Mulan's ARFF and XML, separate labels.

Features with their labels in another file are read by :mod:`app.formats.separate_labels`.

In a folder of Annif each `name.txt` is a text, with its subjects in `name.tsv` (a URI in angle brackets, a tab, a name)
or in `name.key` (a name a line); Annif reads the first if there are both. The path without `.txt` is the row's id. Of
Mulan the XML names the labels, which are attributes of 0 and 1 in the ARFF file; where there are several, that of the
XML's name is read.
"""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from xml.sax.handler import ContentHandler

from app.datasets.schemas import ImportOptions
from app.formats.archives import Archive, opened_archive
from app.formats.arff import file_header, parse_arff
from app.formats.indicator_columns import as_numbers, with_indicator_labels
from app.formats.plain_file import MostUnpacked
from app.formats.separate_labels import parse_separate_labels, roles_of
from app.formats.table import FormatError, Parsed, row_error, shorten
from app.formats.text_rows import TextRows
from app.formats.window import BOM, MAX_RECORD_BYTES
from app.formats.xml_document import read_xml

_SUBJECTS = (".tsv", ".key")
_READ_ME = (".md", ".rst")
_URI = re.compile(r"<([^<>\s]+)>")
_SHAPES = (
    "expected texts (.txt) with their subjects beside them (.tsv or .key), an ARFF file with Mulan's XML of labels, or "
    "a file of features and one of labels, in folders features and labels"
)


def parse_archive(path: Path, options: ImportOptions, most: MostUnpacked) -> Parsed:
    """Read an archive.

    Parameters
    ----------
    path : Path
        The archive.
    options : ImportOptions
        `unlabelled` and `without_label` of texts without subjects; those of ARFF files; of features and labels those of
        the features' format, and `label_separator` between the labels of a line.
    most : MostUnpacked
        What the archive may come to.

    Returns
    -------
    Parsed
        Kind "text" with sets of labels, or what the ARFF file holds.

    Raises
    ------
    FormatError
        The archive is damaged, leads out of itself, or holds something else; errors count texts from 1, by name.
    """
    with opened_archive(path, most) as archive:
        endings = {PurePosixPath(name).suffix.lower() for name in archive.sizes}
        if ".arff" in endings:
            return _mulan(archive, options)
        roles = None if options.unlabelled else roles_of(list(archive.sizes))
        if roles is not None:
            return parse_separate_labels(archive, roles, options, most)
        if ".txt" in endings:
            return _texts(archive, options)
        shown = ", ".join(f"'{shorten(name)}'" for name in list(archive.sizes)[:3]) or "no files"
        if len(archive.sizes) == 1:
            raise row_error(1, f"the archive holds one file, {shown}: unpack it, and compress it as gzip, zstd or xz")
        raise row_error(1, f"the archive holds {shown}: {_SHAPES}")


def _texts(archive: Archive, options: ImportOptions) -> Parsed:
    names = sorted(name for name in archive.sizes if name.lower().endswith(".txt"))
    _check_names(archive, names)
    beside = {name: _subjects_of(name, archive) for name in names}
    kinds = {found[-4:].lower() for found in beside.values() if found is not None}
    if len(kinds) > 1 and not options.unlabelled:
        raise row_error(1, "some texts have a .tsv file with URIs, and others a .key file with names; use one kind")
    rows = TextRows()
    may_lack = options.unlabelled or options.without_label != "refuse"
    for number, name in enumerate(names, 1):
        try:
            text = _read(archive, name)
            found = beside[name]
            labels = [] if found is None or options.unlabelled else _subjects(archive, found)
        except FormatError as error:
            rows.problems.add(number, error.errors[0].detail)
            continue
        if found is None and not may_lack:
            detail = (
                f"'{shorten(name)}' has no .tsv or .key beside it (pass without_label=leave_out to skip such texts)"
            )
            rows.problems.add(number, detail, None, "no_label")
            continue
        rows.add(text, labels, name[:-4], number)
    return rows.build()


def _check_names(archive: Archive, texts: Sequence[str]) -> None:
    stems = {name[:-4] for name in texts}
    for name in archive.sizes:
        ending = PurePosixPath(name).suffix.lower()
        if ending in _SUBJECTS and name[:-4] not in stems:
            raise row_error(1, f"'{shorten(name)}' has no matching text '{shorten(name[:-4])}.txt'")
        if ending not in (".txt", *_SUBJECTS, *_READ_ME):
            raise row_error(1, f"'{shorten(name)}' is neither a text nor its subjects: {_SHAPES}")


def _subjects_of(name: str, archive: Archive) -> str | None:
    return next((name[:-4] + ending for ending in _SUBJECTS if name[:-4] + ending in archive.sizes), None)


def _read(archive: Archive, name: str) -> str:
    if archive.sizes[name] > MAX_RECORD_BYTES:
        raise row_error(1, f"'{shorten(name)}' is longer than {MAX_RECORD_BYTES} bytes")
    try:
        return b"".join(archive.blocks(name)).removeprefix(BOM).decode()
    except UnicodeDecodeError:
        raise row_error(1, f"'{shorten(name)}' is not valid UTF-8: save it as UTF-8") from None


def _subjects(archive: Archive, name: str) -> list[str]:
    found: list[str] = []
    for line, record in enumerate(_read(archive, name).splitlines(), 1):
        if not record.strip():
            continue
        if name.lower().endswith(".key"):
            found.append(record.strip())
            continue
        uri = _URI.fullmatch(record.partition("\t")[0].strip())
        if uri is None:
            detail = f"line {line} of '{shorten(name)}' is '{shorten(record)}'"
            raise row_error(1, f"{detail}, expected a URI in angle brackets, a tab and a name")
        found.append(uri[1])
    return list(dict.fromkeys(found))


def _mulan(archive: Archive, options: ImportOptions) -> Parsed:
    tables, documents = (
        [name for name in archive.sizes if name.lower().endswith(ending)] for ending in (".arff", ".xml")
    )
    if len(documents) != 1:
        detail = f"the archive has {len(tables)} ARFF and {len(documents)} XML files, expected one XML of labels"
        raise row_error(1, f"{detail}: or upload only the ARFF file and name its labels with label_columns")
    stem = PurePosixPath(documents[0]).stem
    chosen = tables if len(tables) == 1 else [name for name in tables if PurePosixPath(name).stem == stem]
    if len(chosen) != 1:
        shown = ", ".join(f"'{shorten(name)}'" for name in tables[:3])
        raise row_error(
            1,
            f"the archive has several ARFF files ({shown}), none of the XML's name: put one into an archive with the "
            "XML, and append the others (datasets append)",
        )
    labels = _Labels()
    with tempfile.TemporaryFile() as document, tempfile.TemporaryFile() as table:
        paths = []
        for name, target in ((documents[0], document), (chosen[0], table)):
            for block in archive.blocks(name):
                target.write(block)
            target.flush()
            paths.append(Path(f"/proc/self/fd/{target.fileno()}"))
        read_xml(paths[0], labels)
        if not labels.names:
            raise row_error(1, f"'{shorten(documents[0])}' has no element 'label' with a name")
        attributes = {each.name for each in file_header(paths[1]).attributes}
        missing = next((name for name in labels.names if name not in attributes), None)
        if missing is not None:
            detail = f"the label '{shorten(missing)}' of '{shorten(documents[0])}' is no attribute of"
            raise row_error(1, f"{detail} '{shorten(chosen[0])}'", missing)
        if options.unlabelled:
            left_out = (*options.ignore_columns, *labels.names)
            return parse_arff(paths[1], options.model_copy(update={"ignore_columns": left_out}))
        given = options.model_copy(update={"label_columns": tuple(labels.names)})
        return with_indicator_labels(parse_arff(paths[1], as_numbers(given)), given)


class _Labels(ContentHandler):
    """The names of Mulan's labels, which may be in one another."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, None] = {}

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: N802
        if name.rpartition(":")[2] == "label" and attrs.get("name", "").strip():
            self.names[attrs["name"].strip()] = None
