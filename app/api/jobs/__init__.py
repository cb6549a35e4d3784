"""Routes for jobs, what goes on in them, and the methods that they may name."""
