"""svmlight and LIBSVM: a label and `index:value` pairs on each line."""

import re
from collections.abc import Sequence

from app.datasets.formats.format import Format, Reference
from app.descriptions import Shape

_ROW = re.compile(r"\S+(?:\s+(?:qid|cost|\d+):\S+)+\s*(?:#.*)?")


def _is_svmlight(lines: Sequence[str], labels: frozenset[str]) -> bool:
    row = next((line for line in lines if not line.lstrip().startswith("#")), "")
    return _ROW.fullmatch(row.strip()) is not None


SVMLIGHT = Format(
    "svmlight",
    "svmlight, LIBSVM",
    "app.formats.svmlight:parse_svmlight",
    frozenset({"unlabelled", "zero_based", "label_separator", "encoding"}),
    Reference(
        "`label index:value ...`, indices from 1 (from 0 with `zero_based`), increasing; `#` begins a comment, `qid:` "
        "is ignored",
        "the first token",
        weight="`cost:number`, anywhere after the label",
    ),
    (
        Shape("LIBSVM, svmlight", "good.svmlight"),
        Shape("svmlight with `qid:`, as for ranking", "ranking.svmlight"),
        Shape("LSHTC: sets of labels", "lshtc.svmlight", {"label_separator": ","}),
    ),
    extensions=("svm", "svmlight", "libsvm"),
    recognises=_is_svmlight,
    fixed={"label_separator": (",", "labels are separated by commas")},
)
