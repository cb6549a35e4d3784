"""Who may do what, and how often; keys, the audit log, and what a workspace has."""
