"""Models of output codes: binary machines for the columns, and a code that decodes their margins."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import scipy.sparse as sp

from solvers.core.linear_model import LinearModel, stored_weights
from solvers.core.model import Contributions, Model, OutputCode, Prune
from solvers.core.sparse_linear_model import smaller_weights, sparse_takes_less
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32
from solvers.output_codes import codes
from solvers.output_codes.columns.models import ColumnModels, read_model
from solvers.output_codes.decoding import Loss, decode, loss_secants

CHUNK_BYTES = 64 << 20


class CodeModel(Model):
    """Scores of the classes from the margins of binary machines.

    Parameters
    ----------
    columns : ColumnModels
        The machines of the columns.
    code : array, shape (n_classes, n_columns)
        Multiplied by ``scale`` where the decoding is the inner product.
    decoding : str
        As :func:`solvers.output_codes.decoding.decode`.
    loss : str
        Of the decoding by loss.
    scale : float
        Of the inner product.
    head : Model, optional
        A model of the margins in place of the decoding: a code in the feature space of a kernel, which no matrix
        holds; ``code`` is then the one whose columns the machines were trained for.
    """

    kind = "code"

    def __init__(
        self,
        classes: Sequence[str],
        columns: ColumnModels,
        code: Array,
        decoding: str = "inner_product",
        loss: Loss = "hinge",
        scale: float = 1.0,
        head: Model | None = None,
    ) -> None:
        self.classes = tuple(classes)
        self.n_features = columns.n_features
        self.columns = columns
        self.code = code
        self.decoding = decoding
        self.loss = loss
        self.scale = scale
        self.head = head
        if head is not None:
            self.unexplained = "its code lies in the feature space of a kernel, where no feature has a weight"
        elif decoding in ("votes", "hamming"):
            self.unexplained = "its decoding counts the signs of margins, which jump from one side to the other"
        else:
            self.unexplained = columns.unexplained

    def margins(self, X: sp.csr_matrix) -> Floats:
        """Margins of the columns, shape (n_samples, n_columns)."""
        self.check_width(X)
        return self.columns.margins(X)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        size = max(1, CHUNK_BYTES // (8 * max(self.columns.n_columns, len(self.classes))))
        parts = [self._decoded(self.margins(X[begin : begin + size])) for begin in range(0, X.shape[0], size)]
        return np.concatenate(parts) if parts else np.empty((0, len(self.classes)))

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return np.asarray(self._decoded(self.columns.margins_one(indices, values)[None, :])[0])

    def _decoded(self, h: Floats) -> Floats:
        if self.head is not None:
            return np.asarray(self.head.scores(sp.csr_matrix(h)), np.float64)
        scores = decode(h, self.code, self.decoding, self.loss)
        if self.decoding == "inner_product":
            scores *= self.scale
        return scores

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions | None:
        """By inner product what the margins bring; by loss their secants from the empty row. None by signs."""
        if self.unexplained:
            return None
        if self.decoding == "inner_product":
            row = self.code[best].astype(np.float64)
            lead = row if rival is None else row - self.code[rival]
            return self.columns.contributions(indices, values, self.scale * lead)
        after, before = self.columns.margins_one(indices, values), self.columns.margins_one(indices[:0], values[:0])
        weights, empty = loss_secants(after, before, self.code[best], self.loss), self._decoded(before[None])[0]
        intercept = float(empty[best])
        if rival is not None:
            weights -= loss_secants(after, before, self.code[rival], self.loss)
            intercept -= float(empty[rival])
        found = self.columns.contributions(indices, values, weights)
        return None if found is None else Contributions(found.parts, intercept, additive=False)

    def arrays(self) -> dict[str, Array]:
        held = {"code": self.code, "decoding": np.array([self.decoding, self.loss]), "scale": np.array([self.scale])}
        if self.head is not None:
            held["head_kind"] = np.array([self.head.kind])
            held |= {f"head_{name}": array for name, array in self.head.arrays().items()}
        return held | self.columns.arrays()

    @property
    def output_code(self) -> OutputCode:
        return OutputCode(self.code, self.decoding if self.head is None else "kernel")

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "CodeModel":
        columns = ColumnModels.from_arrays(n_features, arrays)
        stored_arrays.require_numbers("code", arrays["code"], len(classes), columns.n_columns)
        stored_arrays.require_floats("scale", arrays["scale"], 1)
        decoding, loss = (str(word) for word in arrays["decoding"])
        head = None
        if "head_kind" in arrays:
            head = read_model(str(arrays["head_kind"][0]), "head_", classes, columns.n_columns, arrays)
        return cls(classes, columns, arrays["code"], decoding, cast(Loss, loss), float(arrays["scale"][0]), head)


def coded(
    classes: Sequence[str],
    columns: ColumnModels,
    code: Array,
    decoding: str = "inner_product",
    loss: Loss = "hinge",
    scale: float = 1.0,
) -> Model:
    """The model that serves best: multiplied out where that is linear and no larger than the machines themselves."""
    linear = columns.linear
    if decoding != "inner_product" or linear is None:
        return CodeModel(classes, columns, code, decoding, loss, scale)
    features, dtype = linear.features, linear.W.dtype
    if len(features) * len(classes) * dtype.itemsize > columns.nbytes:
        return CodeModel(classes, columns, code, decoding, loss, scale)
    W = np.empty((len(features), len(classes)), dtype)
    chunk = max(1, CHUNK_BYTES // (8 * max(code.shape)))
    for begin in range(0, len(features), chunk):
        W[begin : begin + chunk] = scale * codes.products(linear.dense(begin, begin + chunk), code)
    given = linear.intercept
    intercept = None if given is None else (scale * codes.products(given[None], code)[0]).astype(dtype)
    return LinearCodeModel(classes, columns.n_features, features, W, code, intercept)


class LinearCodeModel(LinearModel):
    """Linear column machines decoded by inner product: ``M (V' x)`` is ``(V M')' x``, one weight vector a class.

    Parameters
    ----------
    classes, n_features, features, W, intercept
        As :class:`solvers.core.linear_model.LinearModel`.
    code : array, shape (n_classes, n_columns)
    """

    kind = "linear_code"

    def __init__(
        self,
        classes: Sequence[str],
        n_features: int,
        features: Ints,
        W: AnyFloats,
        code: Array,
        intercept: AnyFloats | None = None,
    ) -> None:
        super().__init__(classes, n_features, features, W, intercept)
        self.code = code

    def smaller(self, prune: Prune, half: bool) -> "LinearCodeModel":
        """As others have it; sparse weights are dense in memory."""
        W, intercept = smaller_weights(self.W, self.intercept, prune, half)
        made = LinearCodeModel(self.classes, self.n_features, self.features, W, self.code, intercept)
        made.written_sparse = sparse_takes_less(W, len(W))
        return made

    def arrays(self) -> dict[str, Array]:
        return super().arrays() | {"code": self.code}

    @property
    def output_code(self) -> OutputCode:
        return OutputCode(self.code, "inner_product")

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "LinearCodeModel":
        features, W, intercept = stored_weights(len(classes), n_features, arrays)
        code = arrays["code"]
        stored_arrays.require_numbers("code", code, len(classes), *code.shape[1:2])
        return cls(classes, n_features, features, W, code, intercept)
