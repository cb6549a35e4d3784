"""Predictions: answers, explanations, thresholds, drift, and models in memory."""
