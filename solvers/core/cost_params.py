"""What a wrong answer costs, as a parameter: of methods that train by it, and of those whose answers weigh it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from solvers.core.base import Outline, Params, ParamsError
from solvers.core.problem import Problem, ProblemError
from solvers.labels.costs import Costs, table_fault
from solvers.labels.taxonomy import Taxonomy

MOST_COST, MOST_ENTRIES = 1e9, 100_000

Cost = Annotated[float, Field(ge=0, le=MOST_COST, allow_inf_nan=False)]
NO_TREE = "tree needs a hierarchy: pass hierarchy, or a table of costs"


class CostParams(Params):
    """Costs by the right label and the answer."""

    costs: Literal["tree"] | dict[str, dict[str, Cost]] | None = Field(
        default=None,
        description="What a wrong answer costs. An object gives numbers from 0 to 1e9 by the right label, then by the "
        "answer, 100,000 at most; pairs left out cost other_cost. tree takes half the length of the path between the "
        "two labels in the label tree. A label without training rows is an error. By default all wrong answers cost "
        "the same, and versions have no costs.",
    )
    other_cost: Cost = Field(default=1.0, description="Cost of a wrong answer that an object of costs leaves out.")

    @field_validator("costs")
    @classmethod
    def _right_answers_cost_nothing(cls, costs: object) -> object:
        if not isinstance(costs, Mapping):
            return costs
        for label, answers in costs.items():
            if answers.get(label, 0.0) != 0.0:
                raise ValueError(f"the right answer costs nothing: remove {label!r:.80} as an answer to itself")
        entries = sum(map(len, costs.values()))
        if entries > MOST_ENTRIES:
            raise ValueError(f"a table has at most {MOST_ENTRIES:,} costs; {entries:,} were given")
        return costs

    @field_validator("other_cost")
    @classmethod
    def _is_of_a_table(cls, other: float, info: ValidationInfo) -> float:
        costs = info.data.get("costs")
        if other != 1.0 and not isinstance(costs, Mapping):
            raise ValueError("other_cost needs an object of costs, whose missing pairs it is for")
        if other == 0.0 and not any(cost > 0.0 for answers in (costs or {}).values() for cost in answers.values()):
            raise ValueError("all answers cost nothing: give a positive cost, or a positive other_cost")
        return other

    def label_faults(self, known: Iterable[str]) -> Mapping[str, str]:
        labels = set(known)
        fault = table_fault(self.costs, labels) if isinstance(self.costs, Mapping) else None
        return {**super().label_faults(labels), **({} if fault is None else {"costs": fault})}

    def check_costs(self, outline: Outline) -> None:
        """Raise ParamsError for costs of a tree where there is none."""
        if self.costs == "tree" and outline.n_nodes is None:
            raise ParamsError([("/costs", NO_TREE)])

    def costs_among(self, classes: Sequence[str], tree: Taxonomy | None) -> Costs | None:
        """The costs among classes in this order; None without costs.

        Labels that are no classes are left out: a part of the rows may have none of them. Raises ProblemError where
        there is no tree for its distances.
        """
        if self.costs is None:
            return None
        if self.costs == "tree":
            if tree is None:
                raise ProblemError(f"costs: {NO_TREE}")
            return Costs.of_tree(classes, tree)
        return Costs.of_table(classes, self.costs, self.other_cost)

    def costs_of(self, problem: Problem) -> Costs | None:
        """The costs among the classes of a problem; raises as above, and where rows have sets of labels."""
        if self.costs is not None and problem.labels is not None:
            raise ProblemError("costs need one label per example; sets of labels were given")
        return self.costs_among(problem.classes, problem.taxonomy)
