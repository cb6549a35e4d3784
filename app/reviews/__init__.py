"""Review queues: rows of coding jobs that people decide."""
