"""A continuous code designed for given binary machines, or for the features themselves.

    minimise  |M| + C sum_i max_{r != y_i} max(0, 1 - h(x_i)' (M_{y_i} - M_r))

over the code M, one row a class, where h(x) holds the margins of the machines of a fixed code's columns; |M| is the l1
or l_infinity norm of all entries, or half the squared l2 norm, with any kernel in place of the inner product. Crammer
and Singer 2002, equations 15, 16 and 29 with C = 1/beta. With the features in place of margins and the l2 norm this is
their multi-class machine. With ``program`` the norm is bounded and no penalty, or no loss is allowed (equation 13);
see ``solvers/output_codes/design/constrained.py``.

The linear programs are solved over growing sets of constraints (``solvers/output_codes/design/programs.py``), the
quadratic one by block ascent. Column by column (their section 5.2, end), each column is the best one beside those
before it. The paper leaves open how to interleave the design with the learning of the machines: with more than one
round the machines are trained again, column t on the signs of M's column t with its sizes as weights, and the code is
designed again; the objective is reported after each round, and the best round is kept. Nothing says that it falls.
"""

from collections.abc import Iterator

import numpy as np

from solvers.core.base import Handles, State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.output_codes import report
from solvers.output_codes.code_model import coded
from solvers.output_codes.coded import Coded
from solvers.output_codes.codes import Code
from solvers.output_codes.columns.models import ColumnModels
from solvers.output_codes.design.designer import ContinuousCodeParams, Designer
from solvers.output_codes.design.rounds import DesignRun, sides


class ContinuousCode(Coded[ContinuousCodeParams]):
    """Code design by linear or quadratic programming."""

    name = "continuous_code"
    title = "Continuous output code"
    formula = r"\|M\| + C \sum_i \max_{r \ne y_i} (1 - h(x_i)^\top (M_{y_i} - M_r))_+"
    paper = "Crammer and Singer 2002"
    handles = Handles(flat=True)
    Params = ContinuousCodeParams

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        first, rounds, designer = self._first_signs(problem), self.params.rounds, self._designer
        run = DesignRun.begin(first) if state is None else DesignRun.resume(problem.n_features, state)
        while run.round < rounds:
            if run.now.machines is None and self.params.inputs == "columns":
                columns = self.machines_of(problem, run.signs, run.confidence)
                for step in columns.steps(run.columns):
                    run.columns = step.state
                    yield run.step(step, {"round": run.round + 1.0}, measured=False)
                assert run.columns is not None
                run.now.machines, run.columns = columns.models(run.columns), None
            design = designer.design(designer.task(problem, run.now.machines))
            for step in design.steps(run.now.design):
                run.now.note(step)
                if rounds == 1 or not step.converged:
                    yield run.step(step, {"round": run.round + 1.0}, measured=True, converged=step.converged)
            if rounds == 1:
                return
            assert run.now.design is not None
            M = np.asarray(design.code(run.now.design))
            run.close(*sides(problem, M, run.signs, run.confidence))
            yield run.closing_step(done=run.round == rounds)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        if self.params.inputs == "features":
            return self._designer.machine().bytes_needed(n_samples, n_features, n_classes)
        n_columns = self.count_columns(n_classes)
        design = 8 * n_samples * n_columns + self._designer.machine().bytes_needed(n_samples, n_columns, n_classes)
        return max(self.column_bytes(n_samples, n_features, n_classes), design)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        before, run = DesignRun.resume(problem.n_features, state), DesignRun.begin(self._first_signs(problem))
        designer = self._designer
        if self.params.rounds == 1 and before.now.design is not None:
            run.now.machines = before.now.machines
            design = designer.design(designer.task(problem, before.now.machines))
            run.now.design = design.rescaled(before.now.design, ratio)
        return run.state()

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        kept = DesignRun.resume(problem.n_features, state).kept
        if kept.design is None:
            return float("nan")
        designer = self._designer
        return designer.design(designer.task(problem, kept.machines)).nonzero_duals(kept.design)

    def fitted(self, problem: Problem, state: State) -> Model:
        run = DesignRun.resume(problem.n_features, state)
        kept = run.kept
        if kept.design is None:
            # no code has been designed yet: what there is are machines of the columns of the first one
            columns = self.machines_of(problem, run.signs, run.confidence)
            none = ColumnModels(problem.n_features, 0, ())
            machines = kept.machines or (columns.models(run.columns) if run.columns else none)
            return coded(problem.classes, machines, run.signs[:, : machines.n_columns], "inner_product")
        task = self._designer.task(problem, kept.machines)
        design = self._designer.design(task)
        code, nonzero = design.code(kept.design), design.nonzero_duals(kept.design)
        model = self._designer.model(problem, kept.machines, run.signs, code)
        found = report.of_designed_code(task, code) if isinstance(code, np.ndarray) else dict(code.report)
        found |= {f"objective_round_{r + 1}": float(value) for r, value in enumerate(run.objectives)}
        found |= {"objective": kept.primal} | ({} if np.isnan(nonzero) else {"nonzero_duals": nonzero})
        model.report = found
        return model

    @property
    def _designer(self) -> Designer:
        return Designer(self.params, self.seed, self.threads)

    def _first_signs(self, problem: Problem) -> Code:
        if self.params.inputs == "features":
            return np.zeros((problem.n_classes, 0), np.int8)
        return self.code(problem)
