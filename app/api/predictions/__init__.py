"""Routes that answer: predictions, and why, how sure, and how they have changed."""
