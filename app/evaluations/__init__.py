"""Evaluations of versions, and paired comparisons."""
