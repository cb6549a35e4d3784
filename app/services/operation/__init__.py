"""How the service is: readiness, storage, the sweep that puts right what was lost."""
