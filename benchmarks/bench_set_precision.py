"""Does a precision that is asked of sets of labels hold on new rows?

``auto`` chooses a model and counts on held-out training rows. Asked are precisions; measured are, on the test rows, the
labels that are as probable as the threshold that was found, all rows' together. "-" where no threshold reached it.
"""

import argparse

from scipy.special import expit

from benchmarks import sets
from benchmarks.results import write
from solvers.metrics.confidence.reliability import threshold_for
from solvers.registry import make

SETS = ["enron", "cellcycle_fun", "seq_fun"]
ASKED = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
HEADER = ["set", "asked", "threshold", "held-out precision", "test precision", "test recall", "test rows with a label"]


def measured(name: str) -> list[list[str]]:
    """A row of the table for each precision that is asked."""
    problem, X, truth = sets.load_sets(name)
    solver = make("auto", {}, seed=0)
    *_, last = solver.steps(problem)
    model = solver.model(problem, last.state)
    assert model.set_reliability is not None
    said, true, rows = expit(model.scores(X)), truth.toarray().astype(bool), []
    for asked in ASKED:
        found = threshold_for(model.set_reliability.curve, asked)
        if found is None:
            rows.append([name, str(asked), *["-"] * 5])
            continue
        sure = said >= found.threshold
        right = true[sure]
        figures = found.precision, right.mean(), right.sum() / true.sum(), sure.any(axis=1).mean()
        rows.append([name, str(asked), f"{found.threshold:.3f}", *(f"{each:.3f}" for each in figures)])
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=SETS)
    rows = [row for name in arguments.parse_args().sets for row in measured(name)]
    note = " ".join((__doc__ or "").split(chr(10), 2)[2].split())
    write("Does a precision asked of sets hold?", HEADER, rows, note)


if __name__ == "__main__":
    main()
