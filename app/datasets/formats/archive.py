"""Archives of several files that are one dataset."""

from app.datasets.formats.format import Format, Reference
from app.descriptions import Shape


def _begins(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") or head[257:262] == b"ustar"


ARCHIVE = Format(
    "archive",
    "Archive (zip, tar): Annif's texts, Mulan, separate labels",
    "app.formats.archive:parse_archive",
    frozenset(
        {
            "unlabelled",
            "without_label",
            "languages",
            "text_columns",
            "ignore_columns",
            "id_column",
            "missing",
            "label_separator",
        }
    ),
    Reference(
        "a zip or tar archive (also tar.gz): texts `name.txt` with `name.tsv` or `name.key`, as Annif uses them; or "
        "Mulan's ARFF file with its XML",
        "the URIs or names beside the text; the labels that the XML names; a set",
        weight="`{weight}` in ARFF",
    ),
    (
        Shape("Annif: a folder of texts, zip", "good.archive"),
        Shape("Annif: a folder of texts, tar", "texts.archive"),
        Shape("Mulan: ARFF and XML, zip", "mulan.archive"),
    ),
    extensions=("zip", "tar", "tgz"),
    begins=_begins,
    general=True,
)
