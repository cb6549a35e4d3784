"""How sure answers are, and whether they are right when they say so: thresholds, and backing off along a label tree."""
