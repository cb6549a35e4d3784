"""Datasets, their versions and rows, and all that makes a next version."""
