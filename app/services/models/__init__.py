"""Models, their versions and aliases, and what is said of them."""
