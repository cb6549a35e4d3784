"""Commands for keys, the audit log, and what a workspace has."""
