"""What a running job has around it: its context, its lease, its memory, its end."""
