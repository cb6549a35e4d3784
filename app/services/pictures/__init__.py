"""Pictures for the dashboard and the API."""
