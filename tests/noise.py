"""Rows that take long to train on."""

import numpy as np


def noise(n_rows: int, n_features: int) -> str:
    """Svmlight rows of 20 classes that no feature separates, so that training takes its time."""
    values = np.random.default_rng(0).normal(size=(n_rows, n_features)).round(3)
    rows = (
        " ".join([f"c{i % 20}", *(f"{j + 1}:{value}" for j, value in enumerate(row) if value)])
        for i, row in enumerate(values)
    )
    return "\n".join(rows) + "\n"
