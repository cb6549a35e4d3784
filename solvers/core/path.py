"""A path in C: the same problem for one C after the other, each begun at the solution of the one before.

The order is ascending: at a small C a machine is solved in a few epochs, as most of its dual variables stand at their
bounds, and many of them still do at the next C.
"""

from collections.abc import Callable, Sequence
from typing import Any

from solvers.core.base import Solver, State
from solvers.core.problem import Problem

Train = Callable[[int, Any, State | None], State | None]


def ascending(machine: Solver[Any], Cs: Sequence[float]) -> list[Solver[Any]]:
    """The machine at each of these C, in ascending order; one that is given twice counts once.

    Raises
    ------
    TypeError
        The solver has no path in C.
    """
    return [machine.at(C) for C in sorted(set(Cs))]


def follow(
    machines: Sequence[Any], problem: Problem, train: Train, *, first: int = 0, start: State | None = None
) -> None:
    """Train one machine after the other.

    Parameters
    ----------
    machines : sequence of Machine
        Alike but for their C; one machine alone may be any solver.
    problem : Problem
    train : callable
        Called with the place of a machine, the machine, and the state to begin from (None: from nothing); trains it to
        its end, does what is to be done with it, and returns the state at the end, or None to go no further.
    first : int
        The place to begin at.
    start : mapping of str to array, optional
        What to begin there from.
    """
    state = start
    for place in range(first, len(machines)):
        if place > first:
            assert state is not None
            state = machines[place].rescaled(problem, state, machines[place - 1].params.C)
        state = train(place, machines[place], state)
        if state is None:
            return
