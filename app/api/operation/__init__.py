"""Routes for those who run the service: health, metrics, status, storage."""
