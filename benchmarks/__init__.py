"""Measurements, each of them a module to be run."""

import os

# one thread is one: linear algebra would otherwise take all processors, and spin where another process has them
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
