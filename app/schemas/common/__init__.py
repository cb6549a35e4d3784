"""Names, pages, times and problems, and what every job may be given."""
