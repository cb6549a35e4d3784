"""What jobs may be asked for, and what they show; tunings, plans, previews and the methods."""
