"""How functions are compiled and kept; ``njit`` is numba's, once this is set up."""

from numba import njit

__all__ = ["njit"]
