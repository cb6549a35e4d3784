"""Evaluations of versions, their mistakes, and versions compared."""
