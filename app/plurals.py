"""Numbers of things in sentences: 1 error, 2 errors."""


def counted(n: int, thing: str, *more: str) -> str:
    """The number with its noun, in the plural unless it is 1, and what agrees with it.

    Parameters
    ----------
    n : int
    thing : str
        The noun, whose plural ends in s.
    more : str
        Words that follow, each of them ``singular/plural``.
    """
    words = [each.split("/")[n != 1] for each in more]
    return " ".join([f"{n:,}", thing if n == 1 else f"{thing}s", *words])
