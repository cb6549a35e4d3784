"""Rules that retrain models, and the feedback that they learn from."""
