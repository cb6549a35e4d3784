"""Charts of the dashboard and pictures of the API."""
