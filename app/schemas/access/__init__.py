"""Keys, the audit log, and what a workspace has."""
