"""Webhooks: other programs are notified of what happened."""
