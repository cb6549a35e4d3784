"""What is raised in a worker that has lost its lease."""


class Fenced(Exception):
    """What the lease was for is no longer this worker's: it must stop without writing anything more."""
