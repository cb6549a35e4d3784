"""Who may use the service: keys, sign-ins, workspaces, quotas, rate limits and the audit log."""
