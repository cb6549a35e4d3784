"""Every method behind one scikit-learn classifier."""

from solvers.estimator.classifier import PolymarginClassifier, Record

__all__ = ["PolymarginClassifier", "Record"]
