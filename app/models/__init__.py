"""Models: versions, aliases, notes and deletions."""
