"""How answers show themselves: a line for people, and HTML in notebooks."""
