"""What is asked of models and answered, and what is told of their answers."""
