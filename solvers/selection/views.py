"""What trials are about: the same rows and labels as one kind of method takes them, and how its trials are measured."""

from typing import NamedTuple

from solvers.core.problem import Problem
from solvers.selection.candidates import Family
from solvers.selection.tasks import Task


class View(NamedTuple):
    """A problem, with all rows, and how trials on it are measured."""

    problem: Problem
    task: Task


class Views(NamedTuple):
    """The views of one problem.

    Attributes
    ----------
    usual : View
        Of sets of labels: the labels that some row has, along their tree.
    flat : View or None
        Those that rows have as their own, without the tree, where that makes a difference.
    vocabulary : View or None
        All labels of the tree, with their names where they have any; of sets of labels alone.
    """

    usual: View
    flat: View | None = None
    vocabulary: View | None = None

    def of(self, family: Family) -> View:
        """What a family's trials are about; models pool trials of one view alone."""
        if family.uses_names and self.vocabulary is not None:
            return self.vocabulary
        return self.flat if family.flat and self.flat is not None else self.usual
