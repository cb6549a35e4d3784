"""Loaded models, what they answer, why, and how sure; and what they have answered lately."""
