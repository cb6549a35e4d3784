"""Datasets, files in pieces, and how texts and columns become features."""
