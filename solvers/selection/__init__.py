"""Choosing a model: trials on held-out rows, the pool of the best, and the probabilities that follow."""
