"""Does boosting train on sparse text without making it dense?

20news as TF-IDF features, each training in a process of its own: processor seconds, error on the test part, and the
most memory that training added, beside what the dense matrix would take. LightGBM takes sparse rows too; scikit-learn's
HistGradientBoosting takes none. One thread, compiled before.
"""

import argparse
import time
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier

from benchmarks import sets
from benchmarks.processes import apart, peak_bytes
from benchmarks.results import write
from solvers.estimator import PolymarginClassifier

SET = "20news"
CASES: dict[str, dict[str, Any]] = {
    "multiboost_cw, stumps": {},
    "multiboost_cw, depth 3": {"depth": 3, "shrinkage": 0.25},
    "LightGBM, depth 3": {"max_depth": 3, "num_leaves": 8},
}


def train(case: str, rounds: int) -> tuple[int, int, float, float, int]:
    """Rows, features, seconds, error in percent, bytes added at most."""
    X, y = sets.load(SET)
    X_test, y_test = sets.load_test(SET)
    model: Any
    if case.startswith("LightGBM"):
        model = LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1, random_state=0, **CASES[case])
    else:
        PolymarginClassifier("multiboost_cw", max_epochs=2, **CASES[case]).fit(X[:500], y[:500] % 3)
        model = PolymarginClassifier("multiboost_cw", max_epochs=rounds, **CASES[case])
    before = peak_bytes()
    began = time.process_time()
    model.fit(X, y)
    seconds, added = time.process_time() - began, peak_bytes() - before
    return *X.shape, seconds, 100 * float(np.mean(model.predict(X_test) != y_test)), added


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=200)
    arguments.add_argument("--cases", nargs="*", default=list(CASES))
    chosen = arguments.parse_args()
    if SET not in sets.available():
        raise SystemExit(f"{SET} is not at hand")
    rows = []
    for case in chosen.cases:
        n, d, seconds, error, added = apart(train, case, chosen.rounds)
        dense = f"{n * d * 8 / 1e6:,.0f}"
        rows.append([case, n, d, f"{seconds:.1f}", f"{error:.1f}", f"{added / 1e6:,.0f}", dense])
        print(*rows[-1], flush=True)
    header = ["program", "rows", "features", "s", "error %", "MB added", "MB if dense"]
    write("Boosting: sparse text", header, rows, f"{chosen.rounds} rounds.")


if __name__ == "__main__":
    main()
