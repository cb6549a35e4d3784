"""What requests for jobs name, resolved once and checked before they are queued; tunings and their trials."""
