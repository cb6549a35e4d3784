"""How much sooner is coordinate descent than L-BFGS-B in the master problem of a boosting round?

Both start from the weights of the round before, with the new weak learners at weight 0, on the same columns; the
seconds are those until the objective is within a share of the optimum. One thread, processor seconds, C = 1e4.
Coordinate descent is that of the product: a sweep over the new variables, then iterations over all, each of them
coordinate descent on a quadratic model or on the violated variables, between them passes that find these; in its
seconds is the pass that moves the scores at the end. It copies the columns that it is about to read, where the product
makes them from the bins, which takes as long. L-BFGS-B evaluates objective and gradient in one of two ways: as a user
of SciPy would, through BLAS on one dense matrix of floats a class; or in compiled loops over columns of one byte a row,
the zero weights left out, which nobody but us would have.
"""

import argparse
import statistics
import time

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b

from benchmarks import sets
from benchmarks.results import write
from solvers.boosting.pairs.master_problem import MasterProblem
from solvers.boosting.pairs.pair_loss import PairLoss
from solvers.boosting.pairs.pair_weights import SUMS
from solvers.boosting.pairs.variables import Variables
from solvers.core.problem import Problem
from solvers.methods.multiboost_cw import MultiboostCw, MultiboostCwParams
from solvers.numerics.thread_pool import ThreadPool

SHARES = (1e-2, 1e-3, 1e-4)
EPS = 1e-4
TURNS = 1000
ALONE = ThreadPool(1)


class Master:
    """The master problem of one round: columns ``responses`` of the classes ``owners``, and where to start from."""

    def __init__(self, problem: Problem, rounds: int, C: float) -> None:
        method = MultiboostCw(MultiboostCwParams(C=C, tau_max=10, max_epochs=rounds, tol=1e-9))
        self.task = method.task(problem)
        run = method.run(self.task)
        while run.epoch < rounds - 1:
            run.advance(ALONE)
        view = run._measure(ALONE)
        assert view.found is not None
        self.new = run._admit(view.found)
        self.C, self.F = C, run.loss.F.copy()
        variables = run.variables
        self.owners = variables.owners
        responses = self.task.learners.responses(variables.learners)
        gradients = self.loss().gradients(responses, self.owners)
        # the paper's weights are not negative: of a stump and its negative the one that was found
        signs = np.where(np.where(variables.weights != 0, variables.weights, gradients) < 0, -1, 1).astype(np.int8)
        self.responses, self.start = responses * signs[:, None], signs * variables.weights
        self.wrong = self.task.y != np.arange(self.task.n_classes)[:, None]
        self.of_class = [np.flatnonzero(self.owners == c) for c in range(self.task.n_classes)]
        self.matrices = [np.asfortranarray(self.responses[own].T.astype(np.float64)) for own in self.of_class]

    def loss(self) -> PairLoss:
        """The loss at the start."""
        loss = PairLoss(self.task.y, self.task.omega, self.task.n_classes, self.C)
        loss.F[:] = self.F
        loss.refresh()
        return loss

    def descend(self, eps: float) -> tuple[list[float], list[float]]:
        """Seconds and objectives of coordinate descent, after each iteration."""
        loss, variables = self.loss(), Variables()
        variables.admit(np.arange(len(self.owners)), self.owners.astype(np.int64))
        variables.weights[:] = variables.scored[:] = self.start
        master = MasterProblem(loss, variables, lambda part: self.responses[part], signed=False)
        seconds: list[float] = []
        values: list[float] = []
        spent, scores = 0.0, loss.F.copy()
        while len(values) < TURNS:
            began, gradients = time.process_time(), None
            if not values:
                master.sweep(ALONE, self.new)
            else:
                if master.sweeps_left == 0:
                    gradients = master.gradients()
                    if not master.choose_working_set(master.violations(gradients), eps):
                        break
                master.iterate(ALONE, gradients, [0, len(values)])
            spent += time.process_time() - began
            # the scores follow once a round; steps on all weights move them by themselves
            began, late = time.process_time(), variables.changed(variables.scored, None)
            steps = variables.weights[late] - variables.scored[late]
            loss.shift(ALONE, self.responses[late], self.owners[late], steps, scores)
            seconds.append(spent + time.process_time() - began)
            values.append(float(variables.weights.sum()) + loss.rate * float((loss.mu.e * loss.mu.r)[self.wrong].sum()))
        return seconds, values

    def quasi_newton(self, *, compiled: bool) -> tuple[list[float], list[float]]:
        """Seconds and best objectives of L-BFGS-B, after each evaluation."""
        loss, seconds, values = self.loss(), [], []
        F, u, rows = np.empty_like(self.F), np.empty_like(self.F), np.arange(len(self.task.y))

        def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            if compiled:
                _combine(self.responses, self.owners, w, F)
            else:
                for c, (own, H) in enumerate(zip(self.of_class, self.matrices, strict=True)):
                    F[c] = H @ w[own]
            u[:] = -loss.omega * np.exp(np.minimum(F - F[loss.y, rows], 500.0))
            u[loss.y, rows] = 0.0
            sums = -u.sum(axis=0)
            u[loss.y, rows] = sums
            gradient = np.empty(len(w))
            if compiled:
                _gradient(self.responses, self.owners, u, gradient)
            else:
                for c, (own, H) in enumerate(zip(self.of_class, self.matrices, strict=True)):
                    gradient[own] = u[c] @ H
            value = float(w.sum() + loss.rate * sums.sum())
            seconds.append(time.process_time() - began)
            values.append(value)
            return value, 1.0 - loss.rate * gradient

        began = time.process_time()
        bounds = [(0.0, None)] * len(self.start)
        fmin_l_bfgs_b(objective, self.start, bounds=bounds, factr=10.0, pgtol=EPS, maxiter=5000)
        return seconds, np.minimum.accumulate(values).tolist()


@njit(cache=True, nogil=True, fastmath=SUMS)
def _combine(
    responses: NDArray[np.int8], owners: NDArray[np.int32], w: NDArray[np.float64], F: NDArray[np.float64]
) -> None:
    F[:] = 0.0
    for j in range(len(w)):
        if w[j] != 0.0:
            f, response, weight = F[owners[j]], responses[j], w[j]
            for i in range(len(response)):
                f[i] += weight * response[i]


@njit(cache=True, nogil=True, fastmath=SUMS)
def _gradient(
    responses: NDArray[np.int8], owners: NDArray[np.int32], u: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    for j in range(len(owners)):
        x, response, total = u[owners[j]], responses[j], 0.0
        for i in range(len(response)):
            total += x[i] * response[i]
        out[j] = total


def reached(run: tuple[list[float], list[float]], best: float) -> list[float]:
    """Seconds until the objective is within each share of the best."""
    seconds, values = run
    there = [np.flatnonzero(np.array(values) <= best * (1 + share)) for share in SHARES]
    return [seconds[at[0]] if len(at) else np.inf for at in there]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=["vowel", "satimage", "pendigits", "usps", "letter"])
    arguments.add_argument("--rounds", nargs="*", type=int, default=[10, 20, 50, 100])
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    rows = []
    for name in [name for name in chosen.sets if name in sets.available()]:
        problem = Problem.check(*sets.load(name))
        for rounds in chosen.rounds:
            master = Master(problem, rounds, 1e4)
            best = min(master.descend(EPS)[1][-1], master.quasi_newton(compiled=True)[1][-1])
            ways = {
                "FCD": lambda m=master: m.descend(EPS),
                "BLAS": lambda m=master: m.quasi_newton(compiled=False),
                "loops": lambda m=master: m.quasi_newton(compiled=True),
            }
            middle = {
                way: [
                    statistics.median(column)
                    for column in zip(*(reached(run(), best) for _ in range(chosen.runs)), strict=True)
                ]
                for way, run in ways.items()
            }
            row = [name, rounds, len(master.owners), f"{100 * (master.descend(1.0)[1][0] / best - 1):.2g} %"]
            for own, blas, loops in zip(*middle.values(), strict=True):
                row += [f"{1e3 * own:.3g}", f"{blas / own:.1f}", f"{loops / own:.1f}"]
            rows.append(row)
            print(*rows[-1], flush=True)
    header = ["set", "round", "variables", "above the optimum after one sweep"]
    for share in SHARES:
        header += [f"to {share:g}: FCD, ms", "BLAS", "loops"]
    note = (
        f"Milliseconds of coordinate descent, and what L-BFGS-B takes as its multiple; medians of {chosen.runs} runs."
    )
    write("Boosting: coordinate descent against L-BFGS-B", header, rows, note)


if __name__ == "__main__":
    main()
