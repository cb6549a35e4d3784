"""Health and status of the service."""
