"""Numbers of things, seconds and duality gaps in sentences: 1 error, 2 errors, about 2 min left, 8.5e-05."""


def counted(n: int, thing: str, *more: str) -> str:
    """The number with its noun, in the plural unless it is 1, and what agrees with it.

    Parameters
    ----------
    thing : str
        The noun, whose plural ends in s.
    more : str
        Words that follow, each of them ``singular/plural``, or the same for both.
    """
    words = [each.split("/")[-1 if n != 1 else 0] for each in more]
    return " ".join([f"{n:,}", thing if n == 1 else f"{thing}s", *words])


def time_left(seconds: float) -> str:
    """The estimated seconds left of a job, in words."""
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    minutes = round(seconds / 60)
    return f"about {minutes} min left" if minutes < 90 else f"about {minutes // 60} h {minutes % 60} min left"


def gap_text(gap: float | None) -> str | None:
    """A relative duality gap, with two digits and an exponent as tolerances have: ``8.5e-05``."""
    return None if gap is None else f"{gap:.1e}" if gap else "0"
