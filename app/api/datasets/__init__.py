"""Routes for datasets, and for files as they come."""
