"""NumPy's NPZ: arrays of features or texts, and of labels."""

from app.datasets.formats.format import Format, Reference
from app.descriptions import Shape

NPZ = Format(
    "npz",
    "NumPy (npz)",
    "app.formats.npz:parse_npz",
    frozenset({"label_column", "unlabelled", "weight_column", "ignore_columns"}),
    Reference(
        "`X` (n, d), or `data`, `indices`, `indptr`, `shape` (scipy's csr or csc), or `texts`",
        "`label`, `labels` or `y`, or `label_column`",
        "`split`: words, or 0, 1, 2",
        "`weights`, or `weight_column`",
    ),
    (
        Shape("NumPy: arrays `X` and `y`", "good.npz"),
        Shape("PECOS: matrices of features and labels in one file", "pecos.npz"),
    ),
    extensions=("npz",),
    begins=lambda head: head.startswith(b"PK\x03\x04") and b".npy" in head[:512],
)
