"""The verdict on whoever has lost a lease."""


class Fenced(Exception):  # a verdict, not a fault
    """What the lease was for is no longer this worker's: it must stop without writing anything more."""
