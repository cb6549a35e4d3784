"""Feedback, and rules that train a model again."""
