"""Who may ask, for how much, and what they have changed: keys, sign-ins, quotas, the audit log."""
