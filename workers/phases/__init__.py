"""What kinds of jobs have in common, phase by phase: rows, features, training, measures, publishing."""
