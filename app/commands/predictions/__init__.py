"""Commands that ask models, and look at how they answer."""
