"""Pictures of codes of any size."""

import numpy as np
import pytest

from app.figures import images as figures
from app.predictions.inspection import Code


@pytest.mark.parametrize(
    "shape", [(2, 1), *(pytest.param(large, marks=pytest.mark.slow) for large in [(90, 10), (300, 500)])]
)
def test_codes_of_any_size_have_a_picture(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    labels = tuple(f"label {r}" for r in range(shape[0]))
    for matrix in (rng.choice([-1, 1], shape).astype(np.int8), rng.standard_normal(shape)):
        code = Code("m", 1, labels, matrix, "inner_product")
        assert figures.render(figures.code_heat_map(code), "png").startswith(b"\x89PNG")
