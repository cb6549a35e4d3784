"""Curation: which rows to label next, and which labels are probably wrong."""
