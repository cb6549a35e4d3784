"""Sources of learnt scores: a file each, which the ranker combines.

A source has a function ``learn`` and a scorer, which are found by name here; ``source.py`` says what they promise.
"""

from solvers.subjects.sources import binary_machines, kernel_ridge, neighbours
from solvers.subjects.sources.source import Scorer, Source

# the first one's scores are about the share of rows that have the concept; likeness of names is weighted by them
SOURCES: dict[str, Source] = {
    "kernel_ridge": kernel_ridge.learn,
    "neighbours": neighbours.learn,
    "binary_machines": binary_machines.learn,
}
SCORERS: dict[str, type[Scorer]] = {
    kernel_ridge.KernelScorer.kind: kernel_ridge.KernelScorer,
    neighbours.NeighbourScorer.kind: neighbours.NeighbourScorer,
    binary_machines.LinearScorer.kind: binary_machines.LinearScorer,
}
