"""Commands for datasets, and for files that were sent in pieces."""
