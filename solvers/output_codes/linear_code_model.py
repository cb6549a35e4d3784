"""Linear models that came of an output code: machines and code multiplied out, the code kept beside."""

from collections.abc import Mapping, Sequence

from solvers.core.linear_model import LinearModel, stored_weights
from solvers.core.model import OutputCode, Prune
from solvers.core.sparse_linear_model import smaller_weights, sparse_takes_less
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Ints


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
