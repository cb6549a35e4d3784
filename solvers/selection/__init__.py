"""Choosing a model: trials on rows held out, the pool of the best, and the probabilities that follow."""
