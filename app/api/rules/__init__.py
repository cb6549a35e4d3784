"""Routes for feedback, and for rules that train a model again."""
