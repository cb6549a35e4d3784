"""Jobs, one file a kind: what each of them does from its first line to its end."""
